"""The query of one page: what is asked for, in an order that a cursor can hold.

Example, `order=-author` of a `FilterSet` whose `ordering` has `author__name`:

    asked    ["-author__name"]
    query    .annotate(order_author_name=F("author__name")).order_by("-order_author_name")

since a cursor holds columns of the row and annotations, and the row has no name of its author.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from treefold_orm._base.errors import FieldError, FieldValueError, InvalidParameter
from treefold_orm._expressions.lookups import walk_path
from treefold_orm._fields.meta import Meta
from treefold_orm._lists.cursors import CursorSeal
from treefold_orm._operations.paging import Page
from treefold_orm._terms.values import F

if TYPE_CHECKING:
    from treefold_orm._lists.row_shapes import RowShape
    from treefold_orm._shapes.rows import RowPlan

T = TypeVar("T")


class ListPage(Page[T]):
    """A page of a `FilterSet`, whose next one the same address has with other cursors."""

    __slots__ = ()


@dataclass(slots=True, kw_only=True)  # frozen takes four times as long to make, in each request
class AskedPage(Generic[T]):
    """One page that a request asks for.

    Attributes:
        owner: the name of the `FilterSet`, for errors.
        query: the rows in their order, loading what the shape needs.
        counted: the rows without order.
        shape: makes the items.
        size: how many.
        after, before: the cursor inside of the signed one.
        seal, context: sign the cursors of the page; without a seal they stay as they are.
    """

    owner: str
    query: Any
    counted: Any
    shape: RowShape[T] | RowPlan
    size: int
    after: str | None
    before: str | None
    seal: CursorSeal | None
    context: tuple[str, ...]

    def find_list_error(self, error: FieldValueError) -> FieldValueError:
        """Return the error of the parameter that an error of the cursor is; any other as it is."""
        is_cursor = error.field == "cursor"
        return build_cursor_error(self.owner, self.after is None) if is_cursor else error

    def finish_page(self, found: Page[Any], total: int | None) -> Page[T]:
        """Return the page of a page of rows."""
        items = self.shape.make_items(found.items)
        return ListPage(items, self._sign(found.next), self._sign(found.previous), total)

    def _sign(self, cursor: str | None) -> str | None:
        if cursor is None or self.seal is None:
            return cursor
        return self.seal.sign_cursor(cursor, self.context)


def build_cursor_error(owner: str, is_before: bool) -> InvalidParameter:
    """Return the error for a cursor that is not of this list."""
    name = "before" if is_before else "after"
    reason = "is not a cursor of this list: give it the filters and the order of its page"
    return InvalidParameter(owner, name, reason=reason)


def order_by_names(query: Any, terms: Sequence[str]) -> Any:
    """Order a query by names, those of related rows as annotations."""
    made: list[str] = []
    for term in terms:
        path = term.removeprefix("-")
        # most are columns, which lead nowhere
        if path not in query._meta.fields and walk_path(query._meta, path)[0]:
            name = f"order_{path.replace('__', '_')}"
            if name not in (query._notes or {}):
                query = query.annotate(**{name: F(path)})
            path = name
        made.append(f"-{path}" if term.startswith("-") else path)
    return query.order_by(*made)


def require_pageable(owner: str, meta: Meta, terms: Sequence[str]) -> None:
    """Raise `FieldError` for an ordering that no cursor can hold."""
    for path in (term.removeprefix("-") for term in terms):
        hops, _, _ = walk_path(meta, path)
        if any(hop.to_many for hop in hops):
            raise FieldError(
                f"{owner} cannot be paged in the order of {path!r}, which leads to many rows"
            )
