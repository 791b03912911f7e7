"""The tree a query is compiled from: immutable, hashable, resolved against a model, without
values.

Values live beside the tree, in the query's parameters; a node refers to them by index. Two queries
with equal trees therefore share one compiled plan. Nothing here builds SQL.

Example, `Article.objects.annotate(half=F("views") / 2)`, whose parameters are `(2,)`: the value of
`half` is

    ArithNode(
        FloatField(),
        "/",
        ColumnNode(Article.views, hops=(), column=Article.views),
        ParamNode(BigIntegerField(), index=0),
    )
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, cast

from treefold_orm._base.records import Record, frozen_record
from treefold_orm._expressions.template import Template
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.meta import Meta, Relation

if TYPE_CHECKING:
    from treefold_orm._terms.search_index import SearchIndex


# mode      where a value is converted
# same      only the type is another: nothing is written
# value     for a result
# operand   beside an operator or in a comparison, which mind results that are too large themselves
# assign    a column takes the value, with its rounding and its limits
# cast      the same, where the caller asks for it: `Cast("views", DecimalField(...))`
# output    the same, where that is asked before the type of the value is known; a cast afterwards
ConversionMode = Literal["same", "value", "operand", "assign", "cast", "output"]


class Node(Record):
    """Base of all nodes."""

    __slots__ = ()


Key = tuple[Meta, *tuple[Node, ...]]
"""A query without its values: the model, and its steps."""


@frozen_record
class Expr(Node):
    """A node with a value; `field` knows how that value travels, None where that is not known."""

    field: AnyField | None


@frozen_record
class ColumnNode(Expr):
    """A column reached over `hops` from the query's model."""

    hops: tuple[Relation, ...]
    column: AnyField


@frozen_record
class OuterValue(Record):
    """An annotation of the enclosing query; no node, since it is no part of the inner query."""

    expr: Expr


@frozen_record
class OuterNode(Expr):
    """A path that an enclosing query resolves, the nearest one at the level 1; `part` is a place in
    its key of several columns, and `known` the annotation that the path names there.
    """

    path: str
    part: int | None = None
    known: OuterValue | None = None
    level: int = 1

    @property
    def outer_ref_text(self) -> str:
        """The call that makes it."""
        return f"{'OuterRef(' * self.level}{self.path!r}{')' * self.level}"


@frozen_record
class ParamNode(Expr):
    """The parameter at `index` of the query."""

    index: int


@frozen_record
class ConstNode(Expr):
    """A value that belongs to the query's shape and is still bound, never written into SQL."""

    value: Any


@frozen_record
class ConvertNode(Expr):
    """The value of `arg` in the form of `field`, which differs from its own."""

    arg: Expr
    mode: ConversionMode


@frozen_record
class FuncNode(Expr):
    """A function of the closed list in the dialects; `option` is one of the function's words."""

    name: str
    args: tuple[Expr, ...]
    option: str = ""


@frozen_record
class ArithNode(Expr):
    """Two operands and one of `+ - * / %`."""

    op: str
    left: Expr
    right: Expr


@frozen_record
class AggregateNode(Expr):
    """An aggregate; `hops` lead over a to-many relation whose rows are aggregated on their own.

    `args` follow the argument, and `order` is the order in which values are collected.
    """

    name: str
    arg: Expr | None
    distinct: bool
    where: Node | None
    hops: tuple[Relation, ...] = ()
    args: tuple[Expr, ...] = ()
    order: tuple[OrderNode, ...] = ()


@frozen_record
class PerRowNode(Expr):
    """The value that an annotation over aggregates has for each row, also in a query that groups
    these rows or aggregates them once more.
    """

    node: Expr


@frozen_record
class CaseNode(Expr):
    """Searched CASE: pairs of condition and result."""

    whens: tuple[tuple[Node, Expr], ...]
    default: Expr | None


@frozen_record
class TruthNode(Expr):
    """A condition as a value: true or false, never unknown."""

    condition: Node


@frozen_record
class CustomNode(Expr):
    """A function declared by the application; `template` is its SQL by dialect, fixed with its
    class, and `takes` the types of its arguments, as far as it names them.
    """

    template: Template
    args: tuple[Expr, ...]
    takes: tuple[AnyField | None, ...] = ()


@frozen_record
class SchemaSQLNode(Expr):
    """SQL of the schema with `{}` for each of `columns`; no query has it."""

    text: str
    columns: Fields


@frozen_record
class SubqueryNode(Expr):
    """A query inside a query; its parameters start at `base`.

    `shared` says which of its CTEs the enclosing query has too: where the parameters of one start
    here, how many they are, and where they start there.
    """

    key: Key
    base: int
    shared: tuple[tuple[int, int, int], ...] = ()


@frozen_record
class CTENode(Expr):
    """A column of a CTE by position; `place` counts the joins, or is one of the two below."""

    place: int
    column: int


SELECTED = -1  # the CTE that a query selects from
PREVIOUS = -2  # the row before, in the step of a recursive CTE


@frozen_record
class OrderNode(Node):
    """One term of an ordering; `nulls` is "first", "last" or empty for the default."""

    expr: Expr
    descending: bool
    nulls: str = ""


@frozen_record
class WindowFrameBound(Node):
    """A bound of a window's frame: -1 before the row, 0 the row, 1 after it, by `distance`."""

    side: int
    distance: Expr | None


@frozen_record
class WindowFrameNode(Node):
    """A window's frame of "rows", "groups" or a "range"; None is the end of the window."""

    kind: str
    start: WindowFrameBound | None
    end: WindowFrameBound | None
    exclude: str = ""


@frozen_record
class WindowNode(Expr):
    """A function over a window."""

    function: Expr
    partition: tuple[Expr, ...]
    order: tuple[OrderNode, ...]
    frame: WindowFrameNode | None = None


@frozen_record
class Compare(Node):
    """A lookup and its right side (None where it takes nothing).

    `field` is the type that both are compared in, None where it is the lookup's own.
    """

    lookup: Any
    right: Expr | None
    field: AnyField | None = None


@frozen_record
class ExpressionCompare(Node):
    """A comparison whose left side is an expression."""

    left: Expr
    op: str
    right: Expr | None


@frozen_record
class RowCompare(Node):
    """A comparison of columns with values in the order of a dictionary: the first that differ."""

    left: tuple[Expr, ...]
    op: str
    right: tuple[Expr, ...]


@frozen_record
class ExistsNode(Node):
    """True when the inner query has a row."""

    query: SubqueryNode


@frozen_record
class RelatedNode(Node):
    """True when a related row meets `where`; `where` is resolved against the last hop's target."""

    hops: tuple[Relation, ...]
    where: Node | None


@frozen_record
class SearchNode(Node):
    """True when the text of `columns`, which `index` searches, matches `text`."""

    hops: tuple[Relation, ...]
    index: SearchIndex
    columns: Fields
    kind: str
    text: ParamNode


@frozen_record
class RankNode(Expr):
    """How well a row fits a search."""

    search: SearchNode


@frozen_record
class And(Node):
    """All children are true."""

    children: tuple[Node, ...]


@frozen_record
class UnsharedAnd(Node):
    """All children are true, each for itself: they may speak of different related rows."""

    children: tuple[Node, ...]


@frozen_record
class Or(Node):
    """At least one child is true."""

    children: tuple[Node, ...]


@frozen_record
class Not(Node):
    """The child is false or unknown: rows the child does not select."""

    child: Node


WINDOW_FUNCTIONS = frozenset(
    {
        "cume_dist",
        "dense_rank",
        "first_value",
        "lag",
        "lag_default",
        "last_value",
        "lead",
        "lead_default",
        "nth_value",
        "ntile",
        "percent_rank",
        "rank",
        "row_number",
    }
)


def contains_group_aggregate(node: Node | None) -> bool:
    """Return True if the tree has an aggregate, outside of windows, inner queries and
    values of single rows.
    """
    return _contains_kind(node, AggregateNode, without=(WindowNode, SubqueryNode, PerRowNode))


def contains_per_row_aggregate(node: Node | None) -> bool:
    """Return True if the tree has a value of single rows that holds an aggregate."""
    return _contains_kind(node, PerRowNode, without=(SubqueryNode,))


def contains_window(node: Node | None) -> bool:
    """Return True if the tree has a window function, outside of inner queries."""
    return _contains_kind(node, WindowNode, without=(SubqueryNode,))


def contains_aggregate_or_window(node: Node) -> bool:
    """Return True if the tree has an aggregate, of a group or of single rows, or a window."""
    wanted = (contains_group_aggregate, contains_per_row_aggregate, contains_window)
    return any(contains(node) for contains in wanted)


def contains_outer_reference(node: Node | None) -> bool:
    """Return True if the tree has a value of the enclosing query."""
    return _contains_kind(node, OuterNode, without=(SubqueryNode,))


def needs_outer_type(node: Expr) -> bool:
    """Return True if the type of a value is known only once its query enters another one."""
    if node.field is not None:
        return False
    if isinstance(node, SubqueryNode):
        return has_unresolved_outer_ref(node.key)
    return isinstance(node, OuterNode) or any(
        needs_outer_type(child) for child in collect_children(node) if isinstance(child, Expr)
    )


@functools.lru_cache(maxsize=512)
def has_unresolved_outer_ref(key: Key) -> bool:
    """Return True if a query inside another one has an `OuterRef` of a query further out."""
    stack: list[tuple[Any, int]] = [(part, 1) for part in key[1:]]
    while stack:
        part, depth = stack.pop()
        if isinstance(part, OuterNode):
            # a lower level means this query itself, or one inside of it
            if part.field is None and part.level >= depth:
                return True
        elif isinstance(part, SubqueryNode):
            stack += [(inner, depth + 1) for inner in part.key[1:]]
        elif isinstance(part, Node):
            stack += [(child, depth) for child in collect_children(part)]
        elif part.__class__ is tuple:
            stack += [(item, depth) for item in cast("tuple[Any, ...]", part)]
    return False


def _contains_kind(node: Node | None, kind: type[Node], *, without: tuple[type[Node], ...]) -> bool:
    if node is None or isinstance(node, without):
        return False
    return isinstance(node, kind) or any(
        _contains_kind(child, kind, without=without) for child in collect_children(node)
    )


def collect_children(node: Node) -> list[Node]:
    """The nodes directly below a node."""
    found: list[Node] = []
    stack: list[Any] = [getattr(node, name) for name in node.__match_args__]
    while stack:
        item = stack.pop(0)
        if isinstance(item, Node):
            found.append(item)
        elif isinstance(item, tuple):
            stack = [*cast("tuple[Any, ...]", item), *stack]
    return found


def wrap_aggregate_per_row(node: Expr) -> Expr:
    """The value of an expression for each row: aggregates in it are those of the row alone."""
    return PerRowNode(node.field, node) if contains_group_aggregate(node) else node


def map_child_nodes(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return `node` with `change` applied to the nodes directly below it; itself if all stay."""
    parts = [getattr(node, name) for name in node.__match_args__]
    made = [_map_nodes_in_value(part, change) for part in parts]
    # callers see by identity that nothing has changed, and copy no tree of a query in vain
    if all(new is old for new, old in zip(made, parts, strict=True)):
        return node
    return cast("Any", node.__class__)(*made)


def _map_nodes_in_value(part: Any, change: Callable[[Node], Node]) -> Any:
    if isinstance(part, Node):
        return change(part)
    if part.__class__ is not tuple:
        return part
    items = cast("tuple[Any, ...]", part)
    made = tuple(_map_nodes_in_value(item, change) for item in items)
    return items if all(map(is_, made, items)) else made
