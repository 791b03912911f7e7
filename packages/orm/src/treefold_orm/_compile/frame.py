"""Frame: one FROM clause in the making, with the joins its columns ask for.

A frame knows which alias stands for which chain of relations. Relations to one row become joins,
INNER where the row must exist and LEFT where it may be missing. Relations to many are opened as
frames of their own.

Example, `build_column` is asked for a column two relations away: a writer must exist, a boss may
be missing:

    >>> Article.objects.filter(writer__boss__name="Eva").values("title")
    SELECT t0."title" FROM "article" AS t0 JOIN "writer" AS t1 ON t1."id" = t0."writer_id" LEFT JOIN
    "writer" AS t2 ON t2."id" = t1."boss_id" WHERE t2."name" = ?
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import (
    SQL,
    StatementBuilder,
    build_qualified_column,
    join_sql,
    quote_table,
    render_integer,
)
from treefold_orm._dialects.storage import convert_from_storage_if_needed
from treefold_orm._expressions.nodes import CTENode, Expr
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Meta, Relation
from treefold_orm._terms.constraints import UniqueConstraint

Hops = tuple[Relation, ...]


class NeedsJoin(Exception):  # noqa: N818, RUF100 - a signal inside this package, never raised to callers
    """An UPDATE or DELETE met a column of another table and must be rewritten over keys."""


class Frame:
    """One table and the tables joined to it.

    Attributes:
        meta, alias: the model of the table, and its name in the statement: `t0`.
        table: the CTE that it selects from in place of that table.
        offset: added to indexes of parameters: a query inside another one shares its parameters.
        parent: the frame that `OuterRef` looks at.
        joinable: False for UPDATE and DELETE, which take no joins: `NeedsJoin` is raised instead.
        grouped: True if its rows are grouped, so that aggregates are those of groups.
        needs_all_rows: True if every row is needed: what belongs to them is aggregated in one
            pass, and not row by row.
        counts_rows: True where a row that is there twice would be a wrong result.
        distinct_over: how a grouped query aggregates distinct values of related rows.
        correlation: of related rows, the condition that they belong to the row outside:
            `t1."writer_id" = t0."id"`.
        pending, through_alias: of related rows over a many-to-many relation, that relation and the
            alias of its through table; see below.
        joins: the joins in their order; some may still grow until FROM is finished.
        known_values: expressions that FROM computes already, and their columns there.
        aggregated: what is aggregated in one pass, by the rows that it is of.
        ctes: the aliases of joined CTEs by their place in the query.
        cte_columns: the columns of CTEs by name.
        ranks: the alias of the join of a search.
        attach: joins the CTEs again, in a copy that needs aliases of its own.

    The rows of a many-to-many relation begin at its through table, which holds the key of the
    target: FROM is the through table `t2` alone, as long as that key is all that is asked for.

        >>> Article.objects.filter(labels=3).values("title")
        SELECT t0."title" FROM "article" AS t0 WHERE EXISTS (SELECT 1 FROM "article_labels" AS t2
        WHERE t2."article_id" = t0."id" AND t2."label_id" = ?)

    Any other column of the target makes `_join_many_to_many_target` join it, as `alias`, once:

        >>> Article.objects.filter(labels__word="x").values("title")
        SELECT t0."title" FROM "article" AS t0 WHERE EXISTS (SELECT 1 FROM "article_labels" AS t2
        JOIN "label" AS t1 ON t1."id" = t2."label_id" WHERE t2."article_id" = t0."id" AND t1."word"
        = ?)

    | | `pending` | `through_alias` | `alias` | `_aliases` |
    |---|---|---|---|---|
    | other frames | None | None | `t0`, in FROM | without `()` |
    | through table alone | `Article.labels` | `t2` | `t1`, not in FROM yet | without `()` |
    | with the target | `Article.labels` | `t2` | `t1`, joined | `{(): t1}` |
    """

    def __init__(
        self,
        builder: StatementBuilder,
        dialect: Dialect,
        meta: Meta,
        *,
        offset: int = 0,
        parent: Frame | None = None,
        joinable: bool = True,
    ) -> None:
        self.builder = builder
        self.dialect = dialect
        self.meta = meta
        self.offset = offset
        self.parent = parent
        self.joinable = joinable
        self.alias: SQL = builder.generate_table_alias()
        self.table: SQL | None = None
        self.grouped = False
        self.needs_all_rows = False
        self.counts_rows = False
        self.distinct_over: Callable[[Any], SQL] | None = None
        self.correlation: SQL | None = None
        self.pending: Relation | None = None
        self.through_alias: SQL | None = None
        self.joins: list[SQL | Callable[[], SQL]] = []
        self.known_values: dict[Expr, SQL] = {}
        self.aggregated: dict[Any, Any] = {}
        self.ctes: dict[int, SQL] = {}
        self.cte_columns: dict[str, CTENode] = {}
        self.ranks: dict[Any, SQL] = {}
        self.attach: Callable[[Frame], None] | None = None
        self._aliases: dict[Hops, SQL] = {}
        self._optional: set[Hops] = set()

    def build_from(self) -> SQL:
        """The FROM clause."""
        if self.pending is not None:
            relation = self.pending
            assert relation.through is not None  # noqa: S101 - a many relation has one
            assert self.through_alias is not None  # noqa: S101 - set together with pending
            table = SQL("{} AS {}", quote_table(relation.through), self.through_alias)
            # a membership that is there twice would be counted twice
            if self.counts_rows:
                table = build_through_from_item(relation, self.through_alias, self.correlation)
        else:
            table = SQL("{} AS {}", self.table or quote_table(self.meta), self.alias)
        return self._append_joins(table)

    def build_from_with_subquery(self, query: SQL) -> SQL:
        """The FROM clause with a query in place of the table."""
        return self._append_joins(SQL("({}) AS {}", query, self.alias))

    def _append_joins(self, table: SQL) -> SQL:
        made = table
        for part in self.joins:
            made = SQL("{} {}", made, part if isinstance(part, SQL) else part())
        return made

    def find_override(self, node: Expr) -> SQL | None:
        """The value of an expression that FROM computes already, else None."""
        return self.known_values.get(node) if self.known_values else None

    def build_column(self, hops: Hops, field: AnyField) -> SQL:
        """A column reached over `hops`, which gets joined if it was not yet.

        A key of several columns is a row of them, for comparisons with rows.
        """
        if isinstance(field, KeyColumns):
            return SQL(
                "({})", join_sql(", ", [self.build_column(hops, part) for part in field.parts])
            )
        if not hops and self.pending is not None and self.through_alias is not None:
            # the through row holds this key itself, and its foreign key vouches for the target
            if field is self.meta.pk:
                return build_qualified_column(self.through_alias, self.pending.target_field)
            self._join_many_to_many_target(self.pending, self.through_alias)
        made = build_qualified_column(self.ensure_join_alias(hops), field)
        return convert_from_storage_if_needed(self.dialect, made, field)

    def build_cte_column(self, node: CTENode) -> SQL:
        """A column of a CTE that the query joins or selects from."""
        alias = self.ctes.get(node.place)
        if alias is None:
            raise FieldError(
                "A column of a CTE is known only to the query that joins it: join it there too"
            )
        return SQL("{}.c{}", alias, render_integer(node.column))

    def build_own_column(self, field: AnyField) -> SQL:
        """A column of this frame's own table."""
        return self.build_column((), field)

    def ensure_join_alias(self, hops: Hops) -> SQL:
        """The alias at the end of `hops`, adding missing joins."""
        if not hops:
            if self.pending is not None and self.through_alias is not None:
                self._join_many_to_many_target(self.pending, self.through_alias)
            return self.alias
        found = self._aliases.get(hops)
        if found is not None:
            return found
        if not self.joinable:
            raise NeedsJoin
        relation = hops[-1]
        # the left side comes first: its own joins must stand before this one in FROM
        left = (
            self.build_column(hops[:-1], relation.source_field) if relation.kind != "many" else None
        )
        # an INNER JOIN behind a LEFT JOIN would drop the rows again whose left side is missing
        optional = relation.nullable or hops[:-1] in self._optional
        alias = self.builder.generate_table_alias()
        if left is None:
            alias = self._join_many_to_many(hops, alias)
        else:
            same = SQL("{} = {}", build_qualified_column(alias, relation.target_field), left)
            self._add_join(relation.target, alias, same, optional=optional)
        self._aliases[hops] = alias
        if optional:
            self._optional.add(hops)
        return alias

    def is_optional(self, hops: Hops) -> bool:
        """Return True if the row at the end of `hops` may be missing."""
        return hops in self._optional

    def build_correlated_frame(self, relation: Relation, hops: Hops) -> tuple[Frame, SQL]:
        """A new frame over the rows of `relation`, and the condition that ties it to the row at
        `hops`, its correlation.
        """
        inner, key = self.build_related_frame(relation)
        inner.correlation = SQL("{} = {}", key, self.build_referenced_column(relation, hops))
        return inner, inner.correlation

    def open_beside(self, meta: Meta, later: int = 0) -> Frame:
        """A new frame over all rows of a model, with the same parent; `later` counts the parameters
        before its own.
        """
        start = self.offset + later
        return Frame(self.builder, self.dialect, meta, offset=start, parent=self.parent)

    def build_related_frame(self, relation: Relation) -> tuple[Frame, SQL]:
        """A new frame over all rows of `relation`, and its column that names the row they belong
        to.
        """
        # the parent is that of this frame: OuterRef counts queries, not sub-selects made here
        inner = self.open_beside(relation.target)
        if relation.kind != "many":
            return inner, inner.build_own_column(relation.target_field)
        inner.through_alias = self.builder.generate_table_alias()
        inner.pending = relation
        return inner, build_qualified_column(inner.through_alias, relation.source_field)

    def build_referenced_column(self, relation: Relation, hops: Hops) -> SQL:
        """The column of the row at `hops` that its rows of `relation` name."""
        key = relation.source.pk if relation.kind == "many" else relation.source_field
        return self.build_column(hops, key)

    def require_to_one_path(self, hops: Hops) -> None:
        """Raise `FieldError` if a value would have to be taken from several rows."""
        for relation in hops:
            if relation.to_many:
                raise FieldError(
                    f"{relation.source.name}.{relation.name} leads to many rows: use an "
                    "aggregate, Subquery or Exists"
                )

    def _join_many_to_many_target(self, relation: Relation, through_alias: SQL) -> None:
        if () in self._aliases:  # joined before
            return
        self._aliases[()] = self.alias
        own = build_qualified_column(self.alias, self.meta.pk)
        theirs = build_qualified_column(through_alias, relation.target_field)
        self._add_join(self.meta, self.alias, SQL("{} = {}", own, theirs), optional=False)

    def _add_join(self, meta: Meta, alias: SQL, condition: SQL, *, optional: bool) -> None:
        kind = SQL("LEFT JOIN") if optional else SQL("JOIN")
        self.joins.append(SQL("{} {} AS {} ON {}", kind, quote_table(meta), alias, condition))

    def _join_many_to_many(self, hops: Hops, alias: SQL) -> SQL:
        """Join the through table and the target: one row for each related one, which
        `values("labels__word")` asks for; conditions open a frame instead.
        """
        relation = hops[-1]
        through_alias = self.builder.generate_table_alias()
        left = self.build_column(hops[:-1], relation.source.pk)
        same = SQL("{} = {}", build_qualified_column(through_alias, relation.source_field), left)
        # LEFT here and for the target: `values("labels__word")` keeps an article without labels
        item = build_through_from_item(relation, through_alias)
        self.joins.append(SQL("LEFT JOIN {} ON {}", item, same))
        own = build_qualified_column(alias, relation.target.pk)
        theirs = build_qualified_column(through_alias, relation.target_field)
        self._add_join(relation.target, alias, SQL("{} = {}", own, theirs), optional=True)
        return alias


def build_through_from_item(relation: Relation, alias: SQL, where: SQL | None = None) -> SQL:
    """The table of the through model, or its pairs of keys, as they stand in a FROM clause.

    The rows of a relation are a set. A through model of the user's own may hold a pair several
    times, such as two memberships of one person in one club: where such rows are joined, each pair
    is read once. What only asks whether a pair is there, reads the table itself. The key is a
    column of the table; any other column takes one more join:

        >>> Label.objects.filter(articles=1).values("word")
        SELECT t0."word" FROM "label" AS t0 WHERE EXISTS (SELECT 1 FROM "article_labels" AS t2 WHERE
        t2."label_id" = t0."id" AND t2."article_id" = ?)

        >>> Label.objects.filter(articles__title="x").values("word")
        SELECT t0."word" FROM "label" AS t0 WHERE EXISTS (SELECT 1 FROM "article_labels" AS t2 JOIN
        "article" AS t1 ON t1."id" = t2."article_id" WHERE t2."label_id" = t0."id" AND t1."title" =
        ?)

    `where` is a condition on the table behind `alias` that the query has too: where it ties the
    pairs to a row outside, SQLite would else make the pairs of all rows for each of them.
    """
    assert relation.through is not None  # noqa: S101 - a many relation always has one
    table = SQL("{} AS {}", quote_table(relation.through), alias)
    if has_unique_pairs(relation):
        return table
    source, target = (
        build_qualified_column(alias, field)
        for field in (relation.source_field, relation.target_field)
    )
    tested = SQL("") if where is None else SQL(" WHERE {}", where)
    return SQL("(SELECT DISTINCT {}, {} FROM {}{}) AS {}", source, target, table, tested, alias)


def has_unique_pairs(relation: Relation) -> bool:
    """Return True if the table can hold no pair twice."""
    through = relation.through
    assert through is not None  # noqa: S101 - a many relation always has one
    pair = {relation.source_field.name, relation.target_field.name}
    # where one side alone is unique, a pair is as well
    if through.auto_created or any(through.fields[name].unique for name in pair):
        return True
    if {field.name for field in through.keys} <= pair:
        return True
    return any(
        isinstance(rule, UniqueConstraint)
        # a constraint over expressions has no fields, and an empty set lies within any pair
        and bool(rule.fields)
        and pair.issuperset(rule.fields)
        # a partial constraint lets pairs outside of its condition repeat
        and rule.condition is None
        # a deferred one is checked at the commit: until then, the transaction may hold a pair twice
        and rule.deferrable != "deferred"
        for rule in through.constraints
    )
