"""Updating and deleting all rows of a query. No I/O of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._base.statement import ATOMIC, Operation, Statement
from treefold_orm._expressions.conversion import convert_for_column
from treefold_orm._expressions.nodes import Expr
from treefold_orm._expressions.resolving import COMPUTED, resolve, resolve_value
from treefold_orm._expressions.steps import FromCTE
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._operations.own_database import check_related_database
from treefold_orm._operations.protecting import has_protectors, refuse_protected_deletion
from treefold_orm._runtime.connections import database_for
from treefold_orm._terms.values import F

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery
    from treefold_orm._decode.plan import Plan


def update_rows(
    query: AnyQuery, values: Mapping[str, Any], *, returning: Sequence[AnyField] = ()
) -> Operation[Any]:
    """Set columns of all rows; return how many, or the new values of the columns in `returning`."""
    _refuse_cte_rows(query)
    if not values:
        raise FieldError("update() needs at least one field")
    scope = query._make_scope()
    whole, given = query._build_key_and_params()
    scope.params[:] = given
    sets: list[tuple[AnyField, Expr]] = []
    for name, value in values.items():
        check_untainted(name)
        field = query._meta.require_column(name)
        if field in query._meta.keys:
            raise FieldError(
                f"{query._meta.name}.{name} is the key and cannot be updated: insert a new row"
            )
        if isinstance(value, COMPUTED):
            sets.append((field, convert_for_column(resolve_value(value, scope), field)))
        else:
            if is_foreign_key(field) and isinstance(value, field.known_target.model):
                check_related_database(field, value, query._alias)
            sets.append((field, scope.add_param(field.clean(value), field)))
    version = query._meta.version
    # counted here too, or a save() of an instance that was read before would not notice this write
    if version is not None and all(field is not version for field, _ in sets):
        sets.append((version, convert_for_column(resolve(F(version.name) + 1, scope), version)))
    database = database_for(query._alias)
    back = tuple(returning)
    key = ("update", whole, tuple(sets), back)
    plan = database.find_plan(key, whole, tuple(sets), given=len(scope.params), returning=back)
    return (yield Statement("rows" if back else "count", plan.sql, bind_params(plan, scope.params)))


def delete_rows(query: AnyQuery) -> Operation[int]:
    """Delete all rows; raise `ProtectedError` where a foreign key protects one of them."""
    _refuse_cte_rows(query)
    guarded = has_protectors(query._meta)
    if guarded:
        yield ATOMIC
    database = database_for(query._alias)
    whole, given = query._build_key_and_params()
    plan = database.find_plan(("delete", whole), whole, given=len(given))
    if guarded:
        yield from refuse_protected_deletion(query)
    return (yield Statement("count", plan.sql, bind_params(plan, given)))


def _refuse_cte_rows(query: AnyQuery) -> None:
    for step in query._key[1:]:
        if isinstance(step, FromCTE):
            raise FieldError(
                "The rows of a CTE of values cannot be changed: filter the model by them, as in "
                "filter(pk__in=cte.objects.values(...))"
            )


def bind_params(plan: Plan, params: Sequence[object]) -> Sequence[object]:
    """The parameters of a query as the arguments of its plan."""
    return params if plan.bind is None else plan.bind(params)
