"""Processor time of `treefold` commands over an interpreter that does nothing: best of N.

`python tools/bench/cli_bench.py [N]` makes a project of 100 routes in a temporary folder and prints
one line per command. The budgets are in `packages/cli/tests/console/test_budget.py`.
"""

import resource
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from pathlib import Path

COMMANDS = (
    "--version",
    "routes",
    "version list",
    "create health get",
    "why get /v1/r1/2",
    "--help",
    "check",
    "doctor",
)


def seconds(command: Sequence[str], cwd: Path, runs: int) -> float:
    best = float("inf")
    for _ in range(runs):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, cwd=cwd, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        best = min(best, spent)
    return best


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    treefold = f"{sysconfig.get_path('scripts')}/treefold"
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for number in range(50):
            for file in (f"R{number}/Get.py", f"R{number}/[id]/Get.py"):
                place = root / "Api/v1" / file
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("async def handler(request):\n    return {}\n")
        bare = seconds([sys.executable, "-c", "pass"], root, runs)
        print(f"{'interpreter':20} {bare * 1000:6.0f} ms")
        for command in COMMANDS:
            spent = seconds([treefold, *command.split()], root, runs) - bare
            print(f"{command:20} {spent * 1000:6.0f} ms")


if __name__ == "__main__":
    main()
