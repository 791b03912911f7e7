"""`ReadNotes`: which parts of a request decided an answer, by name.

A cache around a handler cannot know what an answer depends on until the handler has run. While it
runs, the request is a `RecordingRequest` whose accessors note names here: `header:x-user`,
`client.host`, `state:user`, `session`, `query`. Names only: values are looked up by
`cache._keys`, from the request as it was where the cache stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import Context
from typing import Any, Protocol

HEADERS = "headers"
STATE = "state"
EVERYTHING = (
    *(HEADERS, STATE, "client.host", "client.port", "path", "raw_path", "query"),
    *("http_version", "server"),
)
"""What a reader of the whole scope may depend on, besides the constants of an address."""


class Unresolved(Protocol):
    """A view that counts as read whole until one part of it was asked for."""

    is_whole: bool


class ReadNotes:
    """The notes of one request on its way through a cache.

    Attributes:
        names: what was read.
        written: attributes of `state` that were set inside of the cache; they depend on `names`.
        early: the values of the dependencies that ran before the look-up.
        context: the context variables at the outermost middleware; None where the project
            has no code outside of the cache.
    """

    __slots__ = ("addresses", "context", "early", "names", "written")

    def __init__(self, context: Context | None = None) -> None:
        self.names: set[str] = set()
        self.written: set[str] = set()
        self.early: Sequence[Any] = ()
        self.context = context
        self.addresses: list[Unresolved] = []

    def note_name(self, name: str) -> None:
        """Note that a part of the request was read."""
        self.names.add(name)

    def note_everything(self) -> None:
        """Note that the scope was read in a way that does not tell which part."""
        self.names.update(EVERYTHING)

    def collect_names(self) -> set[str]:
        """Return what was read; an address that was used whole counts with its port."""
        if any(address.is_whole for address in self.addresses):
            self.names.add("client.port")
        return self.names
