"""CTE: a query with a name, which others join or select from, and its recursive form.

A CTE holds the shape of its query (a `Source`) and its values; `objects` is a query like any other.
No SQL is built here.

Example, the writers above one, with the names on the way to each:

    >>> CTE.recursive(Writer.objects.filter(id=1), "boss", depth="level",
    ... carry={"path": ("name", Concat("path", Value(" / "), "name"))}
    ... ).objects.values("name", "level", "path")
    SQLite: WITH RECURSIVE w0 (c0, c1, c2, c3, c4) AS (SELECT t2."id", 0, t2."name", t2."boss_id",
    ',' || hex(t2."id") || ',' FROM "writer" AS t2 WHERE t2."id" = ? UNION ALL SELECT t4."id", t3.c1
    + 1, (COALESCE(t3.c2, '') || COALESCE(?, '') || COALESCE(t4."name", '')), t4."boss_id", t3.c4 ||
    hex(t4."id") || ',' FROM w0 AS t3, "writer" AS t4 WHERE t4."id" = t3.c3 AND instr(t3.c4, ',' ||
    hex(t4."id") || ',') = 0) SELECT t0."name", t1.c1, t1.c2 FROM "writer" AS t0 JOIN w0 AS t1 ON
    t1.c0 = t0."id"
    PostgreSQL: WITH RECURSIVE w0 (c0, c1, c2, c3, c4) AS (SELECT t2."id", (0)::bigint,
    (t2."name")::text, t2."boss_id", ARRAY[(t2."id")::text] FROM "writer" AS t2 WHERE t2."id" = $1
    UNION ALL SELECT t4."id", t3.c1 + 1, ((CONCAT(t3.c2, ($2)::text, t4."name"))::text)::text,
    t4."boss_id", t3.c4 || (t4."id")::text FROM w0 AS t3, "writer" AS t4 WHERE t4."id" = t3.c3 AND
    (t4."id")::text <> ALL(t3.c4)) SELECT t0."name", t1.c1, t1.c2 FROM "writer" AS t0 JOIN w0 AS t1
    ON t1.c0 = t0."id"

The columns of its `w0`, of which `source.columns` names the first three. `names` in the functions
below are those names by their place, so that `names.index("path")` is 2 for `c2`:

| | It is | First rows | Step | There with |
|---|---|---|---|---|
| `c0` | the key `id` | `t2."id"` | `t4."id"` | |
| `c1` | `level`, or without a name | `0` | `t3.c1 + 1` | `depth` or `max_depth` |
| `c2` | `path`, and each further carried value | `t2."name"` | `Concat()` of `t3.c2` | `carry` |
| `c3` | the column that leads on | `t2."boss_id"` | `t4."boss_id"` | a foreign key of the row |
| `c4` | the keys so far, against cycles | `t2."id"` | and `t4."id"` | `carry`, or `depth` alone |

`t3` is the row before, `nodes.PREVIOUS` in a tree. The last two are written by the compiler alone.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Generic, TypeVar, cast

from treefold_orm._base.errors import DoesNotExist, FieldError, MultipleObjectsReturned
from treefold_orm._base.names import check_untainted
from treefold_orm._building.combining import list_subquery_column_fields
from treefold_orm._building.joins import join_cte, require_unused_annotation_name
from treefold_orm._building.query import AnyQuery, QueryBuilder
from treefold_orm._building.sources import convert_manager_to_query
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._expressions import nodes, steps
from treefold_orm._expressions.conditions import resolve_condition
from treefold_orm._expressions.conversion import (
    build_representation_key,
    convert_node,
    find_common_type,
)
from treefold_orm._expressions.cte_nodes import Recursion, Source
from treefold_orm._expressions.resolving import resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import INTEGER
from treefold_orm._fields.meta import Instance, Meta, Relation, registry
from treefold_orm._queries.base_query import BaseQuery, as_base_query
from treefold_orm._terms.operators import Condition
from treefold_orm._terms.values import as_expression

M = TypeVar("M", bound=Instance)
N = TypeVar("N", bound=Instance)
R = TypeVar("R")

_LOADING = {steps.Load, steps.SelectRelated, steps.Lock}
_MOST_ROUNDS = 3
"""A round may make a type wider, and the next one that of another value which reads it."""


class Row:
    """What `RowMeta` has for a model: a row of values belongs to none, but its queries can fail."""

    _space, _registry = "", registry
    DoesNotExist = DoesNotExist
    MultipleObjectsReturned = MultipleObjectsReturned


class RowMeta(Meta):
    """The names of a CTE of values, in place of a model's; equal for equal CTEs."""

    def __init__(self, source: Source) -> None:
        # what a model has and a CTE has not stays empty: every name is found among the annotations
        super().__init__(cast("Any", Row), table="CTE", abstract=False)
        self.source = source
        self.name = "CTE"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RowMeta) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.source)

    def find(self, name: str) -> None:
        return None

    def build_unknown_name_error(self, name: str) -> FieldError:
        return build_unknown_column_error(self.source, name)


def build_unknown_column_error(source: Source, name: str) -> FieldError:
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
    params: tuple[object, ...]
    alias: str
    model: Meta | None
    rows: str

    def __init__(self, query: BaseQuery[M, R]) -> None:
        query = convert_manager_to_query(query)
        _check_cte_query(query, "A CTE")
        values = query._find_last_step(steps.Values)
        made: AnyQuery = query
        self.model = None
        if values is None:
            self.model = query._meta
            made = _select_keys_and_annotations(query)
        columns = _collect_columns(made)
        key, params = made._build_key_and_params()
        names = (name for name, _ in columns)
        named = tuple(zip(names, list_subquery_column_fields(made._key), strict=True))
        unique = 0 if self.model is None or not _has_unique_rows(query) else len(self.model.keys)
        self.source = Source(key, named, len(params), unique)
        self.params = tuple(params)
        self.alias = query._alias
        self.rows = "instances" if values is None else values.rows
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
        made._initialize_recursive(
            start, follow, depth=depth, max_depth=max_depth, where=where, carry=dict(carry or {})
        )
        return made

    def _initialize_recursive(
        self,
        start: AnyQuery,
        follow: str,
        *,
        depth: str | None,
        max_depth: int | None,
        where: Condition | None,
        carry: dict[str, tuple[Any, Any]],
    ) -> None:
        start = convert_manager_to_query(start)
        _check_cte_query(start, "A recursive CTE", instances_only=True)
        relation = _find_self_relation(start._meta, follow)
        _check_max_depth(
            relation, follow, max_depth, ends_without_limit=depth is None and not carry
        )
        key, params = start._build_key_and_params()
        scope = Scope(start._meta, list(params), start._notes or {}, database=[start._alias])
        # `max_depth` counts the steps as `depth` does, in a column that no query can name
        counts_depth = bool(depth or max_depth)
        names = [start._meta.pk.attname, *([depth or ""] if counts_depth else []), *carry]
        given = [name for name in (depth, *carry) if name is not None]
        for place, name in enumerate(given):
            require_unused_annotation_name(start, name, *given[:place])
        condition = (
            None if where is None else resolve_condition(where, scope.with_model(start._meta))
        )
        limit = None if max_depth is None else scope.add_param(max_depth, INTEGER).index
        carried = _resolve_carried_columns(scope, depth, names, carry)
        fields: list[AnyField | None] = [start._meta.pk, *([INTEGER] if counts_depth else [])]
        fields += [begin.field for begin, _ in carried]
        self.source = Source(
            key=key,
            columns=tuple(zip(names, fields, strict=True)),
            size=len(scope.params),
            # with carried values a row comes once for each way, and its key tells none apart
            unique=0 if carry else 1,
            recursion=Recursion(
                relation=relation,
                where=condition,
                limit=limit,
                depth=counts_depth,
                carried=tuple(carried),
            ),
        )
        self.params = tuple(scope.params)
        self.alias = start._alias
        self.model = start._meta
        self.rows = "instances"

    @property
    def objects(self) -> BaseQuery[M, R]:
        """A query for the rows of the CTE."""
        if self.model is not None:
            query = build_unfiltered_query(self.model, self.alias)
            on = {key.attname: key.attname for key in self.model.keys}
            return as_base_query(join_cte(query, self, on, optional=False))
        meta = RowMeta(self.source)
        notes: dict[str, nodes.Expr] = {
            name: nodes.CTENode(field, nodes.SELECTED, i)
            for i, (name, field) in enumerate(self.source.columns)
        }
        made: Any = build_unfiltered_query(meta, self.alias)
        values = steps.Values(self.rows, tuple(notes), tuple(notes.items()))
        made._key = (meta, steps.FromCTE(self.source), values)
        made._params = self.params
        made._notes = notes
        return as_base_query(made)

    def build_unknown_name_error(self, name: str) -> FieldError:
        """The error for a column that the CTE does not have."""
        return build_unknown_column_error(self.source, name)

    def __repr__(self) -> str:
        return f"<CTE of {', '.join(name for name, _ in self.source.columns if name)}>"


def _check_cte_query(query: Any, what: str, *, instances_only: bool = False) -> None:
    if not isinstance(query, QueryBuilder):
        raise FieldError(f"{what} takes a query, not {type(query).__name__}")
    found = cast("AnyQuery", query)
    kinds: set[type[Any]] = {type(step) for step in found._key[1:]}
    if found._prefetches or found._max_rows is not None or kinds & _LOADING:
        raise FieldError(
            f"{what} cannot keep only(), defer(), select_related(), prefetch_related(), "
            "limit_rows() or select_for_update(): call them on its objects"
        )
    if steps.Combine in kinds and (instances_only or steps.Values not in kinds):
        raise FieldError(f"{what} cannot take instances of a union: call values() on its parts")
    if instances_only and (steps.Values in kinds or found._low or found._high is not None):
        raise FieldError(f"{what} starts at instances, without values() and slices")


def _select_keys_and_annotations(query: AnyQuery) -> AnyQuery:
    keys = query._meta.keys
    columns: list[tuple[str, nodes.Expr]] = [
        (key.attname, nodes.ColumnNode(key, (), key)) for key in keys
    ]
    hidden = query._find_unloaded_annotations()
    columns += [(name, node) for name, node in (query._notes or {}).items() if name not in hidden]
    names = tuple(name for name, _ in columns)
    return query._add_step(steps.Values("tuples", names, tuple(columns)))


def _collect_columns(query: AnyQuery) -> tuple[tuple[str, nodes.Expr], ...]:
    from treefold_orm._compile.state import replay_steps

    columns = replay_steps(query._key).columns
    names = [name for name, _ in columns]
    for name, node in columns:
        if isinstance(node, nodes.ColumnNode) and node.column.sensitive:
            raise FieldError(
                f"A CTE cannot hold {name!r}: it is sensitive; take a CTE of instances and the "
                "typed expression"
            )
        if names.count(name) > 1:
            raise FieldError(f"A CTE has each column once: {name!r} is there twice")
    if not columns:
        raise FieldError("A CTE needs at least one column")
    return columns


def _has_unique_rows(query: AnyQuery) -> bool:
    return all(step.join.single for step in query._key if isinstance(step, steps.JoinCTE))


def _find_self_relation(meta: Meta, follow: str) -> Relation:
    check_untainted(follow)
    found = meta.relations.get(follow)
    if found is None:
        raise meta.build_unknown_name_error(follow)
    if found.target is not meta:
        raise FieldError(
            f"{meta.name}.{follow} leads to {found.target.name}: a recursive CTE follows a "
            f"relation from {meta.name} to {meta.name}"
        )
    return found


def _check_max_depth(
    relation: Relation, follow: str, max_depth: int | None, *, ends_without_limit: bool
) -> None:
    number = cast("Any", max_depth)
    if number is not None and (
        isinstance(number, bool) or not isinstance(number, int) or not 1 <= number < 2**31
    ):
        raise FieldError(f"max_depth={max_depth!r} must be a number of at least 1")
    if relation.kind == "many" and max_depth is None and not ends_without_limit:
        raise FieldError(
            f"{relation.source.name}.{follow} leads to rows over many ways: give max_depth along "
            "with depth or carry"
        )


def _resolve_carried_columns(
    scope: Scope, depth: str | None, names: list[str], carry: dict[str, tuple[Any, Any]]
) -> list[tuple[nodes.Expr, nodes.Expr]]:
    """The value of the first rows and that of the step, for each name of `carry`, in one type."""
    begins: dict[str, nodes.Expr] = {}
    for name, pair in carry.items():
        given = cast("Any", pair)
        if not isinstance(given, (tuple, list)) or len(cast("list[Any]", given)) != 2:
            raise FieldError(f"carry[{name!r}] takes a pair: the value at the start, and the step")
        begins[name] = resolve(as_expression(pair[0]), scope)
    previous: dict[str, nodes.Expr] = {
        name: nodes.CTENode(begin.field, nodes.PREVIOUS, names.index(name))
        for name, begin in begins.items()
    }
    if depth is not None:
        previous[depth] = nodes.CTENode(INTEGER, nodes.PREVIOUS, names.index(depth))
    nexts, fields = _settle_carried_types(scope, names, carry, begins, previous)
    return [
        (
            _convert_carried_node(name, begin, fields[name]),
            _convert_carried_node(name, nexts[name], fields[name]),
        )
        for name, begin in begins.items()
    ]


def _settle_carried_types(
    scope: Scope,
    names: list[str],
    carry: dict[str, tuple[Any, Any]],
    begins: dict[str, nodes.Expr],
    previous: dict[str, nodes.Expr],
) -> tuple[dict[str, nodes.Expr], dict[str, AnyField]]:
    """Resolve the steps, in types that do not change from row to row; return them and the types.

    A step reads `previous`, the values of the row before, whose types are not known until it is
    resolved: `carry={"n": (Value(1), F("n") * 1.5)}` begins as an integer, and its step makes a
    float of that. So `n` is a float, and the step is resolved again, now of a float: the type of
    the step is the one that it reads, and they are settled.
    """
    mark = len(scope.params)
    for _ in range(_MOST_ROUNDS):
        inside = Scope(scope.meta, scope.params, previous, database=scope.database)
        nexts = {name: resolve(as_expression(carry[name][1]), inside) for name in begins}
        fields = {name: _infer_carried_field(name, begins[name], nexts[name]) for name in begins}
        if all(
            build_representation_key(fields[name]) == _build_node_type_key(previous[name])
            for name in begins
        ):
            return nexts, fields
        # the steps are resolved once more, which adds their values once more
        del scope.params[mark:]
        previous |= {
            name: nodes.CTENode(fields[name], nodes.PREVIOUS, names.index(name)) for name in begins
        }
    raise FieldError(
        f"carry of {', '.join(begins)} goes on as another type at each step: use Cast()"
    )


def _infer_carried_field(name: str, begin: nodes.Expr, step: nodes.Expr) -> AnyField:
    try:
        field = find_common_type([begin.field, step.field])
    except FieldError as error:
        raise FieldError(f"carry[{name!r}]: {error}") from None
    if field is None:
        raise FieldError(f"carry[{name!r}] begins as nothing known: use Value(..., output_field)")
    return field


def _convert_carried_node(name: str, node: nodes.Expr, field: AnyField) -> nodes.Expr:
    if nodes.contains_aggregate_or_window(node):
        raise FieldError(f"carry[{name!r}] cannot hold aggregates or windows")
    made = convert_node(node, field)
    return made if made.field is field else nodes.ConvertNode(field, made, "same")


def _build_node_type_key(node: nodes.Expr) -> Any:
    return None if node.field is None else build_representation_key(node.field)
