"""Building queries: every method returns a new query with one more step; nothing touches a
database.

The steps of a query are in `steps.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted, require_annotation_name
from treefold_orm._building.joins import CTEJoins
from treefold_orm._building.one_database import check_can_change_database
from treefold_orm._building.own_rows import build_key_ordering
from treefold_orm._building.selecting import (
    refuse_ungrouped_step_values,
    resolve_distinct_columns,
    resolve_selected_column,
)
from treefold_orm._building.sources import (
    list_relation_source_columns,
    require_relation,
    require_valid_prefetch,
)
from treefold_orm._building.steps import QuerySteps
from treefold_orm._expressions import nodes, steps
from treefold_orm._expressions.conditions import contains_expressions, resolve_condition
from treefold_orm._expressions.lookups import (
    NOTHING,
    Lookup,
    parse_lookup,
    refuse_sensitive,
    remove_deferred_columns,
    walk_path,
)
from treefold_orm._expressions.ordering import cache_ordering, resolve_order
from treefold_orm._expressions.resolving import QuerySource, resolve
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Instance
from treefold_orm._terms.columns import AnyColumn, Column, Shaped
from treefold_orm._terms.operators import Condition, Expression, Q
from treefold_orm._terms.values import Truth

if TYPE_CHECKING:
    from treefold_orm._building.sources import Prefetch
    from treefold_orm._functions.aggregates import Aggregate

M = TypeVar("M", bound=Instance)
R = TypeVar("R", covariant=True)


class QueryBuilder(QuerySteps, CTEJoins, Generic[M, R]):
    """The part of a query that can be built without a database."""

    __slots__ = ()

    # -- rows -------------------------------------------------------------------------------------

    def all(self) -> Self:
        """A copy of this query."""
        return self._clone()

    def none(self) -> Self:
        """The same query without any rows."""
        return self._add_step(steps.NoRows())

    def filter(self, /, *conditions: Condition, **lookups: Any) -> Self:
        """Only rows that meet every condition: `filter(name="x", author__age__gte=18)`,
        `filter(Post.n > 3)`.

        Conditions on one to-many relation in one call speak of the same related row. Raises
        `FieldError` for unknown names, `FieldValueError` for values that do not fit,
        `TaintedInput` for names from a request.
        """
        if self._high is not None or self._low:
            self._require_unsliced_and_uncombined("filter()")
        if conditions or self._notes is not None or not lookups:
            if conditions or lookups:
                return self._add_condition(Q(*conditions, **lookups))
            return self._clone()
        params = self._params
        known = self._meta.lookups
        lookups_given: list[Lookup] = []
        values: list[Any] = []
        for name, value in lookups.items():
            # a name that a request has marked is of a subclass of str: parse_lookup() refuses it
            lookup = known.get(name) if name.__class__ is str else None
            if lookup is None:
                lookup = parse_lookup(self._meta, name)
                if isinstance(lookup.column, KeyColumns):
                    return self._add_condition(Q(**lookups))
            if isinstance(value, (Expression, QuerySource)) or (
                lookup.op in {"in", "range"} and contains_expressions(lookup.op, value)
            ):
                return self._add_condition(Q(**lookups))
            lookup, param = lookup.prepare_value(value)
            lookups_given.append(lookup)
            if param is not NOTHING:
                values.append(param)
        made = self._clone()
        made._key = (*self._key, steps.Filter(len(params), tuple(lookups_given)))
        made._params = (*params, *values)
        if len(self._key) > 1:
            self._require_unsliced_and_uncombined("filter()")
        return made

    def exclude(self, /, *conditions: Condition, **lookups: Any) -> Self:
        """Only rows that `filter` with the same conditions would not return."""
        self._require_unsliced_and_uncombined("exclude()")
        return self._add_condition(~Q(*conditions, **lookups))

    def _add_condition(self, condition: Condition) -> Self:
        self._require_unsliced_and_uncombined("filter()")
        if condition.empty:
            return self._clone()
        scope = self._make_scope()
        node = resolve_condition(condition, scope)
        made = self._add_step_from_scope(steps.Where(node), scope)
        if self._notes is not None and nodes.contains_group_aggregate(node):
            refuse_ungrouped_step_values(made._key)
        return made

    def order_by(self, *terms: Any) -> Self:
        """Order by names (`-name` for descending) or expressions, or by chance (`"?"`); the last
        call counts, none clears.
        """
        if self._low or self._high is not None:
            self._require_unsliced_and_uncombined("order_by()")
        named = self._notes is None and all([term.__class__ is str for term in terms])
        known = self._meta.orderings.get(terms) if named else None
        if known is not None:
            return self._add_step(known)
        scope = self._make_scope()
        found = resolve_order(scope, terms)
        if named and all(isinstance(term.expr, nodes.ColumnNode) for term in found):
            return self._add_step(cache_ordering(self._meta, terms, found))
        return self._add_step_from_scope(steps.Ordering(found), scope)

    def reverse(self) -> Self:
        """The same rows in the opposite order (of the key, where the query has none)."""
        self._require_unsliced_and_uncombined("reverse()")
        if self._has_step(steps.DistinctOn):
            raise FieldError("reverse() after distinct(fields) would take other rows: order first")
        made: Self = self
        if made._find_order_terms() is None:
            made = self.order_by(*(self._meta.ordering or build_key_ordering(self._meta)))
        opposite = {"": "", "first": "last", "last": "first"}
        terms = made._find_order_terms() or ()
        flipped = tuple(nodes.OrderNode(t.expr, not t.descending, opposite[t.nulls]) for t in terms)
        return made._add_step(steps.Ordering(flipped))

    def distinct(self, *fields: str | Expression) -> Self:
        """Each row once; with `fields`, the first row only of each combination of their values.

        The first one in the query's order, which must begin with these fields; rows that it leaves
        equal are taken by key.
        """
        self._require_unsliced_and_uncombined("distinct()")
        if not fields:
            return self._add_step(steps.Distinct())
        if self._has_step(steps.FromCTE):
            raise FieldError("distinct(fields) takes rows of a model: use it inside of the CTE")
        for field in fields:
            if not isinstance(field, (str, Expression)):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
                raise FieldError(f"distinct() takes names of fields, not {type(field).__name__}")
        scope = self._make_scope()
        columns = tuple(
            column for field in fields for column in resolve_distinct_columns(scope, field)
        )
        return self._add_step_from_scope(steps.DistinctOn(columns), scope)

    def using(self, alias: str) -> Self:
        """Ask the database behind another alias; comes before other queries are taken in."""
        check_can_change_database(self, alias)
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

    def raiseload(self) -> Self:
        """Raise `NotLoaded` where an instance would send a statement for what it lacks.

        For sync code in development and tests, as async code always does: an attribute that holds a
        left-out column or a related row is refused, also on instances that are loaded along. Calls
        that name what they load (`load()`, `author.books.all()`) work.
        """
        made = self._clone()
        made._raises_lazy = True
        return made

    def _slice_rows(self, start: int | None, stop: int | None) -> Self:
        for bound in (start, stop):
            if bound is not None and (isinstance(bound, bool) or not isinstance(bound, int)):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
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

    def annotate(self, /, *aggregates: Aggregate, **expressions: Expression | Condition) -> Self:
        """Add computed values under names of their own: `annotate(n=Count("posts"))`.

        Aggregates without a name get one: `posts__count` for `Count("posts")`. Names are plain
        Python names that the model does not have. A condition (`Exists`, `Q`, a comparison)
        becomes True or False. After `values()`, aggregates group. A name that `alias` has made may
        be given again, and is loaded from then on.
        """
        return self._add_named_expressions(
            "annotate", aggregates, expressions, reusable_names=self._find_unloaded_annotations()
        )

    def alias(self, /, *aggregates: Aggregate, **expressions: Expression | Condition) -> Self:
        """Name computed values for filters, orders and other expressions, without loading them:
        `alias(n=Count("posts")).filter(n__gt=3)`.

        Names are as in `annotate`, which loads one later: `annotate(n=F("n"))`.
        """
        return self._add_named_expressions(
            "alias", aggregates, expressions, reusable_names=frozenset()
        )

    def _find_unloaded_annotations(self) -> frozenset[str]:
        named = [step for step in self._key if isinstance(step, steps.Annotate)]
        return frozenset({s.name for s in named} - {s.name for s in named if s.loaded})

    def _add_named_expressions(
        self,
        method_name: str,
        aggregates: tuple[Aggregate, ...],
        expressions: dict[str, Expression | Condition],
        *,
        reusable_names: frozenset[str],
        allowed_field_names: frozenset[str] = frozenset(),
    ) -> Self:
        """Add named expressions; `allowed_field_names` are names of fields, which rows of
        `values()` may have.

        Within one call such a name means the field: `values(a=F("b"), b=F("a"))`.
        """
        self._require_unsliced_and_uncombined(f"{method_name}()")
        made = self
        renamed: dict[str, nodes.Expr] = {}
        given = expressions
        if aggregates:
            from treefold_orm._functions.aggregates import (
                assign_aggregate_names,  # few queries need them
            )

            given = assign_aggregate_names(aggregates, expressions)
        for name, expression in given.items():
            is_known = name in (made._notes or ()) and name not in reusable_names
            if name in expressions:
                is_field = name not in allowed_field_names and self._meta.has_name(name)
                require_annotation_name(name, is_taken=is_known or is_field)
            elif is_known:
                raise FieldError(f"{name!r} is an annotation already: give the aggregate a name")
            if name not in allowed_field_names and hasattr(self._meta.model, name):
                raise FieldError(
                    f"{name!r} cannot name an annotation: {self._meta.name} has that attribute "
                    "already"
                )
            if isinstance(expression, Condition):
                expression = Truth(expression)
            if not isinstance(cast("Any", expression), Expression):
                raise FieldError(
                    f"{method_name}({name}=...) takes an expression: wrap a plain value in Value()"
                )
            scope = made._make_scope()
            node = resolve(expression, scope)
            grouping = nodes.contains_group_aggregate(node)
            if grouping and not made._has_step(steps.Values):
                node = nodes.wrap_aggregate_per_row(node)
            step = steps.Annotate(name, node, grouping, loaded=method_name == "annotate")
            made = made._add_step_from_scope(step, scope)
            if name in allowed_field_names:
                renamed[name] = node
            else:
                made._notes = {**(made._notes or {}), name: node}
            if grouping and not isinstance(node, (nodes.AggregateNode, nodes.PerRowNode)):
                refuse_ungrouped_step_values(made._key)
        if renamed:
            made._notes = {**(made._notes or {}), **renamed}
        return made

    def only(self, *names: str | AnyColumn | type[Shaped]) -> Self:
        """Load these columns (and the key) only; others are loaded, or refused, when they are
        read. `only(BookOut)` loads the columns of a shape, and the related rows that it has.
        """
        if names and isinstance(shape := names[0], type):
            if len(names) > 1 or not issubclass(cast("type[object]", shape), Shaped):
                raise FieldError(
                    f"only() takes names and columns, or one shape, got {shape.__name__}"
                )
            return shape.plan_rows().select_rows(self)
        return self._set_loaded_columns(self._resolve_column_paths(names, reject_sensitive=True))

    def defer(self, *names: str | AnyColumn | None) -> Self:
        """Load all columns but these, and but those that earlier calls left out; `defer(None)`
        loads all again.
        """
        if any(name is None for name in names):
            return self._copy_without_steps(steps.Load, names)
        loaded = self._find_last_step(steps.Load)
        known = None if loaded is None else loaded.names
        paths = self._resolve_column_paths(names, reject_sensitive=False)
        return self._set_loaded_columns(remove_deferred_columns(self._meta, known, paths))

    def _set_loaded_columns(self, names: frozenset[str]) -> Self:
        if self._meta.version is not None:
            names |= {self._meta.version.name}
        names |= self._find_prefetch_columns(self._prefetches)
        return self._add_step(steps.Load(names))

    def _resolve_column_paths(
        self, names: Sequence[Any], *, reject_sensitive: bool
    ) -> frozenset[str]:
        paths: list[str] = []
        for name in names:
            if isinstance(name, Column):
                cast("AnyColumn", name).check_model(self._meta)
            path: str = name.path if isinstance(name, Column) else name
            _, column, rest = walk_path(self._meta, path)
            if rest:
                raise FieldError(f"{path!r} must name a column")
            if reject_sensitive and path is name:
                refuse_sensitive(self._meta, column, path)
            paths.append(path)
        return frozenset(paths)

    def select_related(self, *paths: str | None) -> Self:
        """Load to-one relations along with the rows, by a join: `select_related("author",
        "author__country")`; `select_related(None)` loads none again.
        """
        self._require_unsliced_and_uncombined("select_related()")
        if not paths:
            raise FieldError("select_related() needs the names of relations; None clears")
        if None in paths:
            return self._copy_without_steps(steps.SelectRelated, paths)
        joined = self._find_last_step(steps.SelectRelated)
        known = () if joined is None else joined.paths
        for path in cast("tuple[str, ...]", paths):
            check_untainted(path)
            here = self._meta
            for part in path.split("__"):
                relation = require_relation(here, part)
                if relation.to_many:
                    raise FieldError(
                        f"select_related({path!r}) leads to many rows: use prefetch_related"
                    )
                here = relation.target
        return self._add_step(
            steps.SelectRelated(tuple(dict.fromkeys((*known, *cast("tuple[str, ...]", paths)))))
        )

    def prefetch_related(self, *lookups: str | Prefetch | None) -> Self:
        """Load relations with one more query each: names, nested names, or `Prefetch` with a
        query; `prefetch_related(None)` loads none again.

        A query with `using()` is sent to its own database.
        """
        made = self._clone()
        if None in lookups:
            made = self._copy_without_steps(None, lookups)
            made._prefetches = ()
            return made
        given = [
            require_valid_prefetch(self._meta, lookup) for lookup in lookups if lookup is not None
        ]
        loaded = made._find_last_step(steps.Load)
        if loaded is not None and (missing := self._find_prefetch_columns(given) - loaded.names):
            made = made._set_loaded_columns(loaded.names | missing)
        made._prefetches = (*self._prefetches, *given)
        return made

    def _find_prefetch_columns(self, specs: Sequence[Prefetch]) -> frozenset[str]:
        """The names of the columns by which related rows are found: only() loads them too."""
        first = {spec.path.split("__")[0] for spec in specs}
        found = [
            field for name in first for field in list_relation_source_columns(self._meta, name)
        ]
        return frozenset([field.name for field in found])

    def _select_values(
        self, row_kind: str, names: Sequence[Any], expressions: dict[str, Expression | Condition]
    ) -> AnyQuery:
        self._require_unsliced_and_uncombined("values()")
        query = self
        if expressions:
            columns_named = frozenset({*self._meta.fields, *self._meta.by_attname} & {*expressions})
            if twice := [name for name in names if name in columns_named]:
                raise FieldError(
                    f"values() cannot give two columns the name {twice[0]!r}; give the expression "
                    "another one"
                )
            query = self._add_named_expressions(
                "annotate",
                (),
                expressions,
                reusable_names=self._find_unloaded_annotations(),
                allowed_field_names=columns_named,
            )
        scope = query._make_scope()
        columns: list[tuple[str, nodes.Expr]] = []
        labels: list[steps.Label] = []
        unloaded = self._find_unloaded_annotations()
        if aliased := [name for name in names if isinstance(name, str) and name in unloaded]:
            raise FieldError(
                f"values() cannot select {aliased[0]!r}, which alias() has made; load it with "
                f'annotate({aliased[0]}=F("{aliased[0]}"))'
            )
        for name in names or (() if expressions else self._list_nonsensitive_columns()):
            label, found = resolve_selected_column(scope, name)
            columns += found
            labels.append(label if len(found) == 1 else steps.KeyLabel(label, len(found)))
        added = list(expressions)
        if not names and not expressions and self._notes:
            hidden = self._find_unloaded_annotations()
            added = [name for name in self._notes if name not in hidden]
        notes = query._notes or {}
        columns += [(name, notes[name]) for name in added]
        labels += added
        step = steps.Values(row_kind, tuple(labels), tuple(columns))
        return query._add_step_from_scope(step, scope)

    def _list_nonsensitive_columns(self) -> list[str]:
        return [field.attname for field in self._meta.columns if not field.sensitive]

    def explain_sql(self) -> str:
        """The SQL this query would send, with placeholders and without values."""
        return self._compile_plan("rows")[0].sql


QueryOf = QueryBuilder[Any, R]
AnyQuery = QueryOf[Any]
