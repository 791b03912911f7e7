"""Guards on PostgreSQL: queries over a table as it is before a change, for rows that it refuses.

A guard in the transaction of the change would read rows under the locks of the statements before
it. So it reads first, and takes the values that the change will give:

    AddField("book", "code", CharField(unique=True, db_default="x"))
    -> SELECT ... FROM (SELECT CAST('x' AS varchar(9)) AS "code", "id" AS "id" FROM "book") ...

Rows that are written meanwhile are refused by the statement itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from treefold_migrations._plan.changes import (
    column_checks,
    columns_by_name,
    is_constant,
    mentions_column,
)
from treefold_migrations._plan.conversion import Conversion
from treefold_migrations._plan.guards import (
    breaks_check,
    build_guard,
    build_values_subquery,
    create_cast_test_sql,
    escape_braces,
    no_duplicates,
    no_nulls,
    no_orphans,
    no_rows,
)
from treefold_migrations._plan.postgres_losses import losses_of
from treefold_migrations._plan.step import Step
from treefold_orm.schema import ColumnDef, ForeignKeyDef, TableDef, quote

if TYPE_CHECKING:
    from treefold_migrations._plan.alteration import Alteration


def guards_of(work: Alteration, keys: Sequence[ForeignKeyDef]) -> list[Step]:
    """Return the guards of one table that changes; `keys` are its new references."""
    before = work.change.before
    if work.is_new_table or before is None:
        return []
    found = _Guards(work, before)
    steps = (*losses_of(work, before), *found.of_columns(), *found.of_constraints(keys))
    return [found.in_front(step) for step in steps]


def build_misfit_guard(table: TableDef, name: str, conversion: Conversion) -> Step | None:
    """A guard for values of a quoted column that its new type does not take; None where it takes
    all.
    """
    if not conversion.misfit:
        return None
    problem = (
        f"hold {conversion.what} in {escape_braces(name[1:-1])}, which its new type does not take; "
        "change them first, or give an expression with using="
    )
    misfit = conversion.misfit_of(name)
    if not conversion.castable:
        return build_guard(table, misfit, problem)
    condition = f"CASE WHEN {misfit} THEN TRUE ELSE NOT pg_temp.treefold_casts({name}) END"
    return replace(
        build_guard(table, condition, problem), sql=create_cast_test_sql(conversion.castable)
    )


class _Guards:
    """The guards of one table, whose columns are those before the change."""

    def __init__(self, work: Alteration, before: TableDef) -> None:
        self._work = work
        self._change = work.change
        self._before = before
        self._old = columns_by_name(before)

    def in_front(self, step: Step) -> Step:
        """The guard with the columns that it reads."""
        table = self._before.name
        reads = {f"{table}.{name}" for name in self._old if quote(name) in step.verify}
        return replace(step, transactional=False, reads=step.reads | reads | {f"{table}."})

    def of_columns(self) -> Iterable[Step]:
        for column in self._work.after.columns:
            source = self._old.get(self._change.sources.get(column.name, ""))
            fill = self._change.fills.get(column.name, "")
            required = not (column.null or column.identity or column.default)
            computed = fill and not is_constant(fill) and not column.null
            if source is None:
                if required and not fill:
                    yield no_rows(self._before, column.name)
                elif computed:
                    yield self._no_nulls_after(column.name)
                continue
            conversion = self._change.conversions.get(column.name)
            found = (
                build_misfit_guard(self._before, quote(source.name), conversion)
                if conversion
                else None
            )
            if found is not None:
                yield found
            if source.null and not column.null:
                if not fill:
                    yield no_nulls(self._before, source.name)
                elif computed:
                    yield self._no_nulls_after(column.name)

    def of_constraints(self, keys: Sequence[ForeignKeyDef]) -> Iterable[Step]:
        old, new = self._work.current, self._work.after
        names = [column.name for column in new.columns]
        for check in self._work.compare_parts(column_checks(old), column_checks(new)).added:
            used = [name for name in names if mentions_column(check.sql, frozenset({name}))]
            if self._can_compute_columns(used):
                table, source = self._as_after(used)
                yield breaks_check(table, check, source)
        for unique in self._work.compare_parts(old.uniques, new.uniques).added:
            where = [name for name in names if mentions_column(unique.where, frozenset({name}))]
            used = list(dict.fromkeys([*unique.columns, *where]))
            if unique.columns and self._can_compute_columns(used):
                table, source = self._as_after(used)
                found = no_duplicates(table, unique, source)
                yield from [found] if found else []
        for key in keys:
            if key in old.foreign_keys or not self._can_compute_columns([key.column]):
                continue  # the reference that is dropped for a change of type held
            table, source = self._as_after([key.column])
            step = no_orphans(table, key, source)
            reads = {f"{key.target}.", f"{key.target}.{key.target_column}"}
            yield replace(step, reads=frozenset(reads))

    def _no_nulls_after(self, column: str) -> Step:
        table, source = self._as_after([column])
        return no_nulls(table, column, source)

    def _can_compute_columns(self, columns: Sequence[str]) -> bool:
        after = columns_by_name(self._work.after)
        return all(name in self._change.sources or not after[name].identity for name in columns)

    def _as_after(self, columns: Sequence[str]) -> tuple[TableDef, str]:
        """The table of a guard, and its rows with their values after, empty where they stay."""
        after = columns_by_name(self._work.after)
        keys = tuple(
            key for key in self._work.after.primary_key if self._can_compute_columns([key])
        )
        wanted = list(dict.fromkeys([*columns, *keys]))
        table = replace(self._before, primary_key=keys)
        if all(self._keeps_values(after[name]) for name in wanted):
            return table, ""
        values = {name: self._build_value_sql(after[name]) for name in wanted}
        return table, build_values_subquery(self._before, values, wanted)

    def _keeps_values(self, column: ColumnDef) -> bool:
        source = self._change.sources.get(column.name)
        changed = column.name in self._change.fills or column.name in self._change.conversions
        return source == column.name and not changed

    def _build_value_sql(self, column: ColumnDef) -> str:
        source = self._change.sources.get(column.name)
        fill = self._change.fills.get(column.name, "")
        if source is None:
            return f"CAST({fill or column.default or 'NULL'} AS {column.type})"
        value = quote(source)
        conversion = self._change.conversions.get(column.name)
        if conversion is not None:
            value = conversion.value_of(value)
        return f"COALESCE({value}, {fill})" if fill and not column.null else value
