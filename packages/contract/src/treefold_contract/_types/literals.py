"""JSON literals as a lock holds them: one text for each value."""

from __future__ import annotations

import json

from treefold_contract._types.nodes import JsonValue


def write_literal(value: JsonValue) -> str:
    """Return JSON in the one form that locks hold."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


def read_literal(literal: str) -> JsonValue:
    """Return the value of a JSON text."""
    value: JsonValue = json.loads(literal)
    return value


def format_text(literal: str) -> str:
    """Return the text of a literal in a path or a query: `a` of `"a"`, `1` of `1`."""
    value = read_literal(literal)
    return value if isinstance(value, str) else literal
