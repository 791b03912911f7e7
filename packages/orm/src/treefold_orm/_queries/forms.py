"""Rows in other forms than instances: dictionaries, tuples, the values of one column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast, overload

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.columns import Column
from treefold_orm._expressions.conditions import Condition
from treefold_orm._expressions.expressions import Expression
from treefold_orm._expressions.nodes import Expr
from treefold_orm._expressions.scope import Scope
from treefold_orm._queries.query import M, QueryBuilder, R
from treefold_orm._queries.selecting import selected
from treefold_orm._queries.steps import QuerySteps

if TYPE_CHECKING:
    from treefold_orm._queries.querysets import BaseQuery

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")


class RowForms(QueryBuilder[M, R], Generic[M, R]):
    """The part of a query that chooses the form of its rows."""

    __slots__ = ()

    def values(
        self, /, *names: str | Column[Any], **expressions: Expression | Condition
    ) -> BaseQuery[M, dict[str, Any]]:
        """Rows as dictionaries; without names all columns but sensitive ones."""
        return as_rows(self._rows_of("dicts", names, expressions))

    @overload  # the last overload takes what the others leave: untyped names
    def values_list(  # pyright: ignore[reportOverlappingOverload] - flat=True gives another shape
        self, name: Column[A], /, *, flat: Literal[True]
    ) -> BaseQuery[M, A]: ...
    @overload
    def values_list(self, name: str, /, *, flat: Literal[True]) -> BaseQuery[M, Any]: ...
    @overload
    def values_list(self, a: Column[A], /) -> BaseQuery[M, tuple[A]]: ...
    @overload
    def values_list(self, a: Column[A], b: Column[B], /) -> BaseQuery[M, tuple[A, B]]: ...
    @overload
    def values_list(
        self, a: Column[A], b: Column[B], c: Column[C], /
    ) -> BaseQuery[M, tuple[A, B, C]]: ...
    @overload
    def values_list(
        self, a: Column[A], b: Column[B], c: Column[C], d: Column[D], /
    ) -> BaseQuery[M, tuple[A, B, C, D]]: ...
    @overload
    def values_list(
        self, /, *names: str | Column[Any], flat: bool = False, named: bool = False
    ) -> BaseQuery[M, tuple[Any, ...]]: ...
    def values_list(
        self, /, *names: Any, flat: bool = False, named: bool = False
    ) -> BaseQuery[M, Any]:
        """Rows as tuples; `flat` gives the values of one column, `named` named tuples."""
        if flat and len(names) != 1:
            raise TypeError(f"values_list(flat=True) takes one name, not {len(names)}")
        return as_rows(self._rows_of("flat" if flat else "named" if named else "tuples", names, {}))

    def _rows_of(
        self, kind: str, names: Sequence[Any], expressions: dict[str, Expression | Condition]
    ) -> Any:
        self._open("values()")
        query: Any = self.annotate(**expressions) if expressions else self
        scope: Scope = query._scope()
        columns: list[tuple[str, Expr]] = []
        labels: list[str | tuple[str, int]] = []
        if aliased := [name for name in names if isinstance(name, str) and name in self._hidden()]:
            raise FieldError(
                f"values() cannot select {aliased[0]!r}, which alias() has made; load it with "
                f'annotate({aliased[0]}=F("{aliased[0]}"))'
            )
        for name in names or (() if expressions else self._open_names()):
            label, nodes = selected(scope, name)
            columns += nodes
            labels.append(label if len(nodes) == 1 else (label, len(nodes)))
        added = list(expressions)
        if not names and not expressions and self._notes:
            hidden = self._hidden()
            added = [name for name in self._notes if name not in hidden]
        columns += [(name, query._notes[name]) for name in added]
        labels += added
        made = query._step(("values", kind, tuple(labels), tuple(columns)))
        made._params = tuple(scope.params)
        return made

    def _open_names(self) -> list[str]:
        return [field.attname for field in self._meta.columns if not field.sensitive]


def as_rows(query: QueryBuilder[Any, Any]) -> BaseQuery[Any, Any]:
    """The same query without the methods of a custom manager, which return instances."""
    from treefold_orm._queries.querysets import BaseQuery  # its queries are made of this one

    made = cast("BaseQuery[Any, Any]", object.__new__(cast("type[Any]", BaseQuery)))
    for name in QuerySteps.__slots__:
        setattr(made, name, getattr(query, name))
    return made
