"""Names that a client chose, marked as such on their way through `**`.

`Model.objects.create(**await request.json())` would let a client name any column, and
`filter(**request.query)` any lookup. `**` and `dict()` call `keys()`, and the keys from there are
of a subclass of `str` that the ORM refuses as names. Iteration, `items()` and look-ups return plain
strings, at the speed of a dictionary.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView
from typing import Any


class ClientName(str):
    """A member or parameter name that came with a request; a `str` in every other respect."""

    __slots__ = ()


class ClientNames(KeysView[str]):
    """The keys of a mapping from a request, marked."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        return map(ClientName, self._mapping)


class ClientObject(dict[str, Any]):
    """The object at the top of a JSON body, in applications that have models."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        # Behaves as dict.__iter__; an override makes `**` call `keys()` (CPython, dict_merge).
        return super().__iter__()

    def keys(self) -> Any:
        """Return the member names as `ClientName`."""
        return ClientNames(self)
