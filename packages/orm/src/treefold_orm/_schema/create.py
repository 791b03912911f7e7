"""`create_all`: the quick start, which creates missing tables and never alters one.

Tables are created in an order in which the targets of their references come first, those of each
database in one transaction:

    create_all()                            # every model, on its own database
    create_all(using="analytics")           # the models that live on it
    create_all(Author, using="replica")     # a copy of the table, wherever the model lives
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from treefold_orm._base.databases import DEFAULT
from treefold_orm._base.errors import ModelError, UnsupportedFeature
from treefold_orm._base.names import quote
from treefold_orm._base.statement import ATOMIC, Operation as Generated, Statement
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._fields.meta import Meta, registry
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.run import arun, run
from treefold_orm._schema import records
from treefold_orm._schema.ddl import statements
from treefold_orm._schema.describe import table_of
from treefold_orm._schema.homes import check_relations, group_by_database, select_models_of_database
from treefold_orm._search.search_index import list_search_indexes

if TYPE_CHECKING:
    from treefold_orm._models.model import Model


def plan_tables(metas: Iterable[Meta], dialect: Dialect) -> list[records.SchemaOperation]:
    """The operations that create the tables of these models, in an order in which targets come
    first; models with `managed = False` are left alone.
    """
    waiting = [meta for meta in dict.fromkeys(metas) if meta.managed]
    names = {meta.table_name for meta in waiting}
    done: set[str] = set()
    made: list[records.SchemaOperation] = []
    later: list[records.SchemaOperation] = []
    tables = {meta.table_name: table_of(meta, dialect) for meta in waiting}
    _refuse_shared_index_names(tables)
    if any(e.scalars for table in tables.values() for e in table.exclusions):
        made.append(records.CreateExtension("btree_gist"))
    while tables:
        ready = [
            t
            for t in tables.values()
            if all(_is_target_ready(k, t, done, names) for k in t.foreign_keys)
        ]
        # none is ready: they point to each other in a circle, of which PostgreSQL gets the keys
        # later and SQLite takes references to tables that do not exist yet
        table = (ready or list(tables.values()))[0]
        kept = [
            k
            for k in table.foreign_keys
            if dialect.name == "sqlite" or _is_target_ready(k, table, done, names)
        ]
        later += [
            records.AddForeignKey(table.name, key) for key in table.foreign_keys if key not in kept
        ]
        made.append(records.CreateTable(replace(table, foreign_keys=tuple(kept)), if_missing=True))
        done.add(table.name)
        del tables[table.name]
    return made + later


def _refuse_shared_index_names(tables: dict[str, records.TableDef]) -> None:
    # IF NOT EXISTS would pass over the second index of a name without a word
    known: dict[str, str] = {}
    for table in tables.values():
        for part in (*table.uniques, *table.indexes, *table.exclusions, *table.searches):
            other = known.setdefault(part.name, table.name)
            if other != table.name:
                raise ModelError(
                    f"The tables {other!r} and {table.name!r} both have an index called "
                    f"{part.name!r}: give one another name"
                )


def _is_target_ready(
    key: records.ForeignKeyDef,
    table: records.TableDef,
    created_tables: set[str],
    planned_tables: set[str],
) -> bool:
    return (
        key.target in created_tables or key.target == table.name or key.target not in planned_tables
    )


def _collect_models_to_create(models: tuple[type[Model], ...]) -> list[Meta]:
    registry.resolve_pending_targets()
    if not models:
        return registry.list_application_models()
    found = [model._meta for model in models]
    for meta in registry:  # tables that connect the given models belong to them
        if meta.auto_created and any(
            many.meta in found and _is_through_model_of(meta, many.meta)
            for m in found
            for many in m.many.values()
        ):
            found.append(meta)
    return found


def _is_through_model_of(through: Meta, source: Meta) -> bool:
    return through.model.__qualname__.startswith(f"{source.model.__qualname__}_") and (
        (through.space, through.model.__module__) == (source.space, source.model.__module__)
    )


_CREATING = 0x74_72_65_65  # a number of our own: who holds it creates tables


def _create_tables(metas: list[Meta], alias: str) -> Generated[None]:
    yield ATOMIC
    dialect = database_for(alias).dialect
    metas = [meta for meta in metas if meta.managed]
    if dialect.name == "postgres":
        # two processes that start at once: IF NOT EXISTS alone fails when both begin to create
        yield Statement("rows", f"SELECT pg_advisory_xact_lock({_CREATING})")
    operations = plan_tables(metas, dialect)
    if dialect.name == "sqlite" and any(list_search_indexes(meta) for meta in metas):
        known = yield Statement("rows", "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'")
        if not known:
            raise UnsupportedFeature(
                "SearchIndex needs FTS5, which the SQLite of this Python was built without: use a "
                "Python with another SQLite, or PostgreSQL"
            )
    for operation in operations:
        if isinstance(operation, records.AddForeignKey) and (
            yield from _foreign_key_exists(operation)
        ):
            continue
        for sql in statements(operation, dialect):
            yield Statement("script", sql)


def _foreign_key_exists(operation: records.AddForeignKey) -> Generated[bool]:
    found = yield Statement(
        "rows",
        "SELECT 1 FROM pg_constraint WHERE conname = $1 AND conrelid = to_regclass($2)",
        (operation.key.name, quote(operation.table)),
    )
    return bool(found)


def create_all(*models: type[Model], using: str | None = None) -> None:
    """Create the tables of the given models (of all models without any) that do not exist yet, each
    on the database where its model lives.

    Tables of models with `managed = False` are left alone.

    Args:
        models: the models; with `using`, their tables are created there, wherever they live.
        using: the alias of a database; without models, those that live there get a table, and where
            none does, those of `default`.

    Raises:
        ModelError: a relation leads to a model of another database; no statement was sent.
        ConfigurationError: a database is not configured; no statement was sent.
    """
    for alias, work in _plan_creation_by_alias(models, using):
        run(alias, work, "await acreate_all()", write=True)


async def acreate_all(*models: type[Model], using: str | None = None) -> None:
    """`create_all` for async code."""
    for alias, work in _plan_creation_by_alias(models, using):
        await arun(alias, work, write=True)


def _plan_creation_by_alias(
    models: tuple[type[Model], ...], using: str | None
) -> list[tuple[str, Generated[None]]]:
    """The work on each database."""
    metas = _collect_models_to_create(models)
    check_relations(metas)
    if using is None:
        groups = group_by_database(metas) or {DEFAULT: []}
    else:
        groups = {using: metas if models else select_models_of_database(metas, using)}
    for alias in groups:
        database_for(alias)
    return [(alias, _create_tables(group, alias)) for alias, group in groups.items()]
