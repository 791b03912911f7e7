"""`python tools/lanes.py COUNT SCRIPT ... -- ARGUMENT ...` runs hatch scripts, COUNT at a time.

Each lane takes the next script of the list as soon as it is free, so that the lanes end together
if the longest scripts come first. All get the same arguments. The first lane is watched as it runs;
what the others print comes when it has ended, script by script. No script is left out: the exit
code is that of one that failed. The last lines are the minutes of each script, its processor time
beside them, and the notes of test runs, such as the browser tests that were skipped without one.
"""

import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO


@dataclass(frozen=True, slots=True)
class Done:
    """A script that has ended; its processor time is None where the system does not tell it."""

    script: str
    code: int
    seconds: float
    processor: float | None
    printed: str

    @property
    def line(self) -> str:
        processor = "" if self.processor is None else f", processor {minutes(self.processor)}"
        failed = f", exit code {self.code}" if self.code else ""
        return f"hatch run {self.script}: {minutes(self.seconds)}{processor}{failed}"


def main() -> None:
    words = sys.argv[1:]
    split = words.index("--") if "--" in words else len(words)
    count, *scripts = words[:split] or [""]
    if not count.isdigit() or int(count) < 1 or not scripts:
        sys.exit("usage: python tools/lanes.py COUNT SCRIPT ... [-- ARGUMENT ...]")
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder, "notes")
        notes.touch()
        os.environ["TREEFOLD_TEST_NOTES"] = os.fspath(notes)
        ended = run_lanes(int(count), scripts, words[split + 1 :])
        print("", *(done.line for done in ended), sep="\n")
        for line in dict.fromkeys(notes.read_text(encoding="utf-8").splitlines()):
            print(line)
    sys.exit(next((done.code for done in ended if done.code), 0))


def run_lanes(count: int, scripts: list[str], arguments: list[str]) -> list[Done]:
    """Run all scripts; return them in the order of the list."""
    waiting = deque(scripts)
    with ThreadPoolExecutor(count) as threads:
        beside = [threads.submit(run_lane, waiting, arguments) for _ in range(count - 1)]
        ended = run_lane(waiting, arguments, watched=True)
        for lane in beside:
            for done in lane.result():
                print(done.printed, end="", flush=True)
                ended.append(done)
    return sorted(ended, key=lambda done: scripts.index(done.script))


def run_lane(waiting: deque[str], arguments: list[str], *, watched: bool = False) -> list[Done]:
    ended: list[Done] = []
    while waiting:
        try:
            script = waiting.popleft()
        except IndexError:  # another lane was quicker
            break
        if watched:
            ended.append(run_script(script, arguments, None))
            continue
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed:
            ended.append(run_script(script, arguments, printed))
    return ended


def run_script(script: str, arguments: list[str], printed: IO[str] | None) -> Done:
    print(f"hatch run {script}", file=printed or sys.stdout, flush=True)
    began = time.monotonic()
    command = ["hatch", "run", *shlex.split(script), *arguments]
    child = subprocess.Popen(command, stdout=printed, stderr=printed)
    processor = None
    if sys.platform == "win32":
        code = child.wait()
    else:
        _, status, usage = os.wait4(child.pid, 0)
        code = child.returncode = os.waitstatus_to_exitcode(status)
        processor = usage.ru_utime + usage.ru_stime
    if printed:
        printed.seek(0)
    text = printed.read() if printed else ""
    return Done(script, code, time.monotonic() - began, processor, text)


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


if __name__ == "__main__":
    main()
