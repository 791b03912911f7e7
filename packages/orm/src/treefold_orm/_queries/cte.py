"""CTE: a query with a name, which others join or select from, and its recursive form.

A CTE holds the shape of its query (a `Source`) and its values; `objects` is a query like any other.
No SQL is built here.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from treefold_orm._base.errors import DoesNotExist, FieldError, MultipleObjectsReturned
from treefold_orm._base.names import check_alias, check_untainted
from treefold_orm._compile.cte import Recursion, Source
from treefold_orm._expressions.conditions import Condition
from treefold_orm._expressions.conversion import (
    common_field,
    converted,
    representation,
)
from treefold_orm._expressions.expressions import as_expression
from treefold_orm._expressions.nodes import (
    PREVIOUS,
    SELECTED,
    ColumnNode,
    ConvertNode,
    CTENode,
    Expr,
    contains_group_aggregate,
    contains_row_aggregate,
    contains_window,
)
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import INTEGER
from treefold_orm._fields.meta import Meta, Relation, registry
from treefold_orm._queries.combining import column_fields
from treefold_orm._queries.forms import as_rows
from treefold_orm._queries.joins import joined
from treefold_orm._queries.managers import plain_query
from treefold_orm._queries.query import QueryBuilder, query_of
from treefold_orm._queries.querysets import BaseQuery

if TYPE_CHECKING:
    from treefold_orm._models.model import Model

M = TypeVar("M", bound="Model")
N = TypeVar("N", bound="Model")
R = TypeVar("R")

_LOADING = {
    "load": "only() and defer()",
    "related": "select_related()",
    "lock": "select_for_update()",
}


_NOT_CARRIED = (contains_group_aggregate, contains_row_aggregate, contains_window)


class Row:
    """What a row of a CTE of values stands for: it is of no model."""

    DoesNotExist = DoesNotExist
    MultipleObjectsReturned = MultipleObjectsReturned


class RowMeta(Meta):
    """The names of a CTE of values, in place of a model's; equal for equal CTEs."""

    def __init__(self, source: Source) -> None:
        # what a model has and a CTE has not stays empty: every name is found among the annotations
        self.source = source
        self.model = cast("Any", Row)
        self.name = "CTE"
        self.abstract = False
        self.registry = registry
        self.fields = {}
        self.by_attname = {}
        self.relations = {}
        self.columns = ()
        self.ordering = ()
        self.lookups = {}
        self.version = None
        self.pk = cast("Field[Any]", None)
        self.keys = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowMeta) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.source)

    def find(self, name: str) -> None:
        return None

    def unknown(self, name: str) -> FieldError:
        return unknown_column(self.source, name)


def unknown_column(source: Source, name: str) -> FieldError:
    """The error for a column that a CTE does not have."""
    names = [known for known, _ in source.columns if known]
    if name in names:
        return FieldError(f"{name!r} is a column of the CTE, not of a model: choose by values()")
    if name == "pk" and source.recursion is None:
        return FieldError(f"The rows of a CTE have no 'pk': name {', '.join(names)}")
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)}"
    return FieldError(f"The CTE has no column {name!r}: {hint}")


class CTE(Generic[M, R]):
    """A query that others join or select from, written once however often it is used.

    Of a query with `values()` it has those columns, and `objects` gives rows in the same form; of
    instances it has their key and annotations, and `objects` gives instances:

        totals = CTE(Post.objects.values("author").annotate(n=Count("id")))
        Author.objects.join(totals, author="pk").filter(n__gt=3)
        totals.objects.order_by("-n")[:10]

    Its columns take the lookups that compare and search text, not date parts and JSON paths:
    annotate those inside, or with `Extract`. Raises `FieldError` for a query that cannot be one:
    with locks, loading options or sensitive columns.
    """

    __slots__ = ("alias", "model", "params", "rows", "source")

    source: Source
    params: tuple[Any, ...]
    alias: str
    model: Meta | None
    rows: str

    def __init__(self, query: BaseQuery[M, R]) -> None:
        query = query_of(query)
        _check(query, "A CTE")
        state_rows = next((step for step in reversed(query._key[1:]) if step[0] == "values"), None)
        made: QueryBuilder[Any, Any] = query
        self.model = None
        if state_rows is None:
            self.model = query._meta
            made = _keys_and_notes(query)
        columns = _columns(made)
        key, params = made._whole()
        names = (name for name, _ in columns)
        named = tuple(zip(names, column_fields(made._key), strict=True))
        unique = 0 if self.model is None or not _once(query) else len(self.model.keys)
        self.source = Source(key, named, len(params), unique)
        self.params = tuple(params)
        self.alias = query._alias
        self.rows = "instances" if state_rows is None else state_rows[1]
        if self.rows == "flat" and len(columns) > 1:  # of a key of several columns
            self.rows = "tuples"

    @classmethod
    def recursive(
        cls,
        start: BaseQuery[N, N],
        follow: str,
        /,
        *,
        depth: str | None = None,
        max_depth: int | None = None,
        where: Condition | None = None,
        carry: Mapping[str, tuple[Any, Any]] | None = None,
    ) -> CTE[N, N]:
        """The rows of `start`, those that the relation `follow` leads to, and so on.

            below = CTE.recursive(Category.objects.filter(pk=7), "children", depth="level")
            below.objects.filter(level__lte=2).order_by("level", "name")

        Every row comes once, and cycles end. `depth` names an annotation: how many steps away a
        row is at least. `max_depth` ends after so many steps; over many-to-many relations `depth`
        and `carry` need it. `where` is met by every row that is gone on to. `carry` names values
        that change from row to row, as a start and a step, in which the name means the value of
        the row before: `carry={"path": ("name", Concat("path", Value(" / "), "name"))}`; a row
        then comes once for each way that leads to it.

        Raises `FieldError` for a relation that does not lead back to the model, names that are
        taken, and a start with `values()`, a slice or a union.
        """
        made: CTE[N, N] = cls.__new__(cls)  # pyright: ignore[reportAssignmentType] - the class is generic over what it is made of
        made._follow(
            start, follow, depth=depth, max_depth=max_depth, where=where, carry=dict(carry or {})
        )
        return made

    def _follow(
        self,
        start: QueryBuilder[Any, Any],
        follow: str,
        *,
        depth: str | None,
        max_depth: int | None,
        where: Condition | None,
        carry: dict[str, tuple[Any, Any]],
    ) -> None:
        start = query_of(start)
        _check(start, "A recursive CTE", whole=True)
        relation = _relation(start._meta, follow)
        _check_limit(relation, follow, max_depth, bounded=depth is None and not carry)
        key, params = start._whole()
        scope = Scope(start._meta, list(params), start._notes or {}, alias=start._alias)
        names = [start._meta.pk.attname, *([depth or ""] if depth or max_depth else []), *carry]
        _check_names(start, [name for name in (depth, *carry) if name is not None])
        condition = None if where is None else where.freeze_condition(scope.within(start._meta))
        limit = None if max_depth is None else scope.param(max_depth, INTEGER).index
        carried = _carried(scope, depth, names, carry)
        fields: list[Field[Any] | None] = [start._meta.pk]
        fields += [INTEGER] * bool(depth or max_depth)
        fields += [begin.field for begin, _ in carried]
        recursion = Recursion(relation, condition, limit, bool(depth or max_depth), tuple(carried))
        columns = tuple(zip(names, fields, strict=True))
        self.source = Source(key, columns, len(scope.params), int(not carry), recursion)
        self.params = tuple(scope.params)
        self.alias = start._alias
        self.model = start._meta
        self.rows = "instances"

    @property
    def objects(self) -> BaseQuery[M, R]:
        """A query for the rows of the CTE."""
        if self.model is not None:
            query = plain_query(self.model, self.alias)
            on = {key.attname: key.attname for key in self.model.keys}
            return as_rows(joined(query, self, on, optional=False))
        meta = RowMeta(self.source)
        notes: dict[str, Expr] = {
            name: CTENode(field, SELECTED, i) for i, (name, field) in enumerate(self.source.columns)
        }
        made: Any = plain_query(meta, self.alias)
        made._key = (
            meta,
            ("from", self.source),
            ("values", self.rows, tuple(notes), tuple(notes.items())),
        )
        made._params = self.params
        made._notes = notes
        return as_rows(made)

    def unknown(self, name: str) -> FieldError:
        """The error for a column that the CTE does not have."""
        return unknown_column(self.source, name)

    def __repr__(self) -> str:
        return f"<CTE of {', '.join(name for name, _ in self.source.columns if name)}>"


def _check(query: Any, what: str, *, whole: bool = False) -> None:
    if not isinstance(query, QueryBuilder):
        raise FieldError(f"{what} takes a query, not {type(query).__name__}")
    found = cast("QueryBuilder[Any, Any]", query)
    steps = {step[0] for step in found._key[1:]}
    if found._prefetches or found._max_rows is not None or steps & set(_LOADING):
        raise FieldError(
            f"{what} cannot keep only(), defer(), select_related(), prefetch_related(), "
            "limit_rows() or select_for_update(): call them on its objects"
        )
    if "combine" in steps and (whole or "values" not in steps):
        raise FieldError(f"{what} cannot take instances of a union: call values() on its parts")
    if whole and ("values" in steps or found._low or found._high is not None):
        raise FieldError(f"{what} starts at instances, without values() and slices")


def _keys_and_notes(query: QueryBuilder[Any, Any]) -> QueryBuilder[Any, Any]:
    keys = query._meta.keys
    columns: list[tuple[str, Expr]] = [(key.attname, ColumnNode(key, (), key)) for key in keys]
    hidden = query._hidden()
    columns += [(name, node) for name, node in (query._notes or {}).items() if name not in hidden]
    return query._step(("values", "tuples", tuple(name for name, _ in columns), tuple(columns)))


def _columns(query: QueryBuilder[Any, Any]) -> tuple[tuple[str, Expr], ...]:
    from treefold_orm._compile.state import replay

    columns = replay(query._key).columns
    names = [name for name, _ in columns]
    for name, node in columns:
        if isinstance(node, ColumnNode) and node.column.sensitive:
            raise FieldError(
                f"A CTE cannot hold {name!r}: it is sensitive; take a CTE of instances and the "
                "typed expression"
            )
        if names.count(name) > 1:
            raise FieldError(f"A CTE has each column once: {name!r} is there twice")
    if not columns:
        raise FieldError("A CTE needs at least one column")
    return columns


def _once(query: QueryBuilder[Any, Any]) -> bool:
    joins = [step[1] for step in query._key[1:] if step[0] == "join"]
    return all(join.single for join in joins)


def _relation(meta: Meta, follow: str) -> Relation:
    check_untainted(follow)
    found = meta.relations.get(follow)
    if found is None:
        raise meta.unknown(follow)
    if found.target is not meta:
        raise FieldError(
            f"{meta.name}.{follow} leads to {found.target.name}: a recursive CTE follows a "
            f"relation from {meta.name} to {meta.name}"
        )
    return found


def _check_limit(relation: Relation, follow: str, max_depth: int | None, *, bounded: bool) -> None:
    number = cast("Any", max_depth)
    if number is not None and (
        isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 2**31
    ):
        raise FieldError(f"max_depth={max_depth!r} must be a number of at least 1")
    if relation.kind == "many" and max_depth is None and not bounded:
        raise FieldError(
            f"{relation.source.name}.{follow} leads to rows over many ways: give max_depth along "
            "with depth or carry"
        )


def _check_names(start: QueryBuilder[Any, Any], names: list[str]) -> None:
    meta = start._meta
    taken = {*meta.fields, *meta.by_attname, *meta.relations, "pk", *(start._notes or ())}
    for name in names:
        check_alias(name, taken=frozenset(taken))
        if hasattr(meta.model, name):
            raise FieldError(
                f"{name!r} cannot name an annotation: {meta.name} has that attribute already"
            )
        taken.add(name)


def _carried(
    scope: Scope, depth: str | None, names: list[str], carry: dict[str, tuple[Any, Any]]
) -> list[tuple[Expr, Expr]]:
    begins: dict[str, Expr] = {}
    for name, pair in carry.items():
        given = cast("Any", pair)
        if not isinstance(given, (tuple, list)) or len(cast("list[Any]", given)) != 2:
            raise FieldError(f"carry[{name!r}] takes a pair: the value at the start, and the step")
        begins[name] = as_expression(given[0]).freeze(scope)
    known: dict[str, Expr] = {
        name: CTENode(begin.field, PREVIOUS, names.index(name)) for name, begin in begins.items()
    }
    if depth is not None:
        known[depth] = CTENode(INTEGER, PREVIOUS, 1)
    mark = len(scope.params)
    for _ in range(3):  # a step may make a type wider, and another value that takes it
        inside = Scope(scope.meta, scope.params, known, alias=scope.alias)
        steps = {name: as_expression(carry[name][1]).freeze(inside) for name in begins}
        fields = {name: _carried_as(name, begins[name], steps[name]) for name in begins}
        if all(representation(fields[n]) == _form(known[n]) for n in begins):
            return [
                (_checked(n, begin, fields[n]), _checked(n, steps[n], fields[n]))
                for n, begin in begins.items()
            ]
        del scope.params[mark:]
        known |= {n: CTENode(fields[n], PREVIOUS, names.index(n)) for n in begins}
    raise FieldError(
        f"carry of {', '.join(begins)} goes on as another type at each step: use Cast()"
    )


def _carried_as(name: str, begin: Expr, step: Expr) -> Field[Any]:
    try:
        field = common_field([begin.field, step.field])
    except FieldError as error:
        raise FieldError(f"carry[{name!r}]: {error}") from None
    if field is None:
        raise FieldError(f"carry[{name!r}] begins as nothing known: use Value(..., output_field)")
    return field


def _checked(name: str, node: Expr, field: Field[Any]) -> Expr:
    if any(contains(node) for contains in _NOT_CARRIED):
        raise FieldError(f"carry[{name!r}] cannot hold aggregates or windows")
    made = converted(node, field)
    return made if made.field is field else ConvertNode(field, made, "same")


def _form(node: Expr) -> Any:
    return None if node.field is None else representation(node.field)
