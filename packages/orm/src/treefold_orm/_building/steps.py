"""A query as data, how it is copied, and how its plan is found.

A query is its model, a tuple of steps without values (the key), and a tuple of values (the
parameters). Equal keys share one compiled plan. `replay` in `_compile/state.py` says what each kind
of step means to a statement; `query.py` has the methods by which callers add steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from treefold_orm._base.errors import FieldError
from treefold_orm._building.combining import list_subquery_column_fields
from treefold_orm._building.joins import find_ctes_shared_with_outer
from treefold_orm._building.one_database import require_common_database
from treefold_orm._expressions.nodes import Expr, Key, OrderNode, SubqueryNode
from treefold_orm._expressions.outer import resolve_outer_types
from treefold_orm._expressions.resolving import QuerySource
from treefold_orm._expressions.scope import Scope
from treefold_orm._expressions.steps import Combine, Ordering, Slice, Step
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta, Relation
from treefold_orm._runtime.connections import database_for

if TYPE_CHECKING:
    from treefold_orm._building.sources import Prefetch
    from treefold_orm._decode.plan import Plan


S = TypeVar("S", bound=Step)


def build_nesting_error() -> FieldError:
    """The error for queries inside of queries that no statement can be made of."""
    return FieldError(
        "The query holds too many queries inside of each other; run the inner ones first, and "
        "give their keys as a list"
    )


class QuerySteps(QuerySource):
    """A model, the steps of a query and their values; every change is made to a copy.

    `Article.objects.filter(views__gt=5).order_by("title")[20:30]` has

    | Attribute | Value |
    |---|---|
    | `_meta`, `_alias` | the description of `Article`, and the database `default` |
    | `_key` | `_meta`, a `Filter` and an `Ordering`, without any value |
    | `_params` | `(5,)` |
    | `_low`, `_high` | 20 and 30: a slice becomes a step when the plan is looked up |
    | `_notes` | None: no annotations; else their nodes by name |
    | `_prefetches`, `_max_rows` | what `prefetch_related()` and `limit_rows()` were given |
    | `_parent` | None; for `writer.articles` the related manager that new rows are tied to |
    | `_raises_lazy` | False: its instances may load what they lack |
    | `_cache` | None; its rows once they were iterated over |
    """

    __slots__ = (
        "_alias",
        "_cache",
        "_high",
        "_key",
        "_low",
        "_max_rows",
        "_meta",
        "_notes",
        "_params",
        "_parent",
        "_prefetches",
        "_raises_lazy",
    )

    _meta: Meta
    _key: Key
    _params: tuple[object, ...]
    _notes: dict[str, Expr] | None
    _alias: str
    _prefetches: tuple[Prefetch, ...]
    _parent: Any
    _low: int
    _high: int | None
    _max_rows: int | None
    _raises_lazy: bool
    _cache: Any

    def _clone(self) -> Self:
        # each attribute by name: copy.copy() takes several times as long, once for each step
        made = object.__new__(self.__class__)
        made._meta = self._meta
        made._key = self._key
        made._params = self._params
        made._notes = self._notes
        made._alias = self._alias
        made._prefetches = self._prefetches
        made._parent = self._parent
        made._low = self._low
        made._high = self._high
        made._max_rows = self._max_rows
        made._raises_lazy = self._raises_lazy
        made._cache = None
        return made

    def _add_step(self, step: Step, params: Sequence[object] = ()) -> Self:
        made = self._clone()
        made._key = (*self._key, step)
        if params:
            made._params = (*self._params, *params)
        return made

    def _add_step_from_scope(self, step: Step, scope: Scope) -> Self:
        made = self._add_step(step)
        made._params = tuple(scope.params)
        if scope.database is not None:
            (made._alias,) = scope.database
        return made

    def _make_scope(self) -> Scope:
        return Scope(self._meta, list(self._params), self._notes or {}, database=[self._alias])

    def _replace_slice(self, low: int, high: int | None) -> Self:
        """The same query with another slice in place of its own."""
        made = self._clone()
        made._low, made._high = low, high
        return made

    def _require_unsliced_and_uncombined(self, what: str) -> None:
        if self._low or self._high is not None:
            raise FieldError(f"{what} cannot follow a slice: slice last")
        if isinstance(self._key[-1], Combine):
            raise FieldError(
                f"{what} cannot follow union, intersection or difference: apply it to the parts"
            )

    def _has_step(self, *kinds: type[Step]) -> bool:
        for step in self._key[1:]:  # noqa: SIM110 - a generator takes longer than most lists
            if isinstance(step, kinds):
                return True
        return False

    def _find_last_step(self, kind: type[S]) -> S | None:
        for step in reversed(self._key):
            if isinstance(step, kind):
                return step
        return None

    def _find_order_terms(self) -> tuple[OrderNode, ...] | None:
        found = self._find_last_step(Ordering)
        return None if found is None else found.terms

    def _copy_without_steps(
        self, kind: type[Step] | None, call_arguments: tuple[object, ...]
    ) -> Self:
        if len(call_arguments) != 1:
            raise FieldError(f"None stands alone: it clears, got {call_arguments!r}")
        made = self._clone()
        if kind is not None:
            kept = (step for step in self._key[1:] if not isinstance(step, kind))
            made._key = (self._key[0], *kept)
        return made

    # -- compiling --------------------------------------------------------------------------------

    def _build_key_and_params(self) -> tuple[Key, tuple[object, ...]]:
        low, high = self._low, self._high
        if high is None and not low:
            return self._key, self._params
        # the bounds are parameters, so that all pages of a query share one plan
        step = Slice(len(self._params), limit=high is not None, offset=bool(low))
        params = self._params if high is None else (*self._params, high - low)
        return (*self._key, step), (*params, low) if low else params

    def _compile_plan(self, kind: str) -> tuple[Plan, Sequence[object]]:
        database = database_for(self._alias)
        key, params = self._build_key_and_params()
        try:
            plan = database.plans.get((kind, key))
            if plan is None:
                plan = database.find_plan((kind, key), key, given=len(params), alias=database.alias)
        except RecursionError:
            raise build_nesting_error() from None
        return plan, params if plan.bind is None else plan.bind(params)

    def _compile_partitioned_plan(
        self, kind: str, field: AnyField, source: AnyField | Relation, *more: object
    ) -> tuple[Plan, Sequence[object]]:
        """The plan for the rows of each value of a column.

        Args:
            kind: `parted` by a column of the rows, `linked` by one of a many-to-many relation.
            field: the column.
            source: the column, or the relation.
            more: further parameters.
        """
        database = database_for(self._alias)
        key, params = self._build_key_and_params()
        params = (*params, *more)
        name, given = (kind, field, key), len(params)
        plan = database.find_plan(name, key, source, given=given, alias=database.alias)
        return plan, params if plan.bind is None else plan.bind(params)

    def _resolve_subquery(self, scope: Scope) -> SubqueryNode:
        if scope.database is not None:
            (outer,) = scope.database
            scope.database[:] = [require_common_database(self._alias, outer, scope.meta)]
        key, params = self._build_key_and_params()
        base = len(scope.params)
        shared = find_ctes_shared_with_outer(key, params, scope)
        scope.params.extend(params)
        try:
            key = resolve_outer_types(key, scope, list_subquery_column_fields)
            fields = list_subquery_column_fields(key)
        except RecursionError:
            raise build_nesting_error() from None
        return SubqueryNode(fields[0] if fields else None, key, base, shared)
