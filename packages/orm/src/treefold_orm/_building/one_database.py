"""The one gate between databases: a query takes in only queries of its own database.

    Author.objects.filter(pk__in=Post.objects.using("other").values("author"))   # FieldError

Compiled as it stands, the inner query would run where the outer one does, and find other rows or
none. An inner query that nothing has placed is meant to, if its model is of the same database as
that of the outer one. One that was placed gives its database to a query around it that was not,
which then cannot move: `using()` comes first.

The query of a `Prefetch` is no part of the statement around it. One that was placed elsewhere is a
statement there, which runs after that of the outer query (`split_prefetches`).
"""

from __future__ import annotations

from typing import Any, cast

from treefold_orm._base.databases import Home
from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import Record
from treefold_orm._building.query_protocol import Query
from treefold_orm._expressions.nodes import SubqueryNode
from treefold_orm._expressions.steps import Combine, FromCTE, JoinCTE
from treefold_orm._fields.meta import Meta

_TAKEN_IN = (SubqueryNode, Combine, FromCTE, JoinCTE)


def require_common_database(
    inner_alias: str, outer_alias: str, meta: Meta, what: str = "inner query"
) -> str:
    """Return the database of both; raise `FieldError` where a query would run in another one.

    Args:
        inner_alias: the database of the query that is taken in.
        outer_alias: that of the query around it.
        meta: a model of the query around it.
        what: the name of the inner query, for the message.
    """
    if isinstance(inner_alias, Home):
        if inner_alias in (meta.database, outer_alias):
            return outer_alias
        if isinstance(outer_alias, Home):
            raise FieldError(
                f"The {what} is of the database {inner_alias!r} and the query of "
                f"{outer_alias!r}, where their models live: read the values of one first, and give "
                "them to the other"
            )
    if inner_alias != outer_alias:
        raise FieldError(
            f"The {what} is of the database {inner_alias!r} and the query of {outer_alias!r}: "
            "call using() on both before they meet"
        )
    return inner_alias


def check_can_change_database(query: Query, alias: str) -> None:
    """Raise `FieldError` where a query that has taken in another one is to change its database."""
    if query._alias == alias:
        return
    if not isinstance(query._alias, Home) and _contains_nested_query(query._key[1:]):
        raise FieldError(
            f"using({alias!r}) cannot follow a query that was taken in, which is of the database "
            f"{query._alias!r}; call using() first, on both"
        )


def _contains_nested_query(part: object) -> bool:
    if isinstance(part, _TAKEN_IN):
        return True
    if isinstance(part, tuple):
        return any(map(_contains_nested_query, cast("tuple[Any, ...]", part)))
    if isinstance(part, Record):
        return any(_contains_nested_query(getattr(part, name)) for name in part.__match_args__)
    return False
