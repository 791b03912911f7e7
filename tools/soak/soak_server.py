"""The application of the soak under `treefold serve`, and what its processes hold."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TREE = {
    "Api/v1/Health/Get.py": "async def handler(): return {'status': 'ok'}\n",
    "Api/v1/User/[id]/Get.py": "async def handler(id: str): return {'id': id}\n",
    "Api/v1/Items/Post.py": (
        "from pydantic import BaseModel\n"
        "class Item(BaseModel):\n"
        "    name: str\n"
        "    password: str = ''\n"
        "async def handler(item: Item): return item, 201\n"
    ),
    "Api/v1/Broken/Get.py": "async def handler(): raise ValueError('asked for')\n",
    "Api/v1/Blocking/Get.py": (
        "import time\n"
        "def handler(seconds: float = 1.0):\n"
        "    time.sleep(seconds)\n"
        "    return {'slept': seconds}\n"
    ),
    "Api/v1/Waiting/Get.py": (
        "import asyncio\n"
        "async def handler(seconds: float = 1.0):\n"
        "    await asyncio.sleep(seconds)\n"
        "    return {'waited': seconds}\n"
    ),
    "Api/v1/Upload/Post.py": (
        "max_body = 8 * 1024 * 1024\n"
        "async def handler(request):\n"
        "    return {'size': (await request.files())['file'].size}\n"
    ),
    "Api/v1/Body/Post.py": (
        "max_body = 8 * 1024 * 1024\n"
        "async def handler(request): return {'size': len(await request.body())}\n"
    ),
    "Api/v1/Stream/Get.py": (
        "from treefold import StreamingResponse\n"
        "async def chunks():\n"
        "    for _ in range(1600):\n"
        "        yield b'x' * 65536\n"
        "async def handler(): return StreamingResponse(chunks())\n"
    ),
    "Api/v1/Echo/Ws.py": (
        "async def handler(websocket):\n"
        "    await websocket.accept()\n"
        "    async for text in websocket.iter_text():\n"
        "        await websocket.send_text(text)\n"
    ),
    "Api/v1/Process/Get.py": (
        "import asyncio, gc, os\n"
        "async def handler(collect: bool = False):\n"
        "    if collect:\n"
        "        gc.collect()\n"
        "    return {'pid': os.getpid(), 'tasks': len(asyncio.all_tasks()),\n"
        "            'objects': len(gc.get_objects()) if collect else 0}\n"
    ),
}


@dataclass(frozen=True, slots=True)
class Holding:
    """What a process holds.

    Attributes:
        memory: resident memory in bytes.
        descriptors: open descriptors.
    """

    memory: int
    descriptors: int


class SoakServer:
    """`treefold serve` over the application.

    Attributes:
        root: the folder of the project.
        address: host and port.
        lines: what it has written so far.
    """

    def __init__(
        self, root: Path, *options: str, limit: int | None = None, dev: bool = False
    ) -> None:
        self.root = root
        command = [sys.executable, "-m", "treefold_cli", "dev" if dev else "serve", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *options],
            cwd=root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=None if limit is None else lambda: limit_descriptors(limit),
        )
        self.lines: list[str] = []
        self._collector = threading.Thread(target=self._collect, daemon=True)
        self._collector.start()
        found = self.wait_for(r" on http://([\d.]+):(\d+)")
        self.address = (found[1], int(found[2]))
        self._await_answer()

    def wait_for(self, pattern: str, seconds: float = 20.0) -> re.Match[str]:
        """Wait for a line of the output.

        Raises:
            TimeoutError: there is none after so many seconds.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for line in list(self.lines):
                if found := re.search(pattern, line):
                    return found
            time.sleep(0.01)
        raise TimeoutError(f"No line with {pattern!r} in:\n{''.join(self.lines)}")

    def holding(self, pid: int | None = None) -> Holding:
        """Return what a process holds; without a number the one that was started."""
        folder = Path(f"/proc/{pid or self.process.pid}")
        found = re.search(r"VmRSS:\s+(\d+) kB", (folder / "status").read_text())
        memory = int(found[1]) * 1024 if found else 0
        return Holding(memory, len(list((folder / "fd").iterdir())))

    def stop(self) -> int:
        """Stop it; return its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        self._collector.join()
        assert self.process.stdout is not None  # noqa: S101 - a pipe
        self.process.stdout.close()
        return code

    def _collect(self) -> None:
        assert self.process.stdout is not None  # noqa: S101 - a pipe
        for line in self.process.stdout:
            self.lines.append(line)

    def _await_answer(self) -> None:
        from soak_clients import fetch

        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                if fetch(self.address, "/v1/health").status == 200:
                    return
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("The server does not answer")


def limit_descriptors(number: int) -> None:
    """Set the most descriptors of this process."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, hard))


@contextmanager
def serving(*options: str, limit: int | None = None, dev: bool = False) -> Generator[SoakServer]:
    """Serve the application in a folder of its own for the length of a block."""
    with tempfile.TemporaryDirectory(prefix="treefold-soak-") as folder:
        root = Path(folder)
        for name, text in TREE.items():
            file = root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        server = SoakServer(root, *options, limit=limit, dev=dev)
        try:
            yield server
        finally:
            server.stop()


def raise_own_limit(number: int) -> int:
    """Allow this process more descriptors; return how many it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = number if hard == resource.RLIM_INFINITY else min(number, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(soft, wanted)
