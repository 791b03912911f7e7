"""Write the table of `docs/guides/contract-rules.md` from the rules of treefold-contract.

`python tools/docs/contract_rules.py` prints the table, `--write` puts it into the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from treefold_contract import RULES

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/contract-rules.md"
BEGIN, END = "<!-- rules: python tools/docs/contract_rules.py --write -->\n", "<!-- end -->\n"


def table() -> str:
    """Return the part of the page that is generated."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    yield "| Row | Rule | Change | Request | Answer |"
    yield "|---:|---|---|---|---|"
    for rule in RULES.values():
        verdicts = [rule.request or "-", rule.response or "-"]
        request, answer = (
            f"{each} *" if rule.is_law and each != "-" else each for each in verdicts
        )
        yield f"| {rule.number or ''} | `{rule.id}` | {rule.change} | {request} | {answer} |"


def main() -> None:
    """Print the table, or write it into the page."""
    if "--write" not in sys.argv:
        print(table())
        return
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
