"""Building queries: every method returns a new query with one more step; nothing touches a
database.

A query is its model, a tuple of steps without values (the key), and a tuple of values (the
parameters). Equal keys share one compiled plan. What each kind of step means to a statement is said
by `replay` in `_compile/_state.py`.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from treefold_orm._compile._nodes import (
    ColumnNode,
    Expr,
    OrderNode,
    SubqueryNode,
    contains_group_aggregate,
)
from treefold_orm._conditions import Condition, Negated, Q, Truth
from treefold_orm._connections import database_for
from treefold_orm._errors import FieldError
from treefold_orm._expressions import Column, Expression, as_expression, freeze_path
from treefold_orm._fields._base import Field
from treefold_orm._hydrate import first_of
from treefold_orm._joins import CTEJoins, shared_ctes
from treefold_orm._lookups import NOTHING, lookup_for, walk, without_columns
from treefold_orm._meta import Meta, Relation
from treefold_orm._names import check_alias, check_untainted
from treefold_orm._ordering import freeze_order
from treefold_orm._scope import Scope

if TYPE_CHECKING:
    from treefold_orm._compile._plan import Plan
    from treefold_orm._model import Model
    from treefold_orm._prefetch import Prefetch

M = TypeVar("M", bound="Model")
R = TypeVar("R", covariant=True)

_SCALARS = frozenset({int, str, uuid.UUID})  # values that no lookup takes for anything else


class QueryBuilder(CTEJoins, Generic[M, R]):
    """The part of a query that can be built without a database."""

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
        "_prefetches",
    )

    _meta: Meta
    _key: tuple[Any, ...]
    _params: tuple[Any, ...]
    _notes: dict[str, Expr] | None
    _alias: str
    _prefetches: tuple[Prefetch, ...]
    _low: int
    _high: int | None
    _max_rows: int | None
    _cache: Any

    def _clone(self) -> Self:
        made = object.__new__(self.__class__)
        made._meta = self._meta
        made._key = self._key
        made._params = self._params
        made._notes = self._notes
        made._alias = self._alias
        made._prefetches = self._prefetches
        made._low = self._low
        made._high = self._high
        made._max_rows = self._max_rows
        made._cache = None
        return made

    def _step(self, token: tuple[Any, ...], params: Sequence[Any] = ()) -> Self:
        made = self._clone()
        made._key = (*self._key, token)
        if params:
            made._params = (*self._params, *params)
        return made

    def _scope(self) -> Scope:
        return Scope(self._meta, list(self._params), self._notes or {}, alias=self._alias)

    def _open(self, what: str) -> None:
        if self._low or self._high is not None:
            raise FieldError(f"{what} cannot follow a slice: slice last")
        if self._key[-1].__class__ is tuple and self._key[-1][0] == "combine":
            raise FieldError(
                f"{what} cannot follow union, intersection or difference: apply it to the parts"
            )

    # -- rows -------------------------------------------------------------------------------------

    def all(self) -> Self:
        """A copy of this query."""
        return self._clone()

    def none(self) -> Self:
        """The same query without any rows."""
        return self._step(("none", True))

    def filter(self, /, *conditions: Condition, **lookups: Any) -> Self:
        """Only rows that meet every condition: `filter(name="x", author__age__gte=18)`,
        `filter(Post.n > 3)`.

        Conditions on one to-many relation in one call speak of the same related row. Raises
        `FieldError` for unknown names, `FieldValueError` for values that do not fit,
        `TaintedInput` for names from a request.
        """
        if self._high is not None or self._low:
            self._open("filter()")
        if conditions or self._notes is not None or not lookups:
            return (
                self._where(Q(*conditions, **lookups)) if conditions or lookups else self._clone()
            )
        params = self._params
        known = self._meta.lookups
        token: list[Any] = ["filter", len(params)]
        values: list[Any] = []
        for name, value in lookups.items():
            lookup = known.get(name) if name.__class__ is str else None
            if lookup is None:
                lookup = lookup_for(self._meta, name)
            if isinstance(value, (Expression, QueryBuilder)):
                return self._where(Q(**lookups))
            lookup, param = lookup.prepare(value)
            token.append(lookup)
            if param is not NOTHING:
                values.append(param)
        made = self._clone()
        made._key = (*self._key, tuple(token))
        made._params = (*params, *values)
        if self._key[-1].__class__ is tuple:
            self._open("filter()")
        return made

    def exclude(self, /, *conditions: Condition, **lookups: Any) -> Self:
        """Only rows that `filter` with the same conditions would not return."""
        self._open("exclude()")
        return self._where(Negated(Q(*conditions, **lookups)))

    def _where(self, condition: Condition) -> Self:
        self._open("filter()")
        scope = self._scope()
        node = condition.freeze_condition(scope)
        made = self._step(("where", node))
        made._params = tuple(scope.params)
        return made

    def order_by(self, *terms: Any) -> Self:
        """Order by names (`-name` for descending) or expressions; the last call counts, none
        clears.
        """
        if self._low or self._high is not None:
            self._open("order_by()")
        scope = self._scope()
        nodes = freeze_order(scope, terms)
        made = self._step(("order", nodes))
        made._params = tuple(scope.params)
        return made

    def reverse(self) -> Self:
        """The same rows in the opposite order (of the key, where the query has none)."""
        self._open("reverse()")
        if self._has("distinct_on"):
            raise FieldError("reverse() after distinct(fields) would take other rows: order first")
        nodes = self._order_step()
        made: Self = self
        if nodes is None:
            made = self.order_by(*(self._meta.ordering or ("pk",)))
            nodes = made._order_step()
        opposite = {"": "", "first": "last", "last": "first"}
        flipped = tuple(OrderNode(n.expr, not n.descending, opposite[n.nulls]) for n in nodes or ())
        return made._step(("order", flipped))

    def _has(self, *names: str) -> bool:
        return any(step[0] in names for step in self._key[1:])

    def _order_step(self) -> tuple[OrderNode, ...] | None:
        return next((step[1] for step in reversed(self._key[1:]) if step[0] == "order"), None)

    def distinct(self, *fields: str | Expression) -> Self:
        """Each row once; with `fields`, the first row only of each combination of their values.

        The first one in the query's order, which must begin with these fields; rows that it leaves
        equal are taken by key.
        """
        self._open("distinct()")
        if not fields:
            return self._step(("distinct", True))
        if self._has("from"):
            raise FieldError("distinct(fields) takes rows of a model: use it inside of the CTE")
        for field in fields:
            if not isinstance(field, (str, Expression)):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
                raise FieldError(f"distinct() takes names of fields, not {type(field).__name__}")
        scope = self._scope()
        made = self._step(("distinct_on", tuple(as_expression(f).freeze(scope) for f in fields)))
        made._params = tuple(scope.params)
        return made

    def using(self, alias: str) -> Self:
        """Ask the database behind another alias."""
        made = self._clone()
        made._alias = alias
        return made

    def limit_rows(self, max_rows: int) -> Self:
        """Raise `TooManyRows` rather than load more than `max_rows` rows."""
        if isinstance(max_rows, bool) or max_rows < 1:
            raise FieldError(f"max_rows={max_rows!r} must be a number of at least 1")
        made = self._clone()
        made._max_rows = max_rows
        return made

    def _sliced(self, start: Any, stop: Any) -> Self:
        for bound in (start, stop):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):
                raise TypeError(f"A slice takes int bounds, not {type(bound).__name__}")
            if bound is not None and bound < 0:
                raise ValueError(f"A slice cannot count from the end: {bound!r} is negative")
        made = self._clone()
        low = self._low + (start or 0)
        high = self._high
        if stop is not None:
            high = self._low + stop if high is None else min(high, self._low + stop)
        made._low = low if high is None else min(low, high)
        made._high = high
        return made

    # -- columns ----------------------------------------------------------------------------------

    def annotate(self, /, **expressions: Expression | Condition) -> Self:
        """Add computed values under names of their own: `annotate(n=Count("posts"))`.

        Names are plain Python names that the model does not have. A condition (`Exists`, `Q`, a
        comparison) becomes True or False. After `values()`, aggregates group.
        """
        self._open("annotate()")
        made = self
        taken = frozenset({*self._meta.fields, *self._meta.by_attname, *self._meta.relations, "pk"})
        for name, expression in expressions.items():
            check_alias(name, taken=taken | frozenset(made._notes or ()))
            if hasattr(self._meta.model, name):
                raise FieldError(
                    f"{name!r} cannot name an annotation: {self._meta.name} has that attribute "
                    "already"
                )
            if isinstance(expression, Condition):
                expression = Truth(expression)
            if not isinstance(cast("Any", expression), Expression):
                raise FieldError(
                    f"annotate({name}=...) takes an expression: wrap a plain value in Value()"
                )
            scope = made._scope()
            node = expression.freeze(scope)
            made = made._step(("annotate", name, node, contains_group_aggregate(node)))
            made._params = tuple(scope.params)
            made._notes = {**(made._notes or {}), name: node}
        return made

    def _rows_of(
        self, kind: str, names: Sequence[Any], expressions: dict[str, Expression | Condition]
    ) -> Any:
        self._open("values()")
        query: Any = self.annotate(**expressions) if expressions else self
        scope: Scope = query._scope()
        columns: list[tuple[str, Expr]] = []
        for name in names or (() if expressions else self._open_names()):
            label, node = _selected(scope, name)
            columns.append((label, node))
        columns += [(name, query._notes[name]) for name in expressions]
        if not names and not expressions and self._notes:
            columns += list(self._notes.items())
        labels = tuple(label for label, _ in columns)
        made = query._step(("values", kind, labels, tuple(columns)))
        made._params = tuple(scope.params)
        return made

    def _open_names(self) -> list[str]:
        return [field.attname for field in self._meta.columns if not field.sensitive]

    def only(self, *names: str) -> Self:
        """Load these columns (and the key) only; others are loaded, or refused, when they are
        read.
        """
        return self._load(self._checked(names))

    def defer(self, *names: str) -> Self:
        """Load all columns but these, and but those that earlier calls left out."""
        known = next((step[1] for step in reversed(self._key[1:]) if step[0] == "load"), None)
        return self._load(without_columns(self._meta, known, self._checked(names)))

    def _load(self, names: frozenset[str]) -> Self:
        if self._meta.version is not None:
            names |= {self._meta.version.name}
        return self._step(("load", names))

    def _checked(self, names: Sequence[str]) -> frozenset[str]:
        for name in names:
            _, _, rest = walk(self._meta, name)
            if rest:
                raise FieldError(f"{name!r} must name a column")
        return frozenset(names)

    def select_related(self, *paths: str) -> Self:
        """Load to-one relations along with the rows, by a join: `select_related("author",
        "author__country")`.
        """
        self._open("select_related()")
        known: tuple[str, ...] = next(
            (step[1] for step in reversed(self._key[1:]) if step[0] == "related"), ()
        )
        for path in paths:
            check_untainted(path)
            here = self._meta
            for part in path.split("__"):
                relation = here.find(part)
                relation = here.relations.get(part) if isinstance(relation, Field) else relation
                if not isinstance(relation, Relation):
                    raise here.unknown(part)
                if relation.to_many:
                    raise FieldError(
                        f"select_related({path!r}) leads to many rows: use prefetch_related"
                    )
                here = relation.target
        return self._step(("related", tuple(dict.fromkeys((*known, *paths)))))

    def prefetch_related(self, *lookups: str | Prefetch) -> Self:
        """Load relations with one more query each: names, nested names, or `Prefetch` with a
        query.
        """
        from treefold_orm._prefetch import as_prefetch

        made = self._clone()
        made._prefetches = (
            *self._prefetches,
            *(as_prefetch(self._meta, lookup) for lookup in lookups),
        )
        return made

    # -- sets and locks ---------------------------------------------------------------------------

    def union(self, *others: QueryBuilder[Any, Any], all: bool = False) -> Self:
        """Rows of this query and the others, each once; with `all`, as often as they come."""
        return self._combine("union all" if all else "union", others)

    def intersection(self, *others: QueryBuilder[Any, Any]) -> Self:
        """Rows that are in this query and in all others."""
        return self._combine("intersect", others)

    def difference(self, *others: QueryBuilder[Any, Any]) -> Self:
        """Rows of this query that are in none of the others."""
        return self._combine("except", others)

    def _combine(self, op: str, others: Sequence[QueryBuilder[Any, Any]]) -> Self:
        made = self
        last = self._key[-1]
        if last.__class__ is tuple and last[0] == "combine" and last[1] != op:
            raise FieldError(
                "Different set operations cannot be mixed: combine in one kind, or filter by key"
            )
        for other in others:
            for part in (made, other):
                if part._low or part._high is not None:
                    raise FieldError("A sliced query cannot be combined: slice the result")
                if part._has("distinct_on"):
                    raise FieldError(
                        "distinct(fields) cannot be combined: filter by the keys of its rows"
                    )
            key = other._key
            if key[0] is not self._meta and not any(step[0] == "values" for step in key[1:]):
                raise FieldError(
                    f"{other._meta.name} cannot be combined with {self._meta.name}: use "
                    "values() on both"
                )
            made = made._step(("combine", op, key, len(made._params)), other._params)
        return made

    def select_for_update(
        self, *, skip_locked: bool = False, nowait: bool = False, share: bool = False
    ) -> Self:
        """Lock the rows until the transaction ends (on SQLite the transaction holds the lock
        already).
        """
        self._open("select_for_update()")
        return self._step(("lock", (bool(skip_locked), bool(nowait), bool(share))))

    # -- compiling --------------------------------------------------------------------------------

    def _whole(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        low, high = self._low, self._high
        if high is None and not low:
            return self._key, self._params
        token = ("slice", len(self._params), high is not None, bool(low))
        params = self._params if high is None else (*self._params, high - low)
        return (*self._key, token), (*params, low) if low else params

    def _plan(self, kind: str) -> tuple[Plan, Sequence[Any]]:
        database = database_for(self._alias)
        key, params = self._whole()
        plan = database.plans.get((kind, key))
        if plan is None:
            from treefold_orm._compile import _select  # loaded with the driver, not before

            plan = getattr(_select, f"{kind}_plan")(database.dialect, key, given=len(params))
            _mark_alias(plan, database.alias)
            database.plans.keep((kind, key), plan)
        return plan, params if plan.bind is None else plan.bind(params)

    def _by_one(self, lookups: dict[str, Any]) -> tuple[Plan, Sequence[Any]] | None:
        """The plan and arguments of `get` with one exact lookup among all rows, the commonest query
        of all, without building a query; None where it is not that.
        """
        if len(self._key) != 1 or self._prefetches or self._high is not None or self._low:
            return None
        ((name, value),) = lookups.items()
        meta = self._meta
        lookup = meta.lookups.get(name) if name.__class__ is str else None
        if lookup is None or lookup.exact is None or value.__class__ not in _SCALARS:
            return None
        params = (lookup.exact(value),)
        database = database_for(self._alias)
        plan = database.plans.get((meta, name))
        if plan is None:
            plan = database.plans.keep((meta, name), self.filter(**lookups)._plan("get")[0])
        return plan, params if plan.bind is None else plan.bind(params)

    def _freeze_subquery(self, scope: Scope) -> SubqueryNode:
        key, params = self._whole()
        base = len(scope.params)
        shared = shared_ctes(key, params, scope, self._alias)
        scope.params.extend(params)
        columns = next((step[3] for step in reversed(key[1:]) if step[0] == "values"), None)
        field = columns[0][1].field if columns else self._meta.pk
        return SubqueryNode(field, key, base, shared)

    def explain_sql(self) -> str:
        """The SQL this query would send, with placeholders and without values."""
        return self._plan("rows")[0].sql


def _selected(scope: Scope, name: Any) -> tuple[str, Expr]:
    if isinstance(name, Column):
        column = cast("Column[Any]", name)
        return column.path, column.freeze(scope)
    if not isinstance(name, str):
        raise FieldError(
            f"values() takes names and columns, not {type(name).__name__}: name expressions by "
            "keyword"
        )
    check_untainted(name)
    if name in scope.annotations:
        return name, scope.annotations[name]
    hops, column_field, rest = walk(scope.meta, name)
    if rest:
        return name, freeze_path(scope, name, typed=False)
    return name, ColumnNode(column_field, hops, column_field)


def _mark_alias(plan: Plan, alias: str) -> None:
    if alias == "default" or plan.decode is None:
        return

    def marking(decode: Any) -> Any:
        def decoded(rows: Any) -> Any:
            made = decode(rows)
            for item in made:
                if hasattr(item, "_row"):
                    item._alias = alias
            return made

        return decoded

    plan.decode, plan.decode_peers = marking(plan.decode), marking(plan.decode_peers)
    plan.decode_one = first_of(plan.decode)
