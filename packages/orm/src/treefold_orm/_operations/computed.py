"""Saving attributes that hold expressions: `post.views = F("views") + 1`, then `post.save()`.

The database computes, and the statement returns the stored values. Attributes take those values,
so that no expression is written twice. Generators; no I/O of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.journal import NO_ANSWER, mark_row_uncertain, set_attribute_with_undo
from treefold_orm._base.statement import Operation
from treefold_orm._building.own_rows import filter_by_key, filter_by_keys
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._expressions.resolving import resolve_value
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Instance, Meta
from treefold_orm._operations import row_state
from treefold_orm._operations.changing import update_rows

if TYPE_CHECKING:
    from treefold_orm._drivers.base import Database


def update_with_expressions(
    instance: Instance,
    database: Database,
    fields: Sequence[AnyField],
    automatic_values: dict[AnyField, Any],
) -> Operation[None]:
    """Update one row of which some fields hold expressions, or raise `StaleObject`.

    `automatic_values` are the values that the update writes by itself: times and the next version.
    """
    version = instance._meta.version
    query = filter_by_key(build_unfiltered_query(instance._meta, database.alias), instance.pk)
    if version is not None:
        query = query.filter(version.column == automatic_values[version] - 1)
    values = {
        f.name: automatic_values[f]
        if f in automatic_values
        else _clean_unless_expression(instance, f)
        for f in fields
    }
    try:
        found = yield from update_rows(
            query, values, returning=_select_computed_fields(fields, values)
        )
    except NO_ANSWER:
        mark_row_uncertain(instance)
        raise
    if len(found) != 1:
        raise (yield from row_state.diagnose_failed_update(instance, database.alias))
    for field, value in automatic_values.items():
        set_attribute_with_undo(instance, field.attname, value)
    _set_computed_values(instance, database, fields, values, found[0])


def bulk_update_with_expressions(
    meta: Meta, database: Database, rows: Sequence[Instance], fields: Sequence[AnyField]
) -> Operation[int]:
    """Update rows of which some fields hold expressions; return how many matched.

    Rows whose expressions are all equal share a statement, others have one each.
    """
    groups: dict[Any, list[Instance]] = {}
    for row in rows:
        groups.setdefault(_build_group_key(meta, database.alias, row, fields), []).append(row)
    total = 0
    for row in groups.pop(None, []):
        total += yield from _update_single_row(row, database, fields)
    for group in groups.values():
        total += yield from _update_group(meta, database, group, fields)
    return total


def _build_group_key(meta: Meta, alias: str, row: Instance, fields: Sequence[AnyField]) -> Any:
    """The common part of equal rows: the expressions and their values, None where a row differs
    in plain values or has a version of its own.
    """
    values = [row.__dict__.get(field.attname) for field in fields]
    if meta.version is not None or not all(map(row_state.is_expression, values)):
        return None
    scope = Scope(meta, [], {}, database=[alias])
    nodes = [
        resolve_value(value, scope, field) for value, field in zip(values, fields, strict=True)
    ]
    key = (tuple(nodes), tuple(map(repr, scope.params)))  # repr: a value may be a JSON document
    return key


def _update_single_row(
    row: Instance, database: Database, fields: Sequence[AnyField]
) -> Operation[int]:
    version = row._meta.version
    if row._row:
        given = {} if version is None else {version: row_state.read_loaded_value(row, version) + 1}
        yield from update_with_expressions(row, database, [*fields, *given], given)
        return 1
    query = filter_by_key(build_unfiltered_query(row._meta, database.alias), row.pk)
    values = {field.name: _clean_unless_expression(row, field) for field in fields}
    found = yield from update_rows(query, values, returning=_select_computed_fields(fields, values))
    for stored in found:
        _set_computed_values(row, database, fields, values, stored)
    return len(found)


def _update_group(
    meta: Meta, database: Database, group: Sequence[Instance], fields: Sequence[AnyField]
) -> Operation[int]:
    values = {field.name: group[0].__dict__[field.attname] for field in fields}
    query = filter_by_keys(build_unfiltered_query(meta, database.alias), [row.pk for row in group])
    # with the keys: neither database promises an order for RETURNING
    found = yield from update_rows(query, values, returning=(*meta.keys, *fields))
    decoders = [decode for _, _, decode in row_state.list_field_codecs(database, meta.keys)]
    stored = {
        tuple([raw if d is None else d(raw) for raw, d in zip(row, decoders, strict=False)]): row
        for row in found
    }
    for row in group:
        key = tuple([getattr(row, part.attname) for part in meta.keys])
        if key in stored:
            _set_computed_values(row, database, fields, values, stored[key][len(key) :])
    return len(found)


def _clean_unless_expression(instance: Instance, field: AnyField) -> Any:
    value = instance.__dict__[field.attname]
    return (
        value if row_state.is_expression(value) else row_state.clean_and_set_value(instance, field)
    )


def _select_computed_fields(fields: Sequence[AnyField], values: dict[str, Any]) -> list[AnyField]:
    return [field for field in fields if row_state.is_expression(values[field.name])]


def _set_computed_values(
    instance: Instance,
    database: Database,
    fields: Sequence[AnyField],
    values: dict[str, Any],
    stored: Sequence[Any],
) -> None:
    """Set the computed values on the instance, and note the values of all written columns."""
    computed = iter(stored)
    raw: list[Any] = []
    for field, encode, decode in row_state.list_field_codecs(database, tuple(fields)):
        value = values[field.name]
        if row_state.is_expression(value):
            raw.append(next(computed))
            made = raw[-1] if decode is None or raw[-1] is None else decode(raw[-1])
            set_attribute_with_undo(instance, field.attname, made)
        else:
            raw.append(value if encode is None or value is None else encode(value))
    if instance._row:
        row_state.record_stored_values(instance, tuple(fields), raw)
