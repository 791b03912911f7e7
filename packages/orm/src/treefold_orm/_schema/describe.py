"""From a model to the record of its table, in one dialect.

Constants of constraints and defaults become literals here, for DDL takes no parameters; names in
them are fields of the model. Nothing here writes a statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from treefold_orm._base.errors import ModelError, UnsupportedFeature
from treefold_orm._base.names import constraint_name
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._expressions.naming import (
    build_check_constraint_name,
    build_unique_constraint_name,
    require_constraint_field,
)
from treefold_orm._fields.base import MISSING, AnyField
from treefold_orm._fields.meta import Meta
from treefold_orm._fields.numbers import AutoField
from treefold_orm._fields.relations import AnyForeignKey, is_foreign_key
from treefold_orm._functions.ranges import Range
from treefold_orm._schema import records
from treefold_orm._schema.constants import default_sql, render_sql_with_literals
from treefold_orm._schema.schema_search import describe_search_index
from treefold_orm._search.search_index import list_search_indexes
from treefold_orm._terms import constraints
from treefold_orm._terms.operators import Expression, OrderBy


def table_of(meta: Meta, dialect: Dialect) -> records.TableDef:
    """Describe a model's table in a dialect.

    Raises `ModelError` for declarations that cannot become a table, `UnsupportedFeature` for what
    the database does not have.
    """
    made = records.TableDef(
        meta.table_name,
        tuple(_describe_column(meta, field, dialect) for field in meta.columns),
        tuple(key.column_name for key in meta.keys),
        tuple(
            _describe_foreign_key(meta, field) for field in meta.columns if is_foreign_key(field)
        ),
        tuple(_describe_uniques(meta, dialect)),
        tuple(_describe_checks(meta, dialect)),
        tuple(_describe_indexes(meta, dialect)),
        tuple(describe_search_index(meta, index, dialect) for index in list_search_indexes(meta)),
        tuple(_describe_exclusions(meta, dialect)),
    )
    _refuse_duplicate_constraint_names(meta, made)
    return made


def _refuse_duplicate_constraint_names(meta: Meta, table: records.TableDef) -> None:
    parts: list[Any] = [*table.foreign_keys, *table.uniques, *table.checks, *table.indexes]
    parts += [*table.searches, *table.exclusions]
    names = Counter(part.name for part in parts)
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ModelError(
            f"{meta.name} has two constraints or indexes called {twice[0]!r}: give one another name"
        )


def _describe_column(meta: Meta, field: AnyField, dialect: Dialect) -> records.ColumnDef:
    checks = tuple(check.format(field.quoted) for check in field.checks(dialect.name))
    return records.ColumnDef(
        field.column_name,
        field.column_type(dialect.name),
        field.null,
        isinstance(field, AutoField),
        checks,
        "" if field.db_default is MISSING else default_sql(meta, field, dialect),
        build_check_constraint_name(meta, field) if checks else "",
    )


def _describe_foreign_key(meta: Meta, field: AnyForeignKey) -> records.ForeignKeyDef:
    target = field.known_target
    name = field.constraint_name or constraint_name("fk", meta.table_name, field.column_name)
    return records.ForeignKeyDef(
        name, field.column_name, target.table_name, target.pk.column_name, field.database_action
    )


def _describe_uniques(meta: Meta, dialect: Dialect) -> list[records.UniqueDef]:
    made = [
        records.UniqueDef(constraint_name("uq", meta.table_name, f.column_name), (f.column_name,))
        for f in meta.columns
        if f.unique and not f.primary_key
    ]
    declared = [c for c in meta.constraints if isinstance(c, constraints.UniqueConstraint)]
    return made + [_describe_unique(meta, constraint, dialect) for constraint in declared]


def _describe_unique(
    meta: Meta, constraint: constraints.UniqueConstraint, dialect: Dialect
) -> records.UniqueDef:
    name = build_unique_constraint_name(meta, constraint)
    if constraint.deferrable and dialect.name != "postgres":
        raise UnsupportedFeature(
            f"{meta.name}: UniqueConstraint {name!r} is deferrable, which needs PostgreSQL"
        )
    fields = [require_constraint_field(meta, part) for part in constraint.fields]
    terms = _render_terms(meta, constraint.expressions, constraint.opclasses, dialect)
    nulls_distinct = constraint.nulls_distinct
    if not terms and constraint.opclasses and dialect.name == "postgres":
        terms = _render_terms(meta, constraint.fields, constraint.opclasses, dialect)
    if not nulls_distinct and dialect.name == "sqlite":
        if constraint.expressions:
            raise UnsupportedFeature(
                f"{meta.name}: UniqueConstraint {name!r} over expressions with "
                "nulls_distinct=False needs PostgreSQL"
            )
        # SQLite always tells NULLs apart: two terms that have a value say the same
        terms = tuple(term for field in fields for term in _build_null_safe_terms(field))
        nulls_distinct = True
    return records.UniqueDef(
        name,
        () if terms else tuple(field.column_name for field in fields),
        _render_condition(meta, constraint.condition, dialect),
        terms,
        constraint.deferrable or "",
        nulls_distinct,
        _resolve_included_columns(meta, constraint.include, dialect),
    )


def _build_null_safe_terms(field: AnyField) -> tuple[str, ...]:
    if not field.null:
        return (field.quoted,)
    return f"({field.quoted} IS NULL)", f"IFNULL({field.quoted}, 0)"


def _describe_checks(meta: Meta, dialect: Dialect) -> list[records.CheckDef]:
    return [
        records.CheckDef(
            constraint.name, render_sql_with_literals(meta, constraint.condition, dialect)
        )
        for constraint in meta.constraints
        if isinstance(constraint, constraints.CheckConstraint)
    ]


def _describe_exclusions(meta: Meta, dialect: Dialect) -> list[records.ExclusionDef]:
    made: list[records.ExclusionDef] = []
    for constraint in meta.constraints:
        if not isinstance(constraint, constraints.ExclusionConstraint):
            continue
        if dialect.name != "postgres":
            raise UnsupportedFeature(
                f"{meta.name}: ExclusionConstraint {constraint.name!r} needs PostgreSQL; check the "
                "rows in a transaction on other databases"
            )
        expressions = [term for term, _ in constraint.expressions]
        terms = _render_terms(meta, expressions, (), dialect)
        operators = [operator for _, operator in constraint.expressions]
        made.append(
            records.ExclusionDef(
                constraint.name,
                tuple(f"{t} WITH {o}" for t, o in zip(terms, operators, strict=True)),
                _render_condition(meta, constraint.condition, dialect),
                constraint.deferrable or "",
                any(not isinstance(term, Range) for term in expressions),
            )
        )
    return made


def _describe_indexes(meta: Meta, dialect: Dialect) -> list[records.IndexDef]:
    made = [
        records.IndexDef(constraint_name("ix", meta.table_name, f.column_name), (f.quoted,))
        for f in meta.columns
        if f.db_index and not f.unique
    ]
    declared = [index for index in meta.indexes if isinstance(index, constraints.Index)]
    return made + [_describe_index(meta, index, dialect) for index in declared]


def _describe_index(meta: Meta, index: constraints.Index, dialect: Dialect) -> records.IndexDef:
    words: list[str] = []  # a descending index has another name than an ascending one
    for term in index.fields:
        if isinstance(term, str):
            column = require_constraint_field(meta, term.removeprefix("-")).column_name
            words += [column, "desc"] if term.startswith("-") else [column]
    return records.IndexDef(
        index.name or constraint_name("ix", meta.table_name, *words),
        _render_terms(meta, index.fields, index.opclasses, dialect),
        _render_condition(meta, index.condition, dialect),
        _resolve_included_columns(meta, index.include, dialect),
    )


def _resolve_included_columns(
    meta: Meta, names: Sequence[str], dialect: Dialect
) -> tuple[str, ...]:
    columns = tuple(require_constraint_field(meta, name).column_name for name in names)
    return columns if dialect.name == "postgres" else ()


def _render_condition(meta: Meta, condition: Any, dialect: Dialect) -> str:
    return "" if condition is None else render_sql_with_literals(meta, condition, dialect)


def _render_terms(
    meta: Meta, terms: Sequence[constraints.Term], opclasses: Sequence[str], dialect: Dialect
) -> tuple[str, ...]:
    classes = opclasses if dialect.name == "postgres" else ()
    return tuple(
        _render_term(meta, term, f" {classes[i]}" if classes else "", dialect)
        for i, term in enumerate(terms)
    )


def _render_term(meta: Meta, term: constraints.Term, opclass: str, dialect: Dialect) -> str:
    if isinstance(term, str):
        field = require_constraint_field(meta, term.removeprefix("-"))
        return f"{field.quoted}{opclass}{' DESC' if term.startswith('-') else ''}"
    tail = ""
    expression: Expression = term.expression if isinstance(term, OrderBy) else term
    if isinstance(term, OrderBy):
        tail = " DESC" if term.descending else ""
        # SQLite refuses NULLS FIRST and NULLS LAST in an index
        if term.nulls and dialect.name == "postgres":
            tail += " NULLS FIRST" if term.nulls == "first" else " NULLS LAST"
    return f"({render_sql_with_literals(meta, expression, dialect)}){opclass}{tail}"
