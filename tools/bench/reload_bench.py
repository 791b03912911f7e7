"""Milliseconds from a save to its answer by size of tree, and the memory of 200 reloads.

`python tools/bench/reload_bench.py` runs `treefold dev` over trees of 50, 1,000 and 5,000 routes. A
service and a provider reach one route; `Middleware/` reaches all of them.
"""

import http.client
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BARS = {50: 50, 1000: 80, 5000: 150}
"""Routes to the most milliseconds, as a median of 30 saves."""
SAVES, RELOADS = 30, 200
MEMORY = 5
"""The most megabytes that 200 reloads may keep."""
SOURCES = {
    "Services/n.py": "N = {}\n",
    "providers.py": "providers = {{'p': lambda: {}}}\n",
    "Middleware/__init__.py": "async def tell(request, call_next):\n"
    "    request.state.m = {}\n"
    "    return await call_next(request)\n"
    "middlewares = [tell]\n",
}
"""The saved files; each has a number that is in the answer."""
WATCHED = "from Services.n import N\ndef handler(request, p):\n    return [N, p, request.state.m]\n"


def tree(root: Path, routes: int) -> None:
    files = {
        f"Api/v1/R{n // 50}/S{n % 50}/[id]/Get.py": f"def handler(id: int):\n    return [id, {n}]\n"
        for n in range(routes)
    }
    files |= {"Api/v1/Y/Get.py": WATCHED, "Services/__init__.py": ""}
    files |= {name: text.format(1000) for name, text in SOURCES.items()}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def memory(process: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def measure(routes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        tree(Path(name), routes)
        command = [sys.executable, "-m", "treefold", "dev", "--port", "0"]
        with subprocess.Popen(
            command, cwd=name, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as process:
            assert process.stdout is not None  # noqa: S101 - a pipe
            found = None
            while found is None:
                found = re.search(r"serving on http://([\d.]+):(\d+)", process.stdout.readline())
            client = http.client.HTTPConnection(found[1], int(found[2]))
            time.sleep(2)  # the imports are read in advance
            for place, (file, text) in enumerate(SOURCES.items()):
                count = RELOADS if routes == min(BARS) and not place else SAVES
                took: list[float] = []
                before = 0.0
                for number in range(1001, 1001 + count):
                    (Path(name) / file).write_text(text.format(number))
                    started = time.perf_counter()
                    answer = [0, 0, 0]
                    while answer[place] != number:
                        client.request("GET", "/v1/y")
                        answer = json.load(client.getresponse())
                    took.append(time.perf_counter() - started)
                    before = before or memory(process.pid)
                median = statistics.median(took[:SAVES]) * 1000
                line = f"save to served, {routes:5} routes, {file:22} {median:6.0f} ms"
                grown = memory(process.pid) - before
                bar = f"bar {BARS[routes]} ms"
                kept = f"memory {grown:+.1f} MB after {count} reloads"
                if count == RELOADS:
                    kept += f" (bar {MEMORY} MB)"
                print(f"{line}  {bar:10}  {kept}")
            process.terminate()


if __name__ == "__main__":
    for count in BARS:
        measure(count)
