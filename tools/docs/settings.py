"""Write the tables of `docs/guides/settings.md` from the classes of the settings.

`python tools/docs/settings.py` prints the tables, `--write` puts them into the page.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from treefold_http import ContractSettings, ServeSettings, Settings
from treefold_http._runtime.serve_settings import SERVE_PREFIX
from treefold_http._runtime.settings import ADDRESS_VARIABLES, APP_PREFIX

PAGE = Path(__file__).resolve().parents[2] / "docs/guides/settings.md"
BEGIN, END = "<!-- settings: python tools/docs/settings.py --write -->\n", "<!-- end -->\n"
_ATTRIBUTE = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)
_WORDS: Mapping[Any, str] = {
    Mapping: "table",
    bool: "true or false",
    int: "whole number",
    float: "number",
    tuple: "list of texts",
    str: "text",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One setting as the page shows it."""

    name: str
    kind: str
    default: str
    variable: str
    text: str


SECTIONS = (ContractSettings, ServeSettings)
"""Settings that are tables of their own."""


def rows(settings: type[Settings | ServeSettings | ContractSettings]) -> Iterator[Row]:
    """Yield the settings of a class in the order of their declaration."""
    described = dict(_ATTRIBUTE.findall(inspect.cleandoc(settings.__doc__ or "")))
    types = typing.get_type_hints(settings)
    empty = settings()
    for field in dataclasses.fields(settings):
        if types[field.name] in SECTIONS:
            continue
        yield Row(
            field.name,
            _kind(types[field.name]),
            _default(getattr(empty, field.name)),
            _variable(field.name, settings),
            re.sub(r"\s+", " ", described[field.name]).rstrip("."),
        )


def _kind(wanted: Any) -> str:
    if typing.get_origin(wanted) is Literal:
        return " or ".join(f"`{option}`" for option in typing.get_args(wanted))
    options = {typing.get_origin(one) or one for one in (wanted, *typing.get_args(wanted))}
    return next(words for kind, words in _WORDS.items() if kind in options)


def _default(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, (tuple, Mapping)) or value == "":
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _variable(name: str, settings: type) -> str:
    if settings is ContractSettings:
        return ""
    if settings is ServeSettings:
        return SERVE_PREFIX + name.upper()
    if name == "silenced":
        return ""  # a table that no variable sets
    if name in ADDRESS_VARIABLES:
        return ADDRESS_VARIABLES[name]
    return f"{APP_PREFIX}<NAME>" if name == "app" else f"TREEFOLD_{name.upper()}"


def tables() -> str:
    """Return the part of the page that is generated."""
    lines = ["| Setting | Type | Default | Variable | Effect |", "|---|---|---|---|---|"]
    lines += map(_line, rows(Settings))
    lines += ["", "Settings of `treefold serve`, in the table `[serve]`:", ""]
    lines += lines[:2]
    lines += map(_line, rows(ServeSettings))
    lines += ["", "Settings of `treefold contract`, in the table `[contract]`:", ""]
    lines += lines[:2]
    lines += map(_line, rows(ContractSettings))
    return "\n".join([*lines, ""])


def _line(row: Row) -> str:
    variable = f"`{row.variable}`" if row.variable else "none"
    cells = (f"`{row.name}`", row.kind, row.default, variable, row.text)
    return f"| {' | '.join(cells)} |"


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
