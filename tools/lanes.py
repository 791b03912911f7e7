"""`python tools/lanes.py a,b c,d -- ARGUMENT ...` runs hatch scripts in lanes, side by side.

The scripts of one lane follow each other, all with the same arguments. The first lane is watched
as it runs; what another one prints comes whole when it has ended. No script is left out: one that
fails ends its lane, and the command with its exit code after the others. The notes of test runs,
such as the browser tests that were skipped on a machine without one, are the last lines.
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO


def main() -> None:
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    lanes, arguments = words[:split], words[split + 1 :]
    if not lanes:
        sys.exit("usage: python tools/lanes.py SCRIPT[,SCRIPT ...] ... [-- ARGUMENT ...]")
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        notes.touch()
        os.environ["TREEFOLD_TEST_NOTES"] = os.fspath(notes)
        codes = run_lanes(lanes, arguments)
        for line in dict.fromkeys(notes.read_text(encoding="utf-8").splitlines()):
            print(line)
    sys.exit(next(filter(None, codes), 0))


def run_lanes(lanes: list[str], arguments: list[str]) -> list[int]:
    with ThreadPoolExecutor(len(lanes)) as threads:
        beside = [threads.submit(buffered, lane, arguments) for lane in lanes[1:]]
        codes = [run(lanes[0], arguments, None)]
        for lane in beside:
            code, printed = lane.result()
            sys.stdout.write(printed)
            sys.stdout.flush()
            codes.append(code)
    return codes


def buffered(lane: str, arguments: list[str]) -> tuple[int, str]:
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
        code = run(lane, arguments, printed)
        printed.seek(0)
        return code, printed.read()


def run(lane: str, arguments: list[str], printed: IO[str] | None) -> int:
    for script in lane.split(","):
        print(f"hatch run {script}", file=printed or sys.stdout, flush=True)
        command = ["hatch", "run", script, *arguments]
        done = subprocess.run(command, stdout=printed, stderr=printed, check=False)
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    main()
