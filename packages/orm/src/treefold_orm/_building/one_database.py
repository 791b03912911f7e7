"""The one gate between databases: a query takes in only queries of its own database.

    Author.objects.filter(pk__in=Post.objects.using("other").values("author"))   # FieldError

Compiled as it stands, the inner query would run where the outer one does, and find other rows or
none. An inner query without a database of its own is meant to. One that has a database gives it to
a query around it that has none, which then cannot move: `using()` comes first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from treefold_orm._base.databases import UNPLACED
from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import Record
from treefold_orm._expressions.nodes import SubqueryNode
from treefold_orm._expressions.steps import Combine, FromCTE, JoinCTE

_TAKEN_IN = (SubqueryNode, Combine, FromCTE, JoinCTE)


def check_database(inner: str, outer: str, what: str = "inner query") -> str:
    """Return the database of both; raise `FieldError` where a query would run in another one."""
    if inner is UNPLACED:
        return outer
    if inner != outer:
        raise FieldError(
            f"The {what} is of the database {inner!r} and the query of {outer!r}: call using() on "
            "both before they meet"
        )
    return inner


def check_movable(query: Any, alias: str) -> None:
    """Raise `FieldError` where a query that has taken in another one is to change its database."""
    if query._alias == alias:
        return
    if query._alias is not UNPLACED and _holds_query(query._key[1:]):
        raise FieldError(
            f"using({alias!r}) cannot follow a query that was taken in, which is of the database "
            f"{query._alias!r}; call using() first, on both"
        )
    for spec in query._prefetches:
        if spec.query is not None:
            check_database(spec.query._alias, alias, f"query of Prefetch({spec.path!r})")


def _holds_query(part: Any) -> bool:
    if isinstance(part, _TAKEN_IN):
        return True
    if isinstance(part, tuple):
        return any(map(_holds_query, cast("tuple[Any, ...]", part)))
    if isinstance(part, Record):
        names: Sequence[str] = type(part)._names
        return any(_holds_query(getattr(part, name)) for name in names)
    return False
