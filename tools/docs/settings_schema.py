"""Write `docs/treefold.schema.json`, by which editors check and complete `treefold.toml`.

`python tools/docs/settings_schema.py` fails if the file is not that of the settings' classes;
`--write` writes it. The site serves it, and `treefold new` names it in the first line of the file.
"""

from __future__ import annotations

import json
import sys
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parent))

from settings import SECTIONS, rows
from treefold_http import Settings

FILE = Path(__file__).resolve().parents[2] / "docs/treefold.schema.json"
ADDRESS = "https://treefold.github.io/treefold/latest/treefold.schema.json"
_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    tuple: {"type": "array", "items": {"type": "string"}},
    Mapping: {"type": "object", "additionalProperties": {"type": "string"}},
}
_OPEN = {"app"}
"""Tables of the project's own, of any content."""


def make_schema() -> dict[str, Any]:
    """Return the schema: JSON Schema draft 7, which editors of TOML know."""
    properties = describe_settings(Settings)
    tests = properties["test_databases"]
    properties["test"] = {
        "type": "object",
        "additionalProperties": False,
        "description": "Settings of test runs.",
        "properties": {"databases": tests},
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": ADDRESS,
        "title": "Settings of a treefold project: treefold.toml",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def describe_settings(settings: Any) -> dict[str, Any]:
    """Return the properties of a class of settings, those of its tables included."""
    types = typing.get_type_hints(settings)
    texts = {row.name: row.text for row in rows(settings)}
    described: dict[str, Any] = {}
    for name, wanted in types.items():
        if wanted in SECTIONS:
            described[name] = {
                "type": "object",
                "additionalProperties": False,
                "properties": describe_settings(wanted),
            }
        else:
            text = texts[name][0].upper() + texts[name][1:] + "."
            described[name] = {**describe_type(name, wanted), "description": text}
    return described


def describe_type(name: str, wanted: Any) -> Mapping[str, Any]:
    """Return the schema of the values of a setting."""
    if typing.get_origin(wanted) is Literal:
        return {"enum": list(typing.get_args(wanted))}
    if name in _OPEN:
        return {"type": "object"}
    origin = typing.get_origin(wanted)
    options = {origin} if origin in _PLAIN else {wanted, *typing.get_args(wanted)}
    return next(schema for kind, schema in _PLAIN.items() if kind in options)


def main() -> None:
    """Compare the file, or write it."""
    text = json.dumps(make_schema(), indent=2) + "\n"
    if "--write" in sys.argv:
        FILE.write_text(text, encoding="utf-8")
    elif not FILE.exists() or FILE.read_text(encoding="utf-8") != text:
        sys.exit(f"{FILE.name} is not current; python tools/docs/settings_schema.py --write")


if __name__ == "__main__":
    main()
