"""`hatch run arrangements [--count 2000] [--first 0] [--seed N ...] [--parser h11] [--jobs 2]`.

Without a seed it counts; with one it prints the arrangement, the files that matter and all that is
wrong with it. The exit code is 1 if anything is, if too few arrangements boot, or if caches are of
no use.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections import Counter

from http_redis import started

from arrangements.arrangement import Cover
from arrangements.counting import Counts, count_arrangements
from arrangements.drawing import draw_arrangement
from arrangements.project import write_files
from arrangements.running import Outcome


def main() -> int:
    """Run the arrangements that the arguments name."""
    given = _read_arguments()
    seeds = given.seed or range(given.first, given.first + given.count)
    began = time.monotonic()
    with started() as redis:
        counts = count_arrangements(seeds, redis=redis.url, parser=given.parser, jobs=given.jobs)
    if given.seed:
        for outcome in counts.outcomes:
            print(describe_seed(outcome))
    else:
        print_failures(counts, most=given.most)
    spent = os.times()
    processor = spent.user + spent.system + spent.children_user + spent.children_system
    print(counts.summary())
    print(f"{time.monotonic() - began:.0f} s, {processor:.0f} s of processor time")
    problems = counts.problems if not given.seed else [*counts.failing, *counts.unclear]
    for problem in counts.problems if not given.seed else ():
        print(f"FAILED: {problem}")
    return 1 if problems else 0


def _read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hatch run arrangements")
    parser.add_argument("--seed", type=int, nargs="+", help="these, with everything about them")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--count", type=int, default=2000, help="how many seeds")
    parser.add_argument("--parser", choices=["h11", "httptools"], help="on the wire")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--most", type=int, default=10, help="failing seeds that are shown")
    return parser.parse_args()


def print_failures(counts: Counts, *, most: int) -> None:
    """Print the first failing seeds, and all refusals by their message."""
    for outcome in counts.failing[:most]:
        print(f"hatch run arrangements --seed {outcome.seed}  # {describe_draw(outcome.seed)}")
        first_of_kind = {finding.kind: finding for finding in reversed(outcome.findings)}
        for finding in first_of_kind.values():
            print(f"  {finding.kind}: {finding.text}")
    print("failing seeds:", *(outcome.seed for outcome in counts.failing))
    refusals = Counter(each.refusal for each in counts.outcomes if each.refusal)
    for refusal, number in refusals.most_common():
        print(f"{number} refused: {refusal}")


def describe_draw(seed: int) -> str:
    """Return an arrangement in one line."""
    drawn = draw_arrangement(seed)
    guard = drawn.guard if drawn.cover is Cover.LIST else f"{drawn.guard} {drawn.cover}"
    if drawn.cover is Cover.UNDER:
        guard += f" /{'/'.join(drawn.prefix)}"
    caches = " and ".join(sorted(drawn.caches)) or "no cache"
    entries = ", ".join(drawn.entries)
    return (
        f"{drawn.credential} by {drawn.reading}; guard: {guard}; {caches}, {drawn.cache_key};"
        f" [{entries}]"
    )


def describe_seed(outcome: Outcome) -> str:
    """Return all about one seed: the arrangement, its files, the findings."""
    arrangement = draw_arrangement(outcome.seed)
    lines = [f"seed {outcome.seed}"]
    lines += [
        f"  {f.name}: {getattr(arrangement, f.name)}" for f in dataclasses.fields(arrangement)
    ]
    for name, text in write_files(arrangement, "redis://127.0.0.1").items():
        if name.endswith(("Get.py", "Post.py", "Socket.py", "Middleware/__init__.py", "hooks.py")):
            lines += [f"--- {name}", text.strip()]
    lines += ["---", f"refused: {outcome.refusal}", f"hits: {outcome.hits}"]
    lines += [f"{finding.kind}: {finding.text}" for finding in outcome.findings]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
