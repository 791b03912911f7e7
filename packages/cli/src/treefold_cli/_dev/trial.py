"""Boot the project in another process: a file that fails in a reload may load in a new process.

Some modules cannot be imported twice, because a library refuses to define the same thing again. The
decision to restart is made in `reload_loop`.
"""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from treefold_http import BrokenFile

_TIMEOUT = 10.0
"""Seconds that the boot in the other process may take."""

_LOADS = 42
"""The exit code of a boot without failures: nothing else ends a process with it."""

_BOOT = """
import json, os, sys
sys.path[:] = json.loads(sys.argv[1])
root, known, loads = sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4])
from treefold_http import Application
app = Application(root, dev=True)
app.boot()
os._exit(loads if {one.cause for one in app.report.broken}.issubset(known) else 1)
"""

_SAME_EVERYWHERE = ("SyntaxError", "IndentationError", "TabError", "NameError")


def find_retryable_files(
    broken: Collection[BrokenFile], healed_files: Collection[str] = ()
) -> list[str]:
    """Return the files that another process may load.

    Their last good version serves, or they are of those that a restart has healed before.
    """
    kept = {one.cause: one.error for one in broken if one.kept or one.cause in healed_files}
    if any(error.startswith(_SAME_EVERYWHERE) for error in kept.values()):
        return []  # another process would have no last good version of this file
    return sorted(kept)


async def loads_in_new_process(
    root: Path, known_broken_files: Sequence[str], *, timeout: float = _TIMEOUT
) -> bool:
    """Return True if the project boots in a new process without further broken files.

    The process ends with this call, also if the call is cancelled.

    Args:
        root: the application root.
        known_broken_files: files that may be broken, below the root.
        timeout: seconds.
    """
    given = json.dumps(sys.path), str(root), json.dumps([*known_broken_files]), str(_LOADS)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        _BOOT,
        *given,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    try:
        async with asyncio.timeout(timeout):
            return await process.wait() == _LOADS
    except TimeoutError:
        return False
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
