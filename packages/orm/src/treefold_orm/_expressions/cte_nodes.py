"""CTEs as data: the query, its columns, the step of a recursion.

Like all nodes these are hashable and without values: they are part of the key of every query that
uses the CTE, so that a plan belongs to its shape. No SQL is built here.

Example, articles with the number that their writers have published:

    totals = CTE(Article.objects.filter(views__gt=5).values("writer").annotate(n=Count("*")))
    Article.objects.filter(title="Ants").join(totals, writer="writer")

`Source` is `totals` itself: `columns` are `writer` and `n`, and `size` is 1, for the parameter 5.
`Join` is its use in the second query, whose parameters are `("Ants", 5)`: those of the CTE begin at
the `base` 1, `on` compares its column `writer` with that of the article, and `names` adds `n`.
"""

from __future__ import annotations

from treefold_orm._base.records import frozen_record
from treefold_orm._expressions.nodes import Expr, Key, Node
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Relation


@frozen_record
class Recursion(Node):
    """How a recursive CTE goes on: over `relation`, to rows that meet `where`.

    `limit` is the index of the parameter that holds the greatest depth; `depth` says that a column
    counts the steps to a row. `carried` are pairs of the value at the start and the value of each
    step, such as the names of all categories above.
    """

    relation: Relation
    where: Node | None
    limit: int | None
    depth: bool
    carried: tuple[tuple[Expr, Expr], ...]


@frozen_record
class Source(Node):
    """One CTE: the key of its query, its columns (name and field), and how many parameters it has.

    `unique` says how many leading columns tell its rows apart, 0 where none do; `recursion` is set
    for a recursive one, whose `key` is that of the first rows.
    """

    key: Key
    columns: tuple[tuple[str, AnyField | None], ...]
    size: int
    unique: int = 0
    recursion: Recursion | None = None


@frozen_record
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
