"""The text of types: `int >=1 | null`, `[User]`, `"admin" | "member" | ...`.

The text has one form for each type, so that equal types are equal lines:

    type    = option ("|" option)* ["|" "..."] ["tag" name]
    option  = "any" | "foreign" text | scalar | literal ["(" member ")"] | name
            | "[" type "]" ["items" range] ["unique"] | "(" type "," ... ")" | "{" type ":" type "}"
    scalar  = kind [format] ["lax"] [">=" n] [">" n] ["<=" n] ["<" n] ["step" n]
              ["len" range] ["match" text]
    range   = [n] ".." [n]

Literals are JSON. Literals that follow each other are one choice, and `...` after a literal opens
the choice; after another option it opens the union. A name that begins with a small letter, as
words of this grammar do, has `$` before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from treefold_contract._types.literals import read_literal, write_literal
from treefold_contract._types.nodes import (
    AnyType,
    Choice,
    ChoiceValue,
    ForeignType,
    ListType,
    MapType,
    Reference,
    Scalar,
    TupleType,
    TypeNode,
    UnionType,
)

WORD = re.compile(r"[^\W\d][\w@.-]*")
NUMBERS = (("minimum", ">="), ("above", ">"), ("maximum", "<="), ("below", "<"), ("step", "step"))
"""The attributes of `Limits` that hold one number, and the words before them."""


@lru_cache(maxsize=4096)
def write_type(node: TypeNode) -> str:
    """Return the text of a type."""
    match node:
        case AnyType():
            return "any"
        case ForeignType(name):
            return f"foreign {write_literal(name)}"
        case Scalar():
            return _write_scalar(node)
        case Choice():
            return _write_choice(node)
        case ListType(item):
            words = [f"[{write_type(item)}]"]
            if (node.min_items, node.max_items) != (None, None):
                words.append(f"items {_write_range(node.min_items, node.max_items)}")
            return " ".join([*words, "unique"] if node.is_unique else words)
        case TupleType(items):
            inside = ", ".join(map(write_type, items))
            return f"({inside},)" if len(items) == 1 else f"({inside})"
        case MapType(key, value):
            return f"{{{write_type(key)}: {write_type(value)}}}"
        case UnionType():
            return _write_union(node)
        case Reference(name):
            return write_name(name)


def write_name(name: str) -> str:
    """Return the name of a definition as the text has it.

    Raises:
        ValueError: the name is not letters, digits and `_`, with `@` before a version.
    """
    if not WORD.fullmatch(name):
        raise ValueError(f"Name of a type must be a word, got {name!r}")
    return f"${name}" if name[0].islower() else name


def write_key(name: str) -> str:
    """Return the name of a member or an input: plain if it is a word, else JSON."""
    return name if WORD.fullmatch(name) else write_literal(name)


def check_word(text: str) -> str:
    """Return a text that a line holds as it is.

    Raises:
        ValueError: it is empty, or has blanks.
    """
    if not text or text.split() != [text]:
        raise ValueError(f"Word of a lock must have no blanks, got {text!r}")
    return text


def _write_scalar(node: Scalar) -> str:
    limits = node.limits
    words: list[str] = [node.kind, node.format, "lax" if node.is_lax else ""]
    for attribute, sign in NUMBERS:
        number: int | float | None = getattr(limits, attribute)
        if number is not None:
            words.append(f"{sign} {number}" if sign.isalpha() else f"{sign}{number}")
    if (limits.min_length, limits.max_length) != (None, None):
        words.append(f"len {_write_range(limits.min_length, limits.max_length)}")
    if limits.pattern:
        words.append(f"match {write_literal(limits.pattern)}")
    return " ".join(filter(None, words))


def _write_choice(node: Choice) -> str:
    words = [
        f"{value.literal} ({value.name})" if value.name else value.literal
        for value in sort_values(node.values)
    ]
    return " | ".join([*words, "..."] if node.is_open else words)


def _write_union(node: UnionType) -> str:
    # a choice stands first, so that `...` at the end is never taken for its own
    options = sorted(node.options, key=lambda option: not isinstance(option, Choice))
    words = [*map(write_type, options), *(["..."] if node.is_open else [])]
    return " | ".join(words) + (f" tag {write_key(node.tag)}" if node.tag else "")


def sort_values(values: Iterable[ChoiceValue]) -> list[ChoiceValue]:
    """Return the values of a choice in the order of a lock: by kind, then by size."""
    return sorted(values, key=_value_order)


def _value_order(value: ChoiceValue) -> tuple[int, float, str]:
    parsed = read_literal(value.literal)
    if isinstance(parsed, (int, float)) and not isinstance(parsed, bool):
        return 0, parsed, ""
    return 1, 0, value.literal


def _write_range(least: int | None, most: int | None) -> str:
    return f"{'' if least is None else least}..{'' if most is None else most}"
