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

from treefold_migrations._conversions.conversion import Conversion
from treefold_migrations._plan.changes import (
    collect_table_and_column_checks,
    index_columns_by_name,
    is_sql_literal,
    sql_mentions_column,
)
from treefold_migrations._plan.guards import (
    build_cast_test_function_sql,
    build_check_guard,
    build_no_duplicates_guard,
    build_no_matching_rows_guard,
    build_no_nulls_guard,
    build_no_orphans_guard,
    build_no_rows_guard,
    build_values_subquery,
    escape_braces,
)
from treefold_migrations._plan.postgres_losses import build_loss_guards
from treefold_migrations._plan.step import Step
from treefold_orm.schema import ColumnDef, ForeignKeyDef, TableDef, quote

if TYPE_CHECKING:
    from treefold_migrations._plan.alteration import TableAlteration


def build_table_guards(work: TableAlteration, keys: Sequence[ForeignKeyDef]) -> list[Step]:
    """Return the guards of one table that changes; `keys` are its new references."""
    before = work.change.before
    if work.is_new or before is None:
        return []
    found = _TableGuardBuilder(work, before)
    own = (*found.build_column_guards(), *found.build_constraint_guards(keys))
    steps = (*build_loss_guards(work, before), *own)
    return [found.with_read_columns(step) for step in steps]


def build_misfit_guard(table: TableDef, quoted_column: str, conversion: Conversion) -> Step | None:
    """A guard for values of a quoted column that its new type does not take; None where it takes
    all.
    """
    if not conversion.misfit:
        return None
    problem = (
        f"hold {conversion.what} in {escape_braces(quoted_column[1:-1])}, which its new type does "
        "not take; change them first, or give an expression with using="
    )
    misfit = conversion.render_misfit_condition(quoted_column)
    if not conversion.castable:
        return build_no_matching_rows_guard(table, misfit, problem)
    condition = f"CASE WHEN {misfit} THEN TRUE ELSE NOT pg_temp.treefold_casts({quoted_column}) END"
    return replace(
        build_no_matching_rows_guard(table, condition, problem),
        sql=build_cast_test_function_sql(conversion.castable),
    )


class _TableGuardBuilder:
    """The guards of one table, whose columns are those before the change."""

    def __init__(self, work: TableAlteration, before: TableDef) -> None:
        self._work = work
        self._change = work.change
        self._before = before
        self._old = index_columns_by_name(before)

    def with_read_columns(self, step: Step) -> Step:
        """The guard with the columns that it reads."""
        table = self._before.name
        # a name that the query holds by chance only leaves the guard where it is
        reads = {f"{table}.{name}" for name in self._old if quote(name) in step.verify}
        return replace(step, transactional=False, reads=step.reads | reads | {f"{table}."})

    def build_column_guards(self) -> Iterable[Step]:
        for column in self._work.after.columns:
            source = self._old.get(self._change.sources.get(column.name, ""))
            fill = self._change.fills.get(column.name, "")
            required = not (column.null or column.identity or column.default)
            # an expression such as another field may give NULL for some rows; a constant cannot
            computed = fill and not is_sql_literal(fill) and not column.null
            if source is None:
                if required and not fill:
                    yield build_no_rows_guard(self._before, column.name)
                elif computed:
                    yield self._build_no_nulls_guard(column.name)
                continue
            conversion = self._change.conversions.get(column.name)
            found = None
            if conversion:
                found = build_misfit_guard(self._before, quote(source.name), conversion)
            if found is not None:
                yield found
            if source.null and not column.null:
                if not fill:
                    yield build_no_nulls_guard(self._before, source.name)
                elif computed:
                    yield self._build_no_nulls_guard(column.name)

    def build_constraint_guards(self, keys: Sequence[ForeignKeyDef]) -> Iterable[Step]:
        old, new = self._work.current, self._work.after
        names = [column.name for column in new.columns]
        for check in self._work.compare_parts(
            collect_table_and_column_checks(old), collect_table_and_column_checks(new)
        ).added:
            used = [name for name in names if sql_mentions_column(check.sql, frozenset({name}))]
            if self._can_query_new_values(used):
                table, source = self._build_guard_table_and_source(used)
                yield build_check_guard(table, check, source)
        for unique in self._work.compare_parts(old.uniques, new.uniques).added:
            where = [name for name in names if sql_mentions_column(unique.where, frozenset({name}))]
            used = list(dict.fromkeys([*unique.columns, *where]))
            if unique.columns and self._can_query_new_values(used):
                table, source = self._build_guard_table_and_source(used)
                found = build_no_duplicates_guard(table, unique, source)
                yield from [found] if found else []
        for key in keys:
            if key in old.foreign_keys or not self._can_query_new_values([key.column]):
                continue  # the reference that is dropped for a change of type held
            table, source = self._build_guard_table_and_source([key.column])
            step = build_no_orphans_guard(table, key, source)
            reads = {f"{key.target}.", f"{key.target}.{key.target_column}"}
            yield replace(step, reads=frozenset(reads))

    def _build_no_nulls_guard(self, column: str) -> Step:
        table, source = self._build_guard_table_and_source([column])
        return build_no_nulls_guard(table, column, source)

    def _can_query_new_values(self, columns: Sequence[str]) -> bool:
        after = index_columns_by_name(self._work.after)
        # the server gives an identity its values when the column is added: no query has them before
        return all(name in self._change.sources or not after[name].identity for name in columns)

    def _build_guard_table_and_source(self, columns: Sequence[str]) -> tuple[TableDef, str]:
        """The table of a guard, and its rows with their values after, empty where they stay."""
        after = index_columns_by_name(self._work.after)
        keys = tuple(
            key for key in self._work.after.primary_key if self._can_query_new_values([key])
        )
        wanted = list(dict.fromkeys([*columns, *keys]))
        table = replace(self._before, primary_key=keys)
        if all(self._keeps_values(after[name]) for name in wanted):
            return table, ""
        values = {name: self._build_new_value_sql(after[name]) for name in wanted}
        return table, build_values_subquery(self._before, values, wanted)

    def _keeps_values(self, column: ColumnDef) -> bool:
        source = self._change.sources.get(column.name)
        changed = column.name in self._change.fills or column.name in self._change.conversions
        return source == column.name and not changed

    def _build_new_value_sql(self, column: ColumnDef) -> str:
        source = self._change.sources.get(column.name)
        fill = self._change.fills.get(column.name, "")
        if source is None:
            # a bare 'x' or NULL in a subquery has the type text, and would not compare with a
            # number
            return f"CAST({fill or column.default or 'NULL'} AS {column.type})"
        value = quote(source)
        conversion = self._change.conversions.get(column.name)
        if conversion is not None:
            value = conversion.render_value(value)
        # a fill replaces NULL and nothing else
        return f"COALESCE({value}, {fill})" if fill and not column.null else value
