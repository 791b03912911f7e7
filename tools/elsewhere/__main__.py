"""`python tools/elsewhere [NAME ...]`: the quick suites and the pages under other conditions.

Without a name every condition of `conditions.py`, one after the other. What a condition needs of
the machine is looked for first; if something is missing it is named, and nothing runs. After each
suite nothing may be left behind (`leftovers.py`). `--only pages --options="-k jobs"` runs the
suites with that word, and hands on the options.
`--list` explains the conditions, `--names` prints their names as JSON. The exit code is 1 if a
suite has failed or has left something.
"""

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from elsewhere.conditions import CONDITIONS, NOT_SHIFTED, Condition
from elsewhere.needs import missing_needs


def main() -> None:
    options = parse_options()
    if options.list:
        print(*explain_conditions(), sep="\n")
        return
    if options.names:
        print(json.dumps([each.name for each in CONDITIONS]))
        return
    chosen = [condition_by_name(name) for name in options.conditions] or list(CONDITIONS)
    require_needs(chosen)
    from elsewhere.runs import run_condition  # it needs the environment, the lists do not

    signal.signal(signal.SIGTERM, stop)

    lines = [run_condition(condition, options.only, options.options) for condition in chosen]
    print("\nelsewhere:", *lines, sep="\n")
    sys.exit(any("FAILED" in line for line in lines))


def stop(number: int, frame: object) -> None:
    """End as an error does, so that what was made is removed."""
    sys.exit(128 + number)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hatch run elsewhere")
    parser.add_argument("conditions", nargs="*", metavar="NAME")
    parser.add_argument("--only", default="", metavar="WORD", help="suites with that word")
    parser.add_argument("--options", default="", metavar="TEXT", help="more words for each suite")
    parser.add_argument("--list", action="store_true", help="explain the conditions")
    parser.add_argument("--names", action="store_true", help="the names as JSON")
    return parser.parse_args()


def explain_conditions() -> Iterator[str]:
    width = max(len(each.name) for each in CONDITIONS)
    yield from (f"{each.name:{width}}  {each.changes}" for each in CONDITIONS)
    yield "\nWhat a shifted clock leaves as it is:"
    yield from (f"  {name}: {reason}" for name, reason in NOT_SHIFTED.items())


def condition_by_name(name: str) -> Condition:
    known = {each.name: each for each in CONDITIONS}
    if name not in known:
        sys.exit(f"Unknown condition {name!r}; use one of {', '.join(known)}")
    return known[name]


def require_needs(conditions: list[Condition]) -> None:
    lines = [f"{each.name} needs {need}" for each in conditions for need in missing_needs(each)]
    if lines:
        sys.exit("\n".join(lines))


if __name__ == "__main__":
    main()
