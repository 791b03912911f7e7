"""The tree a query is compiled from: immutable, hashable, resolved against a model, without
values.

Values live beside the tree, in the query's parameters; a node refers to them by index. Two queries
with equal trees therefore share one compiled plan. Nothing here builds SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from treefold_orm._fields._base import Field
from treefold_orm._meta import Relation

AnyField = Field[Any]


@dataclass(frozen=True, slots=True)
class Node:
    """Base of all nodes."""


@dataclass(frozen=True, slots=True)
class Expr(Node):
    """A node with a value; `field` knows how that value travels, None where nobody does."""

    field: AnyField | None


@dataclass(frozen=True, slots=True)
class ColumnNode(Expr):
    """A column reached over `hops` from the query's model."""

    hops: tuple[Relation, ...]
    column: AnyField


@dataclass(frozen=True, slots=True)
class OuterNode(Expr):
    """A path that the enclosing query resolves."""

    path: str


@dataclass(frozen=True, slots=True)
class ParamNode(Expr):
    """The parameter at `index` of the query."""

    index: int


@dataclass(frozen=True, slots=True)
class ConstNode(Expr):
    """A value that belongs to the query's shape and is still bound, never written into SQL."""

    value: Any


@dataclass(frozen=True, slots=True)
class FuncNode(Expr):
    """A function of the closed list in the dialects; `option` is one of the function's words."""

    name: str
    args: tuple[Expr, ...]
    option: str = ""


@dataclass(frozen=True, slots=True)
class ArithNode(Expr):
    """Two operands and one of `+ - * / %`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class AggregateNode(Expr):
    """An aggregate; `hops` lead over a to-many relation whose rows are aggregated on their own."""

    name: str
    arg: Expr | None
    distinct: bool
    where: Node | None
    hops: tuple[Relation, ...] = ()


@dataclass(frozen=True, slots=True)
class CaseNode(Expr):
    """Searched CASE: pairs of condition and result."""

    whens: tuple[tuple[Node, Expr], ...]
    default: Expr | None


@dataclass(frozen=True, slots=True)
class TruthNode(Expr):
    """A condition as a value: true or false, never unknown."""

    condition: Node


@dataclass(frozen=True, slots=True)
class CustomNode(Expr):
    """A function declared by the application; `template` is its SQL by dialect, fixed with its
    class.
    """

    template: Any
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class SubqueryNode(Expr):
    """A query inside a query; its parameters start at `base`."""

    key: tuple[Any, ...]
    base: int


@dataclass(frozen=True, slots=True)
class OrderNode(Node):
    """One term of an ordering; `nulls` is "first", "last" or empty for the default."""

    expr: Expr
    descending: bool
    nulls: str = ""


@dataclass(frozen=True, slots=True)
class WindowNode(Expr):
    """A function over a window."""

    function: Expr
    partition: tuple[Expr, ...]
    order: tuple[OrderNode, ...]
    frame: str = ""


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A lookup and what stands on its right side (None where it takes nothing)."""

    lookup: Any
    right: Expr | None


@dataclass(frozen=True, slots=True)
class Test(Node):
    """A comparison whose left side is an expression."""

    left: Expr
    op: str
    right: Expr | None


@dataclass(frozen=True, slots=True)
class ExistsNode(Node):
    """True when the inner query has a row."""

    query: SubqueryNode


@dataclass(frozen=True, slots=True)
class RelatedNode(Node):
    """True when a related row meets `where`; `where` is resolved against the last hop's target."""

    hops: tuple[Relation, ...]
    where: Node | None


@dataclass(frozen=True, slots=True)
class And(Node):
    """All children are true."""

    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """At least one child is true."""

    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
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
    stack: list[Any] = [getattr(node, name) for name in node.__dataclass_fields__]
    while stack:
        item = stack.pop(0)
        if isinstance(item, Node):
            found.append(item)
        elif isinstance(item, tuple):
            stack = [*cast("tuple[Any, ...]", item), *stack]
    return found
