"""JSONObject: a JSON document made of values."""

from __future__ import annotations

from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.arguments import make_constant
from treefold_orm._expressions.casts import cast_to
from treefold_orm._expressions.conversion import classify_field, count_decimal_places, describe_type
from treefold_orm._expressions.nodes import ConstNode, Expr, FuncNode
from treefold_orm._expressions.operands import FUNCTION_RULES
from treefold_orm._expressions.resolving import Resolvable, resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import TEXT, infer_value_field
from treefold_orm._terms.values import as_expression

_JSON: AnyField = infer_value_field({})
_PLAIN = frozenset({"integer", "float", "number", "text", "boolean", "json"})
_WRITTEN = frozenset({"date", "datetime", "time", "uuid"})
_MOST = 50  # pairs; PostgreSQL takes 100 arguments


class JSONObject(Resolvable):
    """A JSON object: `JSONObject(name="author__name", total=Sum("price"), kind=Value("x"))`.

    A name given as a value means a field. Numbers are JSON numbers (a Decimal too, which is then
    read as a float), dates, times and UUIDs are text as `Cast(..., str)` writes them, NULL is null.

    Raises `FieldError` for values that JSON has no form for.
    """

    def __init__(self, **values: Any) -> None:
        if len(values) > _MOST:
            raise FieldError(f"JSONObject must be given at most {_MOST} values, got {len(values)}")
        self.values = values

    def resolve(self, scope: Scope) -> Expr:
        nested = scope.enter_level()
        args: list[Expr] = []
        for name in sorted(self.values):  # as JSON fields write their keys
            value = resolve(as_expression(self.values[name]), nested)
            # names are bound, too, and belong to the shape of the query
            args += [ConstNode(TEXT, TEXT.coerce(name)), _convert_to_json(value)]
        return FuncNode(_JSON, "json_object", tuple(args))


def _convert_to_json(node: Expr) -> Expr:
    # how a value is written depends on its type, which an OuterRef learns later
    if node.field is None:
        return FuncNode(None, "json_value", (node,))
    kind = classify_field(node.field)
    if kind == "decimal":
        return FuncNode(
            None, "json_of_decimal", (node, make_constant(count_decimal_places(node.field)))
        )
    if kind in _PLAIN:
        return FuncNode(None, f"json_of_{kind}", (node,))
    if kind in _WRITTEN:
        return FuncNode(None, "json_of_text", (cast_to(node, TEXT),))
    raise FieldError(
        "JSONObject must be given values that JSON has a form for, got"
        f" {describe_type(node.field)}; "
        "convert it with Cast()"
    )


FUNCTION_RULES.update(
    {
        f"json_{name}": lambda args, option: _convert_to_json(args[0])
        for name in ("value", "of_decimal", *(f"of_{kind}" for kind in _PLAIN))
    }
)
