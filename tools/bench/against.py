"""Hold these packages against those of an earlier commit, in batches that take turns.

    hatch run bench-against COMMIT http [--pairs 5] [--only in-process|middleware] [--rounds 40]
    hatch run bench-against COMMIT orm [--backend sqlite] [--only rows]
    hatch run bench-against COMMIT migrations

Both run the bench of this checkout in this environment, each over its own packages. The ratio of a
pair of processes is the median of the ratios of neighbouring batches, the earlier commit below. A
figure is the median of several pairs: where the memory of a process lies changes a row by up to 3 %
for as long as that process lives. The exit status is 1 if a row takes more than `BAR` times as
long, or is missing on one side.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import TypeAlias

sys.path.append(str(Path(__file__).resolve().parents[1]))

from archives import unpack
from turns import PIPES, WAITS

BAR = 1.02
ROOT = Path(__file__).resolve().parents[2]
BENCHES = {
    "http": ["http_bench.py"],
    "orm": ["orm_bench.py", "--only", "rows", "--only", "relations"],
    "migrations": ["migrations_bench.py"],
}


Rows: TypeAlias = Mapping[str, list[float]]
Pair: TypeAlias = tuple[Rows, Rows]
"""The rows of the earlier commit and of the checkout."""


class Side:
    """One state of the packages: its process, and the rows that it has handed over."""

    def __init__(self, root: Path, command: list[str]) -> None:
        self.rows: dict[str, list[float]] = {}
        leave, give_leave = os.pipe()
        notes, write_notes = os.pipe()
        sources = os.pathsep.join(str(each) for each in sorted(root.glob("packages/*/src")))
        self.process = subprocess.Popen(
            command,
            env={**os.environ, "PYTHONPATH": sources, PIPES: f"{leave} {write_notes}"},
            pass_fds=(leave, write_notes),
            stdout=subprocess.DEVNULL,
        )
        os.close(leave)
        os.close(write_notes)
        self._give_leave = os.fdopen(give_leave, "w", buffering=1)
        self._notes = os.fdopen(notes)
        self.waits = self._read_on()

    def run_batch(self) -> None:
        """Send the leave for one batch, and read on until the process waits for the next."""
        print("go", file=self._give_leave)
        self.waits = self._read_on()

    def _read_on(self) -> bool:
        for line in self._notes:
            if line.strip() == WAITS:
                return True
            name, figures = json.loads(line)
            self.rows[name] = figures
        return False


def main() -> None:
    """Run a bench on both sides and print a line for each row."""
    parser = argparse.ArgumentParser(
        prog="hatch run bench-against",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("commit")
    parser.add_argument("bench", choices=BENCHES)
    parser.add_argument("--pairs", type=int, default=5, help="pairs of processes, 5 by default")
    options, arguments = parser.parse_known_args()
    script, *words = BENCHES[options.bench]
    words = arguments if "--only" in arguments else [*words, *arguments]
    command = [sys.executable, str(ROOT / "tools" / "bench" / script), *words]
    pairs: list[Pair] = []
    with tempfile.TemporaryDirectory(prefix="treefold-bench-") as folder:
        unpack_packages(options.commit, Path(folder))
        for _ in range(options.pairs):
            former, ours = Side(Path(folder), command), Side(ROOT, command)
            take_turns(former, ours)
            codes = [side.process.wait() for side in (former, ours)]
            if any(code not in {0, 1} for code in codes):  # 1: a bar of its own was missed
                sys.exit(f"A bench has failed, exit codes {codes}")
            pairs.append((former.rows, ours.rows))
    sys.exit(not print_rows(pairs))


def unpack_packages(commit: str, folder: Path) -> None:
    """Write the packages of a commit into a folder."""
    command = ["git", "-C", str(ROOT), "archive", commit, "packages"]
    archive = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        unpack(files, folder)


def take_turns(former: Side, ours: Side) -> None:
    """Run the batches of both as neighbours, every second time the other one first."""
    order = [former, ours]
    while all(side.waits for side in order):
        for side in order:
            side.run_batch()
        order.reverse()
    for side in order:  # one that has more batches than the other
        while side.waits:
            side.run_batch()


def print_rows(pairs: Sequence[Pair]) -> bool:
    """Print the rows of both; return True if each is there and keeps the bar."""
    names = dict.fromkeys(name for pair in pairs for rows in pair for name in rows)
    good = bool(names)
    for name in names:
        if not all(name in rows for pair in pairs for rows in pair):
            print(f"{name:42} not on both sides of each pair")
            good = False
            continue
        ratios = [ratio_of(ours[name], former[name]) for former, ours in pairs]
        ratio = median(ratios)
        good = good and ratio <= BAR
        before, now = (median(median(pair[side][name]) for pair in pairs) for side in (0, 1))
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        print(
            f"{name:42} {before:10.2f} -> {now:10.2f}  {ratio:6.3f}  ({spread})"
            f"  {'ABOVE' if ratio > BAR else 'ok'}"
        )
    return good


def ratio_of(ours: Sequence[float], former: Sequence[float]) -> float:
    """Return the median of the ratios of neighbouring batches."""
    pairs = zip(ours, former, strict=False)
    return median(mine / theirs if theirs else 1.0 + mine for mine, theirs in pairs)


if __name__ == "__main__":
    main()
