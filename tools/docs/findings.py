"""Write the tables of `docs/guides/deployment-checks.md` from the kinds of findings.

`python tools/docs/findings.py` prints the tables, `--write` puts them into the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from treefold_http.deploy import SUBJECTS

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/deployment-checks.md"
BEGIN, END = "<!-- findings: python tools/docs/findings.py --write -->\n", "<!-- end -->\n"


def tables() -> str:
    """Return the part of the page that is generated: a table for each subject."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    for subject, kinds in SUBJECTS.items():
        yield f"### {subject}\n"
        yield "| Finding | | Mistake | An attacker |"
        yield "|---|---|---|---|"
        for kind in kinds:
            yield f"| `{kind.id}` | {kind.severity} | {kind.title} | {kind.attack} |"
        yield ""


def main() -> None:
    """Print the tables, or write them into the page."""
    if "--write" not in sys.argv:
        print(tables())
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{tables()}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
