"""Running a tool of the same environment, such as pytest, as if it had been typed itself.

Signals are passed on, and its exit code is returned. The commands choose its arguments.
"""

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType

from treefold_cli._console.errors import CommandError


def require_tool(module: str, *, install: str) -> None:
    """Refuse to go on without a tool.

    Args:
        module: the module of the tool.
        install: the requirement to install with pip.

    Raises:
        CommandError: it is not installed.
    """
    if importlib.util.find_spec(module) is None:
        raise CommandError(f"{module} is not installed; pip install {install}")


def run_module(
    module: str,
    arguments: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    capture: bool = False,
) -> tuple[int, str]:
    """Run `python -m module` and wait for its end.

    Args:
        module: the module to run with this interpreter.
        arguments: its arguments.
        cwd: its working directory.
        environment: all of its environment variables.
        capture: return its standard output instead of printing it.

    Returns:
        Its exit code, 128 plus the number for a signal, and the captured output.
    """
    sys.stdout.flush()
    command = [sys.executable, "-m", module, *arguments]
    output = subprocess.PIPE if capture else None
    with subprocess.Popen(  # noqa: S603 - the tool that the user named
        command, cwd=cwd, env=environment, stdout=output, encoding="utf-8", errors="replace"
    ) as child:
        # The terminal sends Ctrl-C to both: the tool decides, and we wait for it.
        forward = _make_forwarder(child)
        previous = {number: signal.signal(number, forward) for number in _SIGNALS}
        try:
            taken, _ = child.communicate()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
    code = child.returncode
    return (128 - code if code < 0 else code), taken or ""


_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def _make_forwarder(
    child: "subprocess.Popen[str]",
) -> Callable[[int, FrameType | None], None]:
    def forward_signal(number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGTERM:
            child.terminate()

    return forward_signal
