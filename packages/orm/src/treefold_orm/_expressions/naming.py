"""Names of constraints and indexes in the database, and the fields of each.

The schema creates them under these names; errors of the drivers find model and fields by them.
"""

from __future__ import annotations

import contextlib
from typing import Any

from treefold_orm._base.errors import FieldError, ModelError, ORMError
from treefold_orm._base.names import constraint_name
from treefold_orm._expressions import nodes
from treefold_orm._expressions.conditions import resolve_condition
from treefold_orm._expressions.lookups import Lookup
from treefold_orm._expressions.resolving import resolve_expression_or_order
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Meta
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._terms import constraints
from treefold_orm._terms.operators import Condition, Expression, OrderBy


def require_constraint_field(meta: Meta, name: str) -> AnyField:
    """The field that a constraint or index names."""
    found = meta.pk if name == "pk" else meta.fields.get(name) or meta.by_attname.get(name)
    if found is None:
        raise meta.build_unknown_name_error(name)
    if isinstance(found, KeyColumns):
        raise ModelError(f"{meta.name}: a constraint or index must name the columns of the key")
    return found


def check_constraint_declarations(meta: Meta) -> None:
    """Raise `ModelError` for a constraint or an index over names that the model does not have.

    Names in expressions are left to the schema while a foreign key waits for its target.
    """
    # a path such as `writer__name` can be followed only once the writer's class exists
    waits = any(is_foreign_key(field) and field.target is None for field in meta.columns)
    for declared in (*meta.constraints, *meta.indexes):
        if not isinstance(declared, (constraints.Constraint, constraints.Index)):
            continue  # a search index is checked by its own room
        try:
            for term in _collect_declared_terms(declared):
                if isinstance(term, str):
                    require_constraint_field(meta, term.removeprefix("-"))
                elif not waits:
                    resolve_expression_or_order(term, Scope(meta, []))
            condition: Condition | None = getattr(declared, "condition", None)
            if condition is not None and not waits:
                resolve_condition(condition, Scope(meta, []))
        except FieldError as error:
            kind = type(declared).__name__
            called = f" {declared.name!r}" if declared.name else ""
            raise ModelError(
                f"{meta.name}.Meta: {kind}{called} must name fields; {error}"
            ) from None


def _collect_declared_terms(
    declared: constraints.Constraint | constraints.Index,
) -> tuple[Any, ...]:
    match declared:
        case constraints.UniqueConstraint():
            return (*declared.fields, *declared.expressions, *declared.include)
        case constraints.ExclusionConstraint():
            return tuple(term for term, _ in declared.expressions)
        case constraints.Index():
            return (*declared.fields, *declared.include)
        case _:
            return ()


def build_unique_constraint_name(meta: Meta, constraint: constraints.UniqueConstraint) -> str:
    """The name of a unique constraint: its own, or one made of its columns."""
    columns = [require_constraint_field(meta, name).column_name for name in constraint.fields]
    return constraint.name or constraint_name("uq", meta.table_name, *columns)


def build_check_constraint_name(meta: Meta, field: AnyField) -> str:
    """The name of the check that belongs to the type of a field."""
    return constraint_name("ck", meta.table_name, field.column_name)


def map_constraints_to_fields(meta: Meta) -> dict[str, tuple[str, ...]]:
    """The names of all constraints of a model's table, each with the fields it speaks of.

    A declaration that cannot work is left out: errors of the database are explained by this, and
    must not become others.
    """
    table = meta.table_name
    found: dict[str, tuple[str, ...]] = {f"{table}_pkey": tuple(key.name for key in meta.keys)}
    for field in meta.columns:
        found[build_check_constraint_name(meta, field)] = (field.name,)
        if field.unique:
            found[constraint_name("uq", table, field.column_name)] = (field.name,)
        if is_foreign_key(field):
            found[field.constraint_name or constraint_name("fk", table, field.column_name)] = (
                field.name,
            )
    for constraint in meta.constraints:
        with contextlib.suppress(ORMError):
            name = constraint.name
            if isinstance(constraint, constraints.UniqueConstraint):
                name = build_unique_constraint_name(meta, constraint)
            found[name] = collect_constraint_fields(meta, constraint)
    return found


def find_unique_constraint_name(meta: Meta, columns: set[str]) -> str | None:
    """The name of the one unique constraint over exactly these columns, as far as there is one."""
    names = [
        constraint_name("uq", meta.table_name, field.column_name)
        for field in meta.columns
        if field.unique and not field.primary_key and {field.column_name} == columns
    ]
    for constraint in meta.constraints:
        if isinstance(constraint, constraints.UniqueConstraint) and constraint.fields:
            with contextlib.suppress(ORMError):
                held = {
                    require_constraint_field(meta, name).column_name for name in constraint.fields
                }
                names += [build_unique_constraint_name(meta, constraint)] if held == columns else []
    # SQLite's error names columns alone: of two constraints over them, either may have failed
    return names[0] if len(names) == 1 else None


def collect_constraint_fields(meta: Meta, constraint: constraints.Constraint) -> tuple[str, ...]:
    """The names of the fields that a declared constraint speaks of."""
    scope = Scope(meta, [])
    parts: list[nodes.Node] = []
    match constraint:
        case constraints.UniqueConstraint():
            if constraint.fields:
                return constraint.fields
            terms: list[Any] = list(constraint.expressions)
        case constraints.ExclusionConstraint():
            terms = [term for term, _ in constraint.expressions]
        case constraints.CheckConstraint():
            terms = []
            parts.append(resolve_condition(constraint.condition, scope))
        case _:
            return ()
    names: dict[str, None] = {}
    for term in terms:
        if isinstance(term, str):
            names[term] = None
        elif isinstance(term, (Expression, OrderBy)):
            parts.append(resolve_expression_or_order(term, scope))
    for node in parts:
        names.update(dict.fromkeys(_collect_column_names(node)))
    return tuple(names)


def _collect_column_names(node: nodes.Node) -> list[str]:
    names: list[str] = []
    if isinstance(node, nodes.ColumnNode):
        names.append(node.column.name)
    if isinstance(node, nodes.Compare) and isinstance(node.lookup, Lookup):
        names.append(node.lookup.column.name)
    if isinstance(node, nodes.SchemaSQLNode):
        names += [column.name for column in node.columns]
    for child in nodes.collect_children(node):
        names += _collect_column_names(child)
    return names
