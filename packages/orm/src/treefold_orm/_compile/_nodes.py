"""The tree a query is compiled from: immutable, hashable, resolved against a model, without
values.

Values live beside the tree, in the query's parameters; a node refers to them by index. Two queries
with equal trees therefore share one compiled plan. Nothing here builds SQL.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform

from treefold_orm._fields._base import Field
from treefold_orm._meta import Relation

if TYPE_CHECKING:
    from treefold_orm._search_index import SearchIndex

AnyField = Field[Any]


N = TypeVar("N")


class Node:
    """Base of all nodes: equal where class and parts are."""

    __slots__ = ()

    _parts: ClassVar[Any]

    def __eq__(self, other: object) -> bool:
        if self.__class__ is not other.__class__:
            return NotImplemented
        return self._parts(self) == self._parts(other)

    def __hash__(self) -> int:
        return hash(self._parts(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in fields(cast("Any", self)))
        return f"{type(self).__name__}({shown})"


@dataclass_transform(frozen_default=True)
def record(kind: type[N]) -> type[N]:
    """A frozen, slotted dataclass, made in half the time since all nodes compare in one way."""
    made = dataclass(frozen=True, slots=True, eq=False, repr=False)(kind)
    cast("Any", made)._parts = attrgetter(*(f.name for f in fields(cast("Any", made))))
    return made


@record
class Expr(Node):
    """A node with a value; `field` knows how that value travels, None where nobody does."""

    field: AnyField | None


@record
class ColumnNode(Expr):
    """A column reached over `hops` from the query's model."""

    hops: tuple[Relation, ...]
    column: AnyField


@record
class OuterNode(Expr):
    """A path that the enclosing query resolves."""

    path: str


@record
class ParamNode(Expr):
    """The parameter at `index` of the query."""

    index: int


@record
class ConstNode(Expr):
    """A value that belongs to the query's shape and is still bound, never written into SQL."""

    value: Any


@record
class FuncNode(Expr):
    """A function of the closed list in the dialects; `option` is one of the function's words."""

    name: str
    args: tuple[Expr, ...]
    option: str = ""


@record
class ArithNode(Expr):
    """Two operands and one of `+ - * / %`."""

    op: str
    left: Expr
    right: Expr


@record
class AggregateNode(Expr):
    """An aggregate; `hops` lead over a to-many relation whose rows are aggregated on their own."""

    name: str
    arg: Expr | None
    distinct: bool
    where: Node | None
    hops: tuple[Relation, ...] = ()


@record
class CaseNode(Expr):
    """Searched CASE: pairs of condition and result."""

    whens: tuple[tuple[Node, Expr], ...]
    default: Expr | None


@record
class TruthNode(Expr):
    """A condition as a value: true or false, never unknown."""

    condition: Node


@record
class CustomNode(Expr):
    """A function declared by the application; `template` is its SQL by dialect, fixed with its
    class.
    """

    template: Any
    args: tuple[Expr, ...]


@record
class SubqueryNode(Expr):
    """A query inside a query; its parameters start at `base`.

    `shared` says which of its CTEs the enclosing query has too: where the parameters of one start
    here, how many they are, and where they start there.
    """

    key: tuple[Any, ...]
    base: int
    shared: tuple[tuple[int, int, int], ...] = ()


@record
class CTENode(Expr):
    """A column of a CTE by position; `place` counts the joins, or is one of the two below."""

    place: int
    column: int


SELECTED = -1  # the CTE that a query selects from
PREVIOUS = -2  # the row before, in the step of a recursive CTE


@record
class OrderNode(Node):
    """One term of an ordering; `nulls` is "first", "last" or empty for the default."""

    expr: Expr
    descending: bool
    nulls: str = ""


@record
class WindowNode(Expr):
    """A function over a window."""

    function: Expr
    partition: tuple[Expr, ...]
    order: tuple[OrderNode, ...]
    frame: str = ""


@record
class Compare(Node):
    """A lookup and what stands on its right side (None where it takes nothing)."""

    lookup: Any
    right: Expr | None


@record
class Test(Node):
    """A comparison whose left side is an expression."""

    left: Expr
    op: str
    right: Expr | None


@record
class ExistsNode(Node):
    """True when the inner query has a row."""

    query: SubqueryNode


@record
class RelatedNode(Node):
    """True when a related row meets `where`; `where` is resolved against the last hop's target."""

    hops: tuple[Relation, ...]
    where: Node | None


@record
class SearchNode(Node):
    """True when the text of `columns`, which `index` searches, has what `text` asks for."""

    hops: tuple[Relation, ...]
    index: SearchIndex
    columns: tuple[AnyField, ...]
    kind: str
    text: ParamNode


@record
class RankNode(Expr):
    """How well a row fits a search."""

    search: SearchNode


@record
class And(Node):
    """All children are true."""

    children: tuple[Node, ...]


@record
class Or(Node):
    """At least one child is true."""

    children: tuple[Node, ...]


@record
class Not(Node):
    """The child is false or unknown: rows the child does not select."""

    child: Node


def contains_group_aggregate(node: Node | None) -> bool:
    """Whether an aggregate stands anywhere in the tree, outside of windows and inner queries."""
    if node is None or isinstance(node, (WindowNode, SubqueryNode)):
        return False
    if isinstance(node, AggregateNode):
        return True
    return any(contains_group_aggregate(child) for child in children_of(node))


def contains_window(node: Node | None) -> bool:
    """Whether a window function stands anywhere in the tree, outside of inner queries."""
    if node is None or isinstance(node, SubqueryNode):
        return False
    if isinstance(node, WindowNode):
        return True
    return any(contains_window(child) for child in children_of(node))


def children_of(node: Node) -> list[Node]:
    """The nodes directly below a node."""
    found: list[Node] = []
    stack: list[Any] = [getattr(node, part.name) for part in fields(cast("Any", node))]
    while stack:
        item = stack.pop(0)
        if isinstance(item, Node):
            found.append(item)
        elif isinstance(item, tuple):
            stack = [*cast("tuple[Any, ...]", item), *stack]
    return found
