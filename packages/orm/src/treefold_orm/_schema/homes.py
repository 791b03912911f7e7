"""The databases of models: which models live on which, and the refusal of relations between two.

| Author | Event | `Event.author = ForeignKey(Author)` |
|---|---|---|
| `default` | `default` | a foreign key of the database |
| `default` | `analytics` | refused: no database has a foreign key into another one |

A model may be defined with such a relation, whose target may not be known yet. It is refused where
tables are made, before any statement, and where a query follows it. Nothing here writes one.
"""

from __future__ import annotations

from collections.abc import Iterable

from treefold_orm._base.databases import DEFAULT
from treefold_orm._fields.meta import Meta


def sort_databases(databases: Iterable[str]) -> list[str]:
    """Return aliases in the order in which databases are gone through: `default` first."""
    return sorted({str(alias) for alias in databases}, key=lambda alias: (alias != DEFAULT, alias))


def group_by_database(metas: Iterable[Meta]) -> dict[str, list[Meta]]:
    """Return the models of each database, the databases in turn."""
    found = list(metas)
    return {
        alias: [meta for meta in found if meta.database == alias]
        for alias in sort_databases(meta.database for meta in found)
    }


def select_models_of_database(metas: Iterable[Meta], alias: str) -> list[Meta]:
    """Return the models whose tables a database has: those that live there.

    A database on which none lives, such as one of a test or a replica, has those of `default`.
    """
    found = list(metas)
    living = [meta for meta in found if meta.database == alias]
    return living or [meta for meta in found if meta.database == DEFAULT]


def check_relations(metas: Iterable[Meta]) -> None:
    """Raise `ModelError` for a relation between models of two databases."""
    for meta in metas:
        if meta.auto_created:
            continue  # the field that made it names both models
        for name in (*meta.fields, *meta.many):
            if name in meta.relations:  # else it is a column, or its target does not exist yet
                meta.relations[name].require_one_database()
