"""A live table in the ORM's spelling: parts equal to wanted ones are written like these.

Equality was decided by text that the same database printed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from treefold_migrations._inspect.compare import Comparison
from treefold_migrations._inspect.found import InspectedTable
from treefold_orm.schema import TableDef


def restore_wanted_spelling(
    how: Comparison, live: InspectedTable, printed: InspectedTable, wanted: TableDef
) -> TableDef:
    """Return a live table in which every part equal to a wanted one is written like that one."""
    table = live.table
    columns, checks = _restore_column_and_check_spelling(how, table, printed.table, wanted)
    uniques = _replace_equal_parts(how, table.uniques, printed.table.uniques, wanted.uniques)
    # On PostgreSQL a `SearchIndex` is found as an ordinary index, and recognised by its name.
    plain = _replace_equal_parts(
        how, table.indexes, printed.table.indexes, (*wanted.indexes, *wanted.searches)
    )
    searches = _replace_equal_parts(how, table.searches, printed.table.searches, wanted.searches)
    keys = _replace_equal_parts(how, table.foreign_keys, wanted.foreign_keys, wanted.foreign_keys)
    return TableDef(
        table.name,
        columns,
        table.primary_key,
        _order_parts(keys, wanted.foreign_keys),
        _order_parts(uniques, wanted.uniques),
        _order_parts(
            _replace_equal_parts(how, checks, printed.table.checks, wanted.checks), wanted.checks
        ),
        _order_parts([p for p in plain if p not in wanted.searches], wanted.indexes),
        _order_parts([*searches, *(p for p in plain if p in wanted.searches)], wanted.searches),
        _order_parts(
            _replace_equal_parts(
                how, table.exclusions, printed.table.exclusions, wanted.exclusions
            ),
            wanted.exclusions,
        ),
    )


def _replace_equal_parts(how: Comparison, live: Any, printed: Any, wanted: Any) -> list[Any]:
    spelled = {part.name: part for part in wanted}
    known = {part.name: part for part in printed}
    return [
        spelled[part.name]
        if part.name in spelled
        and part.name in known
        and how.normalize_part(part) == how.normalize_part(known[part.name])
        else part
        for part in live
    ]


def _order_parts(parts: Iterable[Any], wanted: Iterable[Any]) -> tuple[Any, ...]:
    # a catalog is read in the order of names, and a model has an order of its own
    places = {part: place for place, part in enumerate(wanted)}
    return tuple(sorted(parts, key=lambda part: places.get(part, len(places))))


def _restore_column_and_check_spelling(
    how: Comparison, live: TableDef, printed: TableDef, wanted: TableDef
) -> Any:
    known = {column.name: column for column in printed.columns}
    spelled = {column.name: column for column in wanted.columns}
    checks = {check.name: check for check in live.checks}
    made = {check.name: check for check in printed.checks}
    columns: list[Any] = []
    for column in live.columns:
        one, other = known.get(column.name), spelled.get(column.name)
        if one is None or other is None:
            columns.append(column)
            continue
        if column.type.upper() == one.type.upper():
            column = replace(column, type=other.type)
        if how.text(column.default) == how.text(one.default):
            column = replace(column, default=other.default)
        check = checks.get(other.check_name)
        if check is not None and how.normalize_part(check) == how.normalize_part(made[check.name]):
            column = replace(column, checks=other.checks, check_name=other.check_name)
            del checks[check.name]
        columns.append(column)
    return tuple(columns), tuple(checks.values())
