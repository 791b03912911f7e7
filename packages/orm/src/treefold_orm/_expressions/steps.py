"""The steps of a query: the record that each call adds to its key, without values.

Like all nodes they are hashable and compare by their parts: queries with equal keys share one
compiled plan. `replay_steps` in `_compile/state.py` adds them up.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._base.records import Record, frozen_record
from treefold_orm._expressions.cte_nodes import Join, Source
from treefold_orm._expressions.lookups import Lookup
from treefold_orm._expressions.nodes import Expr, Key, Node, OrderNode
from treefold_orm._fields.base import AnyField


class Step(Node):
    """Base of steps."""

    __slots__ = ()


@frozen_record
class Filter(Step):
    """Lookups of one call, joined by AND; their parameters begin at `start`."""

    start: int
    lookups: tuple[Lookup, ...]


@frozen_record
class Where(Step):
    """One condition of any kind."""

    condition: Node


@frozen_record
class NoRows(Step):
    """The query has no rows."""


@frozen_record
class Given(Step):
    """How many parameters there are, where some may be of steps that were left out."""

    count: int


@frozen_record
class Ordering(Step):
    """The ordering; the last one counts, and one without terms clears."""

    terms: tuple[OrderNode, ...]


class KnownOrdering(Ordering):
    """An ordering by columns that a model keeps for the next query: it is hashed once, and has what
    paging has found out about it.
    """

    __slots__ = ("hashed", "page_order")

    hashed: int
    page_order: Any

    def __init__(self, terms: tuple[OrderNode, ...]) -> None:
        super().__init__(terms)
        # records are frozen, and the hash is asked for by each query that has this order
        object.__setattr__(self, "hashed", hash(terms))
        object.__setattr__(self, "page_order", None)

    def __hash__(self) -> int:
        return self.hashed


@frozen_record
class Annotate(Step):
    """A computed value under a name, which is `loaded` or only named for other expressions;
    `groups` says that it holds an aggregate of a group.
    """

    name: str
    expr: Expr
    groups: bool
    loaded: bool


@frozen_record
class KeyLabel(Record):
    """The name in a row of a key of several columns, and the number of these columns."""

    name: str
    width: int


Label = str | KeyLabel
"""The name of one value in a row."""


@frozen_record
class Values(Step):
    """Rows in another form than instances: `rows` is "dicts", "tuples", "named" or "flat".

    Example, `Line.objects.values("pk", "title")`, where the key of a line has two columns:

        labels   (KeyLabel("pk", 2), "title")
        columns  (("tenant_id", ...), ("number", ...), ("title", ...))
        a row    {"pk": (7, 1), "title": "Ants"}
    """

    rows: str
    labels: tuple[Label, ...]
    columns: tuple[tuple[str, Expr], ...]


@frozen_record
class Load(Step):
    """The columns that instances load, by their paths."""

    names: frozenset[str]


@frozen_record
class SelectRelated(Step):
    """Relations that are joined to the rows, by their paths."""

    paths: tuple[str, ...]


@frozen_record
class Distinct(Step):
    """Each row once."""


@frozen_record
class DistinctOn(Step):
    """The first row of each combination of values."""

    nodes: tuple[Expr, ...]


@frozen_record
class Slice(Step):
    """LIMIT and OFFSET, as far as there are such; their parameters begin at `start`."""

    start: int
    limit: bool
    offset: bool


@frozen_record
class Lock(Step):
    """How rows are locked; `strength` is "share", "no_key" or empty."""

    skip_locked: bool
    nowait: bool
    strength: str


@frozen_record
class Combine(Step):
    """Another query, combined by the set operation `op`; its parameters start at `base`."""

    op: str
    key: Key
    base: int


@frozen_record
class Common(Step):
    """The types that the parts of a combined query share, column by column."""

    fields: tuple[AnyField | None, ...]


@frozen_record
class FromCTE(Step):
    """The query selects from a CTE instead of a table."""

    source: Source


@frozen_record
class JoinCTE(Step):
    """A CTE is joined to the rows."""

    join: Join
