"""CTEs as data: the query, its columns, the step of a recursion.

Like all nodes these are hashable and without values: they are part of the key of every query that
uses the CTE, so that a plan belongs to its shape. No SQL is built here.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._base.records import record
from treefold_orm._expressions.nodes import Expr, Node
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Relation


@record
class Recursion(Node):
    """How a recursive CTE goes on: over `relation`, to rows that meet `where`.

    `limit` is the index of the parameter that holds the greatest depth; `carried` are pairs of the
    value at the start and the value of each step.
    """

    relation: Relation
    where: Node | None
    limit: int | None
    depth: bool
    carried: tuple[tuple[Expr, Expr], ...]


@record
class Source(Node):
    """One CTE: the key of its query, its columns (name and field), and how many parameters it has.

    `unique` says how many leading columns tell its rows apart, 0 where none do.
    """

    key: tuple[Any, ...]
    columns: tuple[tuple[str, Field[Any] | None], ...]
    size: int
    unique: int = 0
    recursion: Recursion | None = None


@record
class Join(Node):
    """A CTE joined to the rows of a query where `on` holds; its parameters start at `base`.

    `names` are the columns it adds; `optional` keeps rows without a partner; `single` says that
    each row has at most one.
    """

    source: Source
    base: int
    on: tuple[Node, ...]
    names: tuple[tuple[str, Expr], ...]
    optional: bool
    single: bool
