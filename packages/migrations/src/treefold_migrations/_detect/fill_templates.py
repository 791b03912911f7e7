"""A value for existing rows that is made of other columns: `--fill book.slug:{title}-{id}`.

    book.slug:{title}-{id}     Concat(F("title"), Value("-"), Cast("id", fields.TextField()))
    book.rank:{id}             F("id")
    book.slug:'{title}'        the text {title} itself

Each row gets its own value, which a unique field needs. Braces that hold no name are plain text.
"""

from __future__ import annotations

import re
from typing import Any

from treefold_migrations._base.errors import MigrationError
from treefold_orm import Cast, Concat, Expression, F, Value, fields
from treefold_orm.schema import Meta

BY_ROW = ". It is unique: a name in braces, such as {id}, gives each row its own value"
_NAME = re.compile(r"\{([^\W\d]\w*)\}")


def parse_fill_template(meta: Meta, name: str, text: str) -> Expression | None:
    """Return the expression that a text with names in braces stands for, None for another text.

    Args:
        meta: the table, as it is with the field that is filled.
        name: that field.
        text: what `--fill` gives.

    Raises `MigrationError` for a name that is no other field of the table, and for text around a
    name where the field holds no text.
    """
    pieces = _NAME.split(text)  # text and names by turns
    if len(pieces) == 1:
        return None
    given = f"--fill {meta.table}.{name}:{text}"
    for read in pieces[1::2]:
        if read not in meta.fields or read == name:
            others = ", ".join(sorted(set(meta.fields) - {name}))
            raise MigrationError(
                f"{given} names {read!r}, which is no other field of the table: it has {others}; "
                "text in quotes stands for itself"
            )
    if meta.fields[name].internal == "text":
        tagged = _tag_template_field_names(pieces)
        parts = [_cast_to_text(meta, piece) if odd else Value(piece) for odd, piece in tagged]
        return parts[0] if len(parts) == 1 else Concat(*parts)
    if len(pieces) > 3 or pieces[0] or pieces[2]:
        raise MigrationError(f"{given} must be one name in braces: the field holds no text")
    return F(pieces[1])


def _tag_template_field_names(pieces: list[str]) -> list[tuple[bool, str]]:
    return [(place % 2 == 1, piece) for place, piece in enumerate(pieces) if place % 2 or piece]


def _cast_to_text(meta: Meta, name: str) -> Any:
    return F(name) if meta.fields[name].internal == "text" else Cast(name, fields.TextField())
