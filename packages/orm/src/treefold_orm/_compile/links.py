"""The table of a many-to-many relation, in which a connection counts once.

The rows of a relation are a set. A through model of the user's own may hold a pair several times,
such as two memberships of one person in one club: where such rows are joined, each pair is read
once. What only asks whether a pair is there, reads the table itself.

Example, the key is a column of the table of the relation; any other column takes one more join:

    >>> Label.objects.filter(articles=1).values("word")
    SELECT t0."word" FROM "label" AS t0 WHERE EXISTS (SELECT 1 FROM "article_labels" AS t2 WHERE
    t2."label_id" = t0."id" AND t2."article_id" = ?)

    >>> Label.objects.filter(articles__title="x").values("word")
    SELECT t0."word" FROM "label" AS t0 WHERE EXISTS (SELECT 1 FROM "article_labels" AS t2 JOIN
    "article" AS t1 ON t1."id" = t2."article_id" WHERE t2."label_id" = t0."id" AND t1."title" = ?)
"""

from __future__ import annotations

from treefold_orm._dialects.sql import SQL, build_qualified_column, quote_table
from treefold_orm._fields.meta import Relation
from treefold_orm._terms.constraints import UniqueConstraint


def build_through_from_item(relation: Relation, alias: SQL, where: SQL | None = None) -> SQL:
    """The table of the through model, or its pairs of keys, as they stand in a FROM clause.

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
