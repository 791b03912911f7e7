"""Requests lost when `treefold serve` is stopped under busy connections, beside the bar of 0.

`python tools/bench/stop_bench.py [ROUNDS]` stops servers of one and of two processes with SIGTERM,
20 rounds each, while 32 clients ask over and over on open connections.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "packages/cli/tests"))

from lossless_clients import Count, keep_asking, wait_until_served

CLIENTS = 32


def stop_once(root: Path, workers: int) -> tuple[Count, float]:
    """Return what the clients counted, and the seconds from the signal to the end."""
    options = ["--port", "0", "--workers", str(workers)]
    with subprocess.Popen(
        [sys.executable, "-m", "treefold_cli", "serve", *options],
        cwd=root,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stderr is not None  # noqa: S101 - a pipe
        found = None
        while found is None:
            found = re.search(r" on http://([\d.]+):(\d+)", server.stderr.readline())
        threading.Thread(target=server.stderr.read).start()
        address, count = (found[1], int(found[2])), Count()
        wait_until_served(address)
        asking = threading.Thread(target=lambda: asyncio.run(keep_asking(address, CLIENTS, count)))
        asking.start()
        while count.answered < 20 * CLIENTS:
            time.sleep(0.01)
        began = time.perf_counter()
        os.kill(server.pid, signal.SIGTERM)
        server.wait()
        took = time.perf_counter() - began
        asking.join()
    return count, took


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    with tempfile.TemporaryDirectory() as name:
        handler = Path(name, "Api/v1/User/Get.py")
        handler.parent.mkdir(parents=True)
        handler.write_text("async def handler(request):\n    return {'name': 'Ada'}\n")
        for workers in (1, 2):
            stopped = [stop_once(Path(name), workers) for _ in range(rounds)]
            lost = sum(count.lost for count, _ in stopped)
            sent = sum(count.answered for count, _ in stopped)
            longest = max(took for _, took in stopped)
            print(
                f"lost at SIGTERM, {workers} processes: {lost} (bar 0) of {sent + lost} requests in"
                f" {rounds} rounds; the end took at most {longest:.1f} s"
            )


if __name__ == "__main__":
    main()
