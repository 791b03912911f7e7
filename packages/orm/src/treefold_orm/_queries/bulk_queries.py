"""Calls for many rows at once: bulk writes, rows by key, and rows of raw SQL, in both halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic

from treefold_orm._base.statement import CoroutineOf, Operation
from treefold_orm._building.query import M, QueryBuilder
from treefold_orm._operations import fetching
from treefold_orm._queries.delivering import arun_query, run_query
from treefold_orm._runtime.run import arun, run
from treefold_orm._terms.columns import AnyColumn


class BulkQuery(QueryBuilder[M, M], Generic[M]):
    """The part of a query that takes or returns many instances at once."""

    __slots__ = ()

    def bulk_create(
        self,
        instances: Sequence[M],
        *,
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: Sequence[str] | bool = (),
        update_fields: Sequence[str] = (),
        unique_fields: Sequence[str] = (),
    ) -> list[M]:
        """Insert many rows with few statements; generated keys are set on the instances.

        `ignore_conflicts` skips rows that exist (and sets no keys); `update_conflicts` names the
        columns to update instead where `unique_fields` are the same (also as
        `update_conflicts=True` and `update_fields`).
        """
        given = ignore_conflicts, update_conflicts, update_fields, unique_fields
        work = self._insert_many(list(instances), batch_size, *given)
        return run(self._alias, work, "await abulk_create()", write=True)

    async def abulk_create(
        self,
        instances: Sequence[M],
        *,
        batch_size: int | None = None,
        ignore_conflicts: bool = False,
        update_conflicts: Sequence[str] | bool = (),
        update_fields: Sequence[str] = (),
        unique_fields: Sequence[str] = (),
    ) -> list[M]:
        """`bulk_create` for async code."""
        given = ignore_conflicts, update_conflicts, update_fields, unique_fields
        work = self._insert_many(list(instances), batch_size, *given)
        return await arun(self._alias, work, write=True)

    def bulk_update(
        self, instances: Sequence[M], fields: Sequence[str], *, batch_size: int | None = None
    ) -> int:
        """Write the named fields of many instances with few statements; return how many rows
        matched.

        They are written in the database that they were read from, as by `save()`; a query with
        `using()` takes rows of that database only.

        Raises:
            FieldError: the rows are of several databases, or of another one than the query.
            StaleObject: one changed since it was read, and the model has a version field; then none
                is written.
        """
        alias, work = self._update_many(list(instances), fields, batch_size)
        return run(alias, work, "await abulk_update()", write=True)

    async def abulk_update(
        self, instances: Sequence[M], fields: Sequence[str], *, batch_size: int | None = None
    ) -> int:
        """`bulk_update` for async code."""
        alias, work = self._update_many(list(instances), fields, batch_size)
        return await arun(alias, work, write=True)

    def in_bulk(
        self,
        keys: Sequence[Any] | None = None,
        *,
        field: str | AnyColumn = "pk",
        field_name: str | None = None,
    ) -> dict[Any, M]:
        """Return the rows with these keys (without keys, all rows), by key; `field` (also as
        `field_name`) may be another unique field.
        """
        chosen = field if field_name is None else field_name
        work = fetching.in_bulk(self, keys, field=chosen, batch_lazy=True)
        return run_query(self, work, "await ain_bulk()")

    def ain_bulk(
        self,
        keys: Sequence[Any] | None = None,
        *,
        field: str | AnyColumn = "pk",
        field_name: str | None = None,
    ) -> CoroutineOf[dict[Any, M]]:
        """`in_bulk` for async code."""
        chosen = field if field_name is None else field_name
        work = fetching.in_bulk(self, keys, field=chosen, batch_lazy=False)
        return arun_query(self, work)

    def raw(self, sql: Any, /, **values: Any) -> list[M]:
        """Return instances from SQL of your own: `raw("SELECT * FROM post WHERE n > :low",
        low=3)`.

        The text must be a literal of the code; values are bound by name. Columns are matched by
        name.
        """
        from treefold_orm._operations.raw import select_instances

        work = select_instances(self._meta, self._alias, sql, values, batch_lazy=True)
        return run(self._alias, work, "await araw()")

    async def araw(self, sql: Any, /, **values: Any) -> list[M]:
        """`raw` for async code."""
        from treefold_orm._operations.raw import select_instances

        work = select_instances(self._meta, self._alias, sql, values, batch_lazy=False)
        return await arun(self._alias, work)

    def _insert_many(
        self, rows: list[M], batch_size: int | None, *conflict_options: Any
    ) -> Operation[list[M]]:
        from treefold_orm._operations import bulk

        rule = bulk.build_conflict_rule(self._meta, *conflict_options)
        return bulk.insert_instances(
            self._meta, rows, self._alias, batch_size=batch_size, rule=rule
        )

    def _update_many(
        self, rows: list[M], fields: Sequence[str], batch_size: int | None
    ) -> tuple[str, Operation[int]]:
        from treefold_orm._operations import bulk

        alias = bulk.choose_update_database(self, rows)
        return alias, bulk.update_instances(self._meta, rows, alias, fields, batch_size)
