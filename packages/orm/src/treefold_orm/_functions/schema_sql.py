"""SchemaSQL: text of the database's own language in constraints, indexes and defaults.

It is code of the application, as a template of `Func` is; columns enter by the names of fields, so
that they follow a rename. No query takes it.
"""

from __future__ import annotations

import re
import string

from treefold_orm._base.errors import ModelError
from treefold_orm._base.names import check_untainted
from treefold_orm._expressions.conditions import ResolvableCondition
from treefold_orm._expressions.naming import require_constraint_field
from treefold_orm._expressions.nodes import SchemaSQLNode
from treefold_orm._expressions.resolving import Resolvable
from treefold_orm._expressions.scope import Scope

_QUOTED = re.compile(r"'(?:[^'\0]|'')*'|\"(?:[^\"\x00-\x1f]|\"\")*\"")
_PLAIN = re.compile(r"[^'\"`;\x00-\x1f\x7f]*")


class SchemaSQL(ResolvableCondition, Resolvable):
    """SQL of one database, in `Meta.constraints`, `Meta.indexes` or a `db_default`:
    `CheckConstraint(SchemaSQL("length({}) > 2", "code"), name="long_enough")`.

    `{}` stands for a column, which is named by its field; braces of the SQL itself are doubled.
    Raises `ModelError` for text that is more than one expression.
    """

    is_native = True

    def __init__(self, text: str, *fields: str) -> None:
        check_untainted(text)
        wanted = _check_and_count_placeholders(text)
        if wanted != len(fields):
            raise ModelError(
                f"SchemaSQL({text!r}) takes {wanted} names of fields, got {len(fields)}"
            )
        self.text = text
        self.fields = fields

    def resolve(self, scope: Scope) -> SchemaSQLNode:
        columns = tuple(require_constraint_field(scope.meta, name) for name in self.fields)
        return SchemaSQLNode(None, self.text, columns)

    def resolve_condition(self, scope: Scope) -> SchemaSQLNode:
        return self.resolve(scope)


def _check_and_count_placeholders(text: str) -> int:
    try:
        names = [name for _, name, *_ in string.Formatter().parse(text)]
    except ValueError:
        raise ModelError(f"SchemaSQL must double braces of its own, got {text!r}") from None
    # inside of quotes any sign is harmless; a quote that is left over begins a text without an end
    plain = _QUOTED.sub("''", text)
    outside = plain.replace("''", "")
    # a comment would take the rest of the statement with it
    whole = _PLAIN.fullmatch(outside) and "--" not in outside and "/*" not in outside
    if not (whole and plain.strip() and _has_balanced_parentheses(outside)) or any(names):
        raise ModelError(
            f"SchemaSQL must be one expression without comments, and {{}} for columns, got {text!r}"
        )
    return names.count("")


def _has_balanced_parentheses(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        # `) , (` is balanced by number, and would end the parentheses of the CHECK
        if depth < 0:
            return False
    return depth == 0
