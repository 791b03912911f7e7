"""Milliseconds from a save to its answer by size of tree, and the memory of 200 reloads.

`python tools/bench/reload_bench.py` runs `treefold dev` over trees of 50, 1,000 and 5,000 routes.
"""

import http.client
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


def tree(root: Path, routes: int) -> Path:
    files = {
        f"Api/v1/R{n // 50}/S{n % 50}/[id]/Get.py": f"def handler(id: int):\n    return [id, {n}]\n"
        for n in range(routes)
    }
    files["Api/v1/Y/Get.py"] = "from Services.n import N\ndef handler():\n    return [N]\n"
    files |= {"Services/__init__.py": "", "Services/n.py": "N = 1000\n"}
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root / "Services/n.py"


def memory(process: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def measure(routes: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        file = tree(Path(name), routes)
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
            took: list[float] = []
            before = 0.0
            for number in range(1001, 1001 + (RELOADS if routes == min(BARS) else SAVES)):
                file.write_text(f"N = {number}\n")
                started = time.perf_counter()
                answer = b""
                while answer != b"[%d]" % number:
                    client.request("GET", "/v1/y")
                    answer = client.getresponse().read()
                took.append(time.perf_counter() - started)
                before = before or memory(process.pid)
            median = statistics.median(took[:SAVES]) * 1000
            line = f"save to served, {routes:5} routes {median:6.0f} ms  bar {BARS[routes]} ms"
            grown = memory(process.pid) - before
            print(f"{line}  memory {grown:+.1f} MB after {len(took)} reloads")
            process.terminate()


if __name__ == "__main__":
    for count in BARS:
        measure(count)
