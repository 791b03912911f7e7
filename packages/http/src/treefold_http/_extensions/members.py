"""Types of what the members of an extension return and take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias

from treefold_logging import mask, request_id, scrub

Refusal: TypeAlias = tuple[int, str, Sequence[Mapping[str, Any]] | None]
"""The response to an exception: status, detail, and entries of a validation failure."""

READY_TIMEOUT = 2.0
"""Seconds that the readiness checks of all extensions together may take."""


class Check(Protocol):
    """One answer to `ready()`: any object with these attributes."""

    @property
    def topic(self) -> str:
        """The kind of the checked resource, such as `database`."""
        ...

    @property
    def name(self) -> str:
        """The name of the checked resource, such as an alias; never an address."""
        ...

    @property
    def ok(self) -> bool:
        """True if it can serve now."""
        ...

    @property
    def text(self) -> str:
        """The finding, without a user name, a password or a stored value."""
        ...

    @property
    def advice(self) -> str:
        """The remedy; empty if none is needed."""
        ...


class Pending(Protocol):
    """A step that an application still has to take, such as a migration to apply.

    `pending()` of an extension returns them: any objects with these attributes.
    """

    @property
    def text(self) -> str:
        """The missing step, such as `not applied: 0002_add_pages`."""
        ...

    @property
    def advice(self) -> str:
        """The command that performs it, such as `treefold migrate`."""
        ...


class SessionStore(Protocol):
    """Keeps values under keys until they expire; every method may be called from any event loop.

    A key is opaque text of at most 255 characters: hash a secret before it becomes one. A value
    that has expired is absent for every method.
    """

    async def get(self, key: str) -> bytes | None:
        """Return the value, or None if it is absent."""
        ...

    async def set(self, key: str, value: bytes, *, seconds: float) -> None:
        """Write the value, whether or not the key has one; it expires after `seconds`."""
        ...

    async def replace(self, key: str, value: bytes, *, seconds: float) -> bool:
        """Write the value in one step if the key has one; return False if it is absent.

        A save that began before a session was deleted must not restore it.
        """
        ...

    async def delete(self, key: str) -> bool:
        """Remove the value; return True if there was one."""
        ...

    async def touch(self, key: str, *, seconds: float) -> bool:
        """Set the expiry to `seconds` from now; return False if the key is absent."""
        ...


class ResultForm(Protocol):
    """How results are answered whose declared type an extension knows, as `result()` returns it."""

    @property
    def type(self) -> Any:
        """The type that results are held to, as a `response_model`, and that documents show."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The header fields that an answer may have, with their descriptions."""
        ...

    def build_fields(self, result: object, query: Sequence[tuple[str, str]]) -> Mapping[str, str]:
        """Return the header fields of one answer.

        Args:
            result: the return value of the handler; it may be of another type.
            query: the names and values of the query, in their order, without credentials.
        """
        ...


class SpanFactory(Protocol):
    """Opens a span around a piece of work, as `start_as_current_span` of OpenTelemetry does."""

    def __call__(
        self, name: str, attributes: Mapping[str, str | int]
    ) -> AbstractContextManager[Any]: ...


class LogContext:
    """The parts of the request log that an extension needs for lines and jobs of its own."""

    __slots__ = ()

    @property
    def request_id(self) -> ContextVar[str]:
        """The id of the request that the current code serves; `-` outside of one."""
        return request_id

    def mask(self, value: Any) -> Any:
        """Return a copy of a structure with the values under sensitive keys replaced by `***`."""
        return mask(value)

    def scrub(self, text: str) -> str:
        """Return a text with the secrets replaced that are known by their form."""
        return scrub(text)
