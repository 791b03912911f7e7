"""`Page[T]` as the result of a handler: its type, and the `Link` field of its neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast
from urllib.parse import urlencode

from treefold_orm._lists.list_query import ListPage

MAX_LINK = 4096
"""Characters of the field: cursors hold values of rows, and servers and proxies refuse long fields.

The page itself has the cursors in any case.
"""


class PageResult:
    """How pages of one type are answered.

    Attributes:
        type: the type of the page, `Page[BookOut]`.
        headers: the fields that an answer may have, with descriptions.
    """

    headers: ClassVar[Mapping[str, str]] = {
        "Link": 'The pages around this one (RFC 8288): rel="next" and rel="prev", where there are'
    }

    def __init__(self, annotation: Any) -> None:
        self.type = annotation

    def build_fields(self, result: object, query: Sequence[tuple[str, str]]) -> Mapping[str, str]:
        """Return the `Link` field of a page, relative to the address of the request."""
        if not isinstance(result, ListPage):
            return {}
        page = cast("ListPage[Any]", result)
        kept = urlencode([pair for pair in query if pair[0] not in {"after", "before"}])
        start = f"?{kept}&" if kept else "?"
        neighbours = (("next", "after", page.next), ("prev", "before", page.previous))
        links = [
            f'<{start}{name}={cursor}>; rel="{relation}"'  # a cursor is safe in an address
            for relation, name, cursor in neighbours
            if cursor is not None
        ]
        field = ", ".join(links)
        return {"Link": field} if 0 < len(field) <= MAX_LINK else {}
