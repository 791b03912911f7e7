"""Names of Python for tables and columns: plain, unique, and never those of something else."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Container

import treefold_orm
from treefold_orm import Model, ORMError
from treefold_orm.schema import quote

_EDGE = re.compile(r"(?<=[^\W\dA-Z])(?=[A-Z])|(?<=\d)(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_CLASSES = frozenset({*dir(builtins), *dir(treefold_orm), "Decimal", "Enum", "UUID", "Meta"})
_FIELDS = frozenset(
    {*dir(Model), "datetime", "decimal", "dict", "fields", "int", "list", "pk", "str", "uuid"}
)
"""Names no field can have: attributes of each model, and names that its class body reads."""


def is_quotable(name: str) -> bool:
    """True for a name of the database that the ORM can write."""
    try:
        quote(name)
    except ORMError:
        return False
    return True


def split_identifier_words(name: str) -> list[str]:
    """Return the words of a name, without characters that no identifier can hold."""
    # Python normalizes identifiers to NFKC: two columns could otherwise become one attribute
    plain = unicodedata.normalize("NFKC", name)
    # in front of it stands a letter, since a digit may be in an identifier and not begin one
    spaced = "".join(c if c != "_" and f"a{c}".isidentifier() else " " for c in plain)
    return [word for part in spaced.split() for word in _EDGE.split(part) if word]


def derive_class_name(table: str, taken: Container[str]) -> str:
    """Return the name of a model."""
    found = split_identifier_words(table)
    words = (w.capitalize() if w.isupper() else w[:1].upper() + w[1:] for w in found)
    name = unicodedata.normalize("NFKC", "".join(words))
    if not name.isidentifier():
        name = f"Table{name}"
    if keyword.iskeyword(name) or name in _CLASSES:
        name = f"{name}Table"
    return _make_unique(name, taken, "")


def derive_field_name(column: str, taken: Container[str]) -> str:
    """Return the name of a field."""
    name = unicodedata.normalize("NFKC", "_".join(split_identifier_words(column)).lower())
    if not name.isidentifier():
        name = f"field_{name}".rstrip("_")
    if keyword.iskeyword(name) or name in _FIELDS:
        name = f"{name}_field"
    return _make_unique(name, taken, "_")


def _make_unique(name: str, taken: Container[str], separator: str) -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name}{separator}{number}" in taken:
        number += 1
    return f"{name}{separator}{number}"


def sanitize_for_comment(text: str) -> str:
    """Return text for a comment or docstring, which it can neither end nor leave."""
    # a line end would leave the comment, and the rest of the name would be code
    shown = "".join(c if c.isprintable() else " " for c in text)
    return " ".join(shown.replace("\\", "/").replace('"', "'").split())
