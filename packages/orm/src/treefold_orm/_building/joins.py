"""Joining a CTE to the rows of a query, and knowing a CTE that a query uses already. No SQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted, require_annotation_name
from treefold_orm._building.one_database import require_common_database
from treefold_orm._building.query_protocol import Q, Query
from treefold_orm._expressions.cte_nodes import Source
from treefold_orm._expressions.nodes import CTENode, Key, Node, contains_window
from treefold_orm._expressions.operands import build_comparison_node
from treefold_orm._expressions.resolving import resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._expressions.steps import FromCTE, JoinCTE
from treefold_orm._terms.values import as_expression


class Joinable(Protocol):
    """A CTE, as far as a query needs it that joins it."""

    source: Source
    params: tuple[object, ...]
    alias: str

    def build_unknown_name_error(self, name: str) -> FieldError: ...


class CTEJoins:
    """The part of a query that joins CTEs."""

    __slots__ = ()

    def join(self, cte: Joinable, /, **on: Any) -> Self:
        """Only rows that have a partner in the CTE, with its other columns as annotations:
        `Author.objects.join(totals, author="pk")`.

        Keywords are columns of the CTE, values the fields (or expressions) they equal. A row comes
        once for each partner. Raises `FieldError` for unknown or taken names, and for a CTE of
        another database.
        """
        return cast("Self", join_cte(cast("Query", self), cte, on, optional=False))

    def left_join(self, cte: Joinable, /, **on: Any) -> Self:
        """As `join`, and rows without a partner too: their annotations are None."""
        return cast("Self", join_cte(cast("Query", self), cte, on, optional=True))


def join_cte(query: Q, cte: Joinable, on: dict[str, Any], *, optional: bool) -> Q:
    """A query with a CTE joined to it."""
    query._require_unsliced_and_uncombined("join()")
    if not hasattr(cte, "source"):
        raise FieldError(f"join() takes a CTE, not {type(cte).__name__}: wrap the query in CTE()")
    if not on:
        raise FieldError("join() needs at least one column: join(cte, column='field')")
    alias = require_common_database(cte.alias, query._alias, query._meta, "CTE")
    source = cte.source
    # joined CTEs are numbered: a node of a column names its CTE by this place
    place = sum(isinstance(step, JoinCTE) for step in query._key)
    columns = {
        name: CTENode(field, place, index) for index, (name, field) in enumerate(source.columns)
    }
    scope = query._make_scope()
    scope.database = [alias]
    base = find_identical_slice_start(scope.params, cte.params)
    if base is None:
        base = len(scope.params)
        scope.params.extend(cte.params)
    tests = _build_join_tests(cte, on, columns, scope)
    names = _choose_added_columns(query, on, columns)
    leading = source.columns[: source.unique]
    single = bool(leading) and all(name in on for name, _ in leading)
    from treefold_orm._expressions.cte_nodes import Join  # loaded with the driver, not before

    step = Join(source, base, tests, tuple(names.items()), optional, single)
    made = query._add_step_from_scope(JoinCTE(step), scope)
    made._notes = {**(query._notes or {}), **names}
    return made


def _build_join_tests(
    cte: Joinable, on: dict[str, Any], columns: dict[str, CTENode], scope: Scope
) -> tuple[Node, ...]:
    tests: list[Node] = []
    for name, value in on.items():
        check_untainted(name)
        if not name or name not in columns:
            raise cte.build_unknown_name_error(name)
        right = resolve(as_expression(value), scope)
        if contains_window(right):
            raise FieldError("join() cannot compare with a window: annotate and filter by it")
        tests.append(build_comparison_node(columns[name], "exact", right))
    return tuple(tests)


def _choose_added_columns(
    query: Query, on: dict[str, Any], columns: dict[str, CTENode]
) -> dict[str, CTENode]:
    """The columns that rows get as annotations: those that the join does not compare."""
    # the column without a name counts the steps of a recursion whose query asked for no depth
    added = {name: column for name, column in columns.items() if name and name not in on}
    for name in added:
        try:
            require_unused_annotation_name(query, name)
        except FieldError as error:
            raise FieldError(f"{error}: name the column of the CTE otherwise") from None
    return added


def require_unused_annotation_name(query: Query, name: str, *also_taken: str) -> None:
    """Raise `FieldError` for a name that the query has already, or that is one of `also_taken`."""
    meta = query._meta
    is_taken = meta.has_name(name) or name in (query._notes or ()) or name in also_taken
    require_annotation_name(name, is_taken=is_taken)
    if hasattr(meta.model, name):
        raise FieldError(
            f"{name!r} cannot name an annotation: {meta.name} has that attribute already"
        )


def find_identical_slice_start(params: Sequence[object], wanted: Sequence[Any]) -> int | None:
    """Where the very same values stand among the parameters already, else None."""
    size = len(wanted)
    for start in range(len(params) - size + 1):
        # `is`, since 1 == True and 1 == 1.0, which are other values to a column
        if all(params[start + i] is wanted[i] for i in range(size)):
            return start
    return None


def find_ctes_shared_with_outer(
    key: Key, params: Sequence[object], scope: Scope
) -> tuple[tuple[int, int, int], ...]:
    """The CTEs of a query inside another one that the outer one has too: one text serves both."""
    shared: list[tuple[int, int, int]] = []
    for step in key[1:]:
        if not isinstance(step, (FromCTE, JoinCTE)):
            continue
        if isinstance(step, FromCTE):
            source, base = step.source, 0
        else:
            source, base = step.join.source, step.join.base
        place = None
        if source.size:
            place = find_identical_slice_start(scope.params, params[base : base + source.size])
        if place is not None:
            shared.append((base, source.size, place))
    return tuple(shared)
