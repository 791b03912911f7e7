"""From models to a state: the tables as `create_all` would create them today."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from treefold_migrations._base.errors import StateError
from treefold_migrations._operations.base import require_plain_names
from treefold_migrations._state import schema_state
from treefold_orm import ORMError
from treefold_orm.schema import Meta, check_relations, is_foreign_key, registry, unbound_copy


def build_models_state(metas: Iterable[Meta] | None = None) -> schema_state.SchemaState:
    """Return the state of models; without any given, of all models of this application.

    Raises `StateError` for a model that no migration can hold.
    """
    found: dict[str, schema_state.TableState] = {}
    given = registry.list_application_models() if metas is None else list(metas)
    try:
        check_relations(given)
    except ORMError as error:
        raise StateError(str(error)) from error
    for meta in given:
        table = build_table_state(meta)
        known = found.get(table.name)
        if known is not None and known.options.managed and table.options.managed:
            raise StateError(
                f"The models {known.model} and {table.model} share the table {table.name!r}; give "
                "one of them another Meta.table, or set Meta.managed = False there"
            )
        if known is None or not known.options.managed:
            found[table.name] = table
    order = sort_by_references(found.values())
    return schema_state.SchemaState({name: found[name] for name in order})


def build_table_state(meta: Meta) -> schema_state.TableState:
    """Return the table of one model."""
    require_plain_names(meta.table_name, meta.name, meta.fields)
    return schema_state.TableState(
        meta.table_name,
        meta.name,
        {name: _copy_unbound_field(meta, field) for name, field in meta.fields.items()},
        schema_state.TableOptions(
            tuple(key.name for key in meta.keys) if len(meta.keys) > 1 else (),
            tuple(meta.constraints),
            tuple(meta.indexes),
            meta.managed,
            database=str(meta.database),
        ),
    )


def _copy_unbound_field(meta: Meta, field: schema_state.AnyField) -> schema_state.AnyField:
    try:
        made = unbound_copy(field)
    except ORMError as error:
        raise StateError(f"{meta.name}.{field.name} cannot stand in a migration: {error}") from (
            error
        )
    made.default = field.default  # a callable is no part of the source, but may fill rows
    return made


def sort_by_references(tables: Iterable[schema_state.TableState]) -> list[str]:
    """Return the names of tables so that targets of foreign keys come first, as far as there is
    such an order.
    """
    waiting = {table.name: find_referenced_tables(table) for table in tables}
    pointed: dict[str, list[str]] = {}
    for name, before in waiting.items():
        before &= waiting.keys()
        for target in before:
            pointed.setdefault(target, []).append(name)
    ready = deque(name for name, before in waiting.items() if not before)
    done: list[str] = []
    while waiting:
        name = ready.popleft() if ready else next(iter(waiting))  # a circle begins anywhere
        if name not in waiting:
            continue
        del waiting[name]
        done.append(name)
        for other in pointed.get(name, ()):
            if other in waiting:
                waiting[other].discard(name)
                if not waiting[other]:
                    ready.append(other)
    return done


def find_referenced_tables(table: schema_state.TableState) -> set[str]:
    """Return the other tables that a table points to."""
    found = {str(field.to) for field in table.fields.values() if is_foreign_key(field)}
    return found - {table.name}
