"""The contract between an application and its extensions.

An extension is an object of a project's `extensions.py`, or one that an installed distribution
declares under the entry-point group `treefold.extensions`. This module defines the members of an
extension, and calls them on all extensions of an application. It depends on no particular database
or extension; `_installed` finds the installed ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from treefold_http._background import run_anywhere
from treefold_http._boot_files import (
    load_middlewares as load_middlewares,
    load_models as load_models,
)
from treefold_http._installed import GROUP as GROUP, install as install
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._application import Application

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
    """One answer to `pending()`: any object with these attributes."""

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


class SpanFactory(Protocol):
    """Opens a span around a piece of work, as `start_as_current_span` of OpenTelemetry does."""

    def __call__(
        self, name: str, attributes: Mapping[str, str | int]
    ) -> AbstractContextManager[Any]: ...


class Extension(Protocol):
    """The members of an extension; each is optional.

    An extension may be an object of any class, with only the members it needs. A class that derives
    from this one inherits all members, which do nothing. `setup`, `startup` and `shutdown` are
    called in the order of the extensions: installed ones first, beginning with `databases`.
    """

    refusals: Mapping[type[Exception], Callable[[Any], Refusal]] = {}
    """Exception types and functions that return the response to one. Read once, after `setup`; an
    exception handler of the project for the same type takes precedence."""

    def setup(self, app: Application) -> None:
        """Prepare for an application; called once, before any module of the project is imported.

        An installed extension relies on `app.root` and `app.settings` only: `doctor` and tools
        set it up without a boot. An exception stops the boot and is reported.
        """

    async def startup(self) -> None:
        """Start; called when the server starts, before the startup hooks. It may be plain, and
        may take the application as its one argument. An exception stops the start."""

    async def shutdown(self) -> None:
        """Release the resources of `setup` and `startup`; called also after a failed boot or start.
        It may be plain. An exception is logged."""

    def watch(self) -> Callable[[], str]:
        """Begin to watch one request; called with `dev=True` only.

        Returns:
            A function that ends the watch and returns a note for the summary of the request, or an
            empty text.
        """
        return lambda: ""

    def reload(self, modules: Collection[str]) -> Callable[[Collection[str]], None]:
        """Forget the modules of the project that are about to be imported again, by dotted name.

        Returns:
            A function that takes the names of modules that were not replaced, and restores them.
        """
        return lambda _: None

    async def ready(self) -> Sequence[Check]:
        """Check the resources of the extension, for the readiness probe and `doctor`.

        It is called with and without a running application, and cancelled after `READY_TIMEOUT`.
        """
        return ()

    def session_store(self) -> SessionStore | None:
        """Return a store for sessions, or None if this application has none to offer."""
        return None

    def observe(self, span_factory: SpanFactory) -> Callable[[], None]:
        """Open a span around each operation of the extension, in any task or thread.

        Returns:
            A function that stops the tracing.
        """
        return lambda: None

    def explain(self, error: BaseException) -> str:
        """Return one more sentence for an error that was not handled, or an empty text.

        It runs in a worker thread and may block for a moment. The sentence follows the error in the
        traceback and, in development, in the response.
        """
        return ""

    def pending(self) -> Sequence[Pending]:
        """Return the steps that are missing before the project can serve, such as migrations.

        It may block; it is called after the boot, never on the thread of an event loop.
        """
        return ()

    def apply(self) -> Sequence[str] | None:
        """Perform the steps of `pending` that need no decision by the user.

        It may block, as `pending`.

        Returns:
            A line for each performed step; None if the project has no steps at all, not even
            steps that were applied earlier.
        """
        return None

    def prepare_tests(self) -> None:
        """Prepare for tests if no extension has steps to apply, for example by creating tables.

        It may block; it is called once per test run, after the boot.
        """


def find_session_store(app: Application) -> SessionStore | None:
    """Return the session store of the first extension that offers one."""
    return session_store_of(app.extensions)


def session_store_of(extensions: Sequence[Any]) -> SessionStore | None:
    """Return the store of the first extension that offers one, before the application's boot."""
    for extension in extensions:
        offer: Callable[[], SessionStore | None] | None = getattr(extension, "session_store", None)
        if offer is not None and (store := offer()) is not None:
            return store
    return None


def observe(app: Application, span_factory: SpanFactory) -> Callable[[], None]:
    """Call `observe` of every extension; return a function that stops all of them."""
    stops: list[Callable[[], None]] = [
        extension.observe(span_factory)
        for extension in app.extensions
        if hasattr(extension, "observe")
    ]

    def stop() -> None:
        for one in stops:
            one()

    return stop


@dataclass(frozen=True, slots=True)
class _Unready:
    topic: str
    name: str
    text: str
    ok: bool = False
    advice: str = ""


async def readiness(app: Application, *, timeout: float = READY_TIMEOUT) -> list[Check]:
    """Run the readiness checks of all extensions concurrently.

    An extension that fails or takes longer is not ready. Its exception is reported by type only: a
    message may quote an address.
    """
    asked = [extension for extension in app.extensions if hasattr(extension, "ready")]
    answers = await asyncio.gather(*(_ask(extension, timeout) for extension in asked))
    return [check for answer in answers for check in answer]


async def _ask(extension: Any, timeout: float) -> Sequence[Check]:
    name = type(extension).__name__
    try:
        async with asyncio.timeout(timeout):
            return await extension.ready()
    except TimeoutError:
        return [_Unready("extension", name, f"does not answer within {timeout:g} s")]
    except Exception as error:
        return [_Unready("extension", name, f"cannot say: it raised {type(error).__name__}")]


async def release(app: Application) -> None:
    """Shut the installed extensions down after `setup`, for a tool that serves nothing."""
    for extension in reversed(app.installed):
        if hasattr(extension, "shutdown"):
            await run_anywhere(app.threads, extension.shutdown)


def pending(app: Application) -> list[Pending]:
    """Return the steps that are missing before an application can serve; it may block.

    The models must be loaded: by a boot, or by `load_models`.
    """
    return [
        one
        for extension in app.extensions
        if hasattr(extension, "pending")
        for one in extension.pending()
    ]


def apply(app: Application) -> list[str] | None:
    """Call `apply` of the extensions of a booted application; it may block.

    Returns:
        A line for each step; None if no extension has anything to apply.
    """
    outcomes: list[Sequence[str] | None] = [
        extension.apply() for extension in app.extensions if hasattr(extension, "apply")
    ]
    if all(lines is None for lines in outcomes):
        return None
    return [line for lines in outcomes for line in lines or ()]


async def explain(app: Application, error: BaseException) -> str:
    """Add the explanations of all extensions to an error, as notes below its message.

    Returns:
        The sentences, joined; empty if no extension explains the error.
    """
    said: list[str] = []
    for extension in app.extensions:
        if not hasattr(extension, "explain"):
            continue
        try:
            sentence: str = await app.in_thread(extension.explain, error)
        except Exception as failure:
            name = type(extension).__name__
            get_logger().warning("extension %s failed to explain an error", name, exc_info=failure)
            continue
        if sentence and sentence not in getattr(error, "__notes__", ()):
            error.add_note(sentence)
        if sentence:
            said.append(sentence)
    return " ".join(said)


def prepare_tests(app: Application) -> None:
    """Apply the pending steps for the tests of a booted application.

    If no extension has steps to apply, call `prepare_tests` of the extensions instead.
    """
    if apply(app) is None:
        for extension in app.extensions:
            if hasattr(extension, "prepare_tests"):
                extension.prepare_tests()
