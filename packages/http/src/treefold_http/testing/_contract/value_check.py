"""Where does a value leave its declared types? As text for a person, secrets masked.

    types     the value as it was sent        Difference(place, declared, got)
    Page      {"items": [{"price": "2"}]}     ".items[0].price"  "float"  '"2"'
    Tick      event data: now                 ""                 "Tick"   '"now"'
    int       a header field: seven           ""                 "int"    '"seven"'

A value that fits one of the types fits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

from treefold_contract import (
    AnyType,
    Definition,
    JsonValue,
    Member,
    Mismatch,
    Record,
    Reference,
    Scalar,
    TypeNode,
    find_mismatch,
    write_type,
)
from treefold_logging import mask

PROBLEM_NODE = Reference("problem")
"""The type of a problem document."""
_TEXT = Scalar("str")
_PROBLEM_MEMBERS = (
    Member("type", _TEXT, is_optional=True),
    Member("title", _TEXT, is_optional=True),
    Member("status", Scalar("int"), is_optional=True),
    Member("detail", _TEXT, is_optional=True),
    Member("instance", _TEXT, is_optional=True),
)
"""The members of RFC 9457; each may be left out."""
_LONGEST = 120
"""Characters of a value that a message shows."""


class Difference(NamedTuple):
    """A part of a value that is not declared, as text for a person.

    Attributes:
        place: where in the value; empty for the whole of it.
        declared: the type that is declared there.
        got: what was sent, secrets masked.
    """

    place: str
    declared: str
    got: str


class ValueCheck:
    """Compares values with types.

    Args:
        definitions: what references of the types lead to.
    """

    def __init__(self, definitions: Mapping[str, Definition]) -> None:
        self._definitions = {**definitions, PROBLEM_NODE.name: Record(_PROBLEM_MEMBERS)}

    def compare_json(self, types: Sequence[TypeNode], text: bytes | str) -> Difference | None:
        """Return how a text differs that must be JSON of one of the types, or None."""
        try:
            value = _parse_json(text)
        except (ValueError, RecursionError):
            return Difference("", write_types(types), "no valid JSON")
        return self._compare(types, value)

    def compare_event(self, types: Sequence[TypeNode], text: str) -> Difference | None:
        """Return how the data of an event differs, which is JSON or a text as it is, or None."""
        if self._compare(types, text) is None:
            return None
        try:
            value = _parse_json(text)
        except (ValueError, RecursionError):
            value = text
        return self._compare(types, value)

    def compare_field(self, declared: TypeNode, name: str, values: list[str]) -> Difference | None:
        """Return how the values of a header field differ, or None.

        They are one text, a list with commas, or JSON.
        """
        parts: list[JsonValue] = [part.strip() for each in values for part in each.split(",")]
        readings = [parts, values[0]] if len(values) == 1 else [parts]
        if any(self._find_mismatch(declared, each, is_text=True) is None for each in readings):
            return None
        text = ", ".join(values)
        try:
            if self._find_mismatch(declared, _parse_json(text)) is None:
                return None
        except (ValueError, RecursionError):
            pass
        shown = _cut(json.dumps(mask({name: text})[name], ensure_ascii=False))
        return Difference("", write_types([declared]), shown)

    def accepts_null(self, declared: TypeNode) -> bool:
        """Return True if null is a value of a type of which something is known."""
        return declared != AnyType() and self._find_mismatch(declared, None) is None

    def _compare(self, types: Sequence[TypeNode], value: JsonValue) -> Difference | None:
        found = [self._find_mismatch(each, value) for each in types]
        if not all(found) or found[0] is None:
            return None
        return Difference(
            found[0].place, write_types([found[0].declared]), _describe_value(found[0], value)
        )

    def _find_mismatch(
        self, declared: TypeNode, value: JsonValue, *, is_text: bool = False
    ) -> Mismatch | None:
        return find_mismatch(
            declared,
            value,
            alphabet="text" if is_text else "json",
            definitions=self._definitions,
        )


def write_types(types: Sequence[TypeNode]) -> str:
    """Return the text of types; a problem is called so."""
    texts = [PROBLEM_NODE.name if each == PROBLEM_NODE else write_type(each) for each in types]
    return " or ".join(dict.fromkeys(texts))


def _parse_json(text: bytes | str) -> JsonValue:
    value: JsonValue = json.loads(text, parse_constant=_refuse_constant)
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError(f"JSON has no {name}")


def _describe_value(found: Mismatch, whole: JsonValue) -> str:
    """Return the text of a part of a value, masked as the log masks it."""
    if found.is_missing:
        return "no such member"
    shown: Any = mask({"": whole})[""]
    for step in found.path:
        if not isinstance(shown, (dict, list)):  # the mask of a container
            break
        container: Any = cast("Any", shown)
        shown = container[step]
    return _cut(json.dumps(shown, ensure_ascii=False))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
