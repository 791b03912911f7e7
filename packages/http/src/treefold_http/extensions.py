"""The contract between an application and what extends it.

An extension is an object of a project's `extensions.py`, or one that an installed distribution
declares under the entry-point group `treefold.extensions`. This module lists what an extension may
offer, and asks all extensions of an application at once. It knows no database and no extension by
name; how installed ones are found is in `_installed`.
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
"""What a client is told of an exception: status, detail, and entries of a validation failure."""

READY_TIMEOUT = 2.0
"""Seconds that the extensions together may take to say whether they are ready."""


class Check(Protocol):
    """One answer to `ready()`: any object with these attributes."""

    @property
    def topic(self) -> str:
        """What kind of thing was asked, such as `database`."""
        ...

    @property
    def name(self) -> str:
        """Which one was asked, such as an alias; never an address."""
        ...

    @property
    def ok(self) -> bool:
        """True if it can serve now."""
        ...

    @property
    def text(self) -> str:
        """What was found, without a user name, a password or a stored value."""
        ...

    @property
    def advice(self) -> str:
        """What to do; empty if there is nothing to do."""
        ...


class Pending(Protocol):
    """One answer to `pending()`: any object with these attributes."""

    @property
    def text(self) -> str:
        """What is missing, such as `not applied: 0002_add_pages`."""
        ...

    @property
    def advice(self) -> str:
        """The command that provides it, such as `treefold migrate`."""
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

        A session that was deleted must not come back with a save that began before.
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
    """All that an extension may offer; each member is optional.

    An object of any class will do, and has the members it needs. A class that derives from this
    one has them all, each doing nothing. `setup`, `startup` and `shutdown` are called in the order
    of the extensions: installed ones first, the one named `databases` before the others.
    """

    refusals: Mapping[type[Exception], Callable[[Any], Refusal]] = {}
    """Exceptions that a client is told about, and how. Read once, after `setup`; a handler that
    the project declares for the same type wins."""

    def setup(self, app: Application) -> None:
        """Prepare for an application; called once, before any module of the project is imported.

        An installed extension relies on `app.root` and `app.settings` only: `doctor` and tools
        set it up without a boot. An exception stops the boot and is reported.
        """

    async def startup(self) -> None:
        """Start; called when the server starts, before the startup hooks. It may be plain, and
        may take the application as its one argument. An exception stops the start."""

    async def shutdown(self) -> None:
        """End what `setup` and `startup` began; called also if the boot or the start failed.
        It may be plain. An exception is logged."""

    def watch(self) -> Callable[[], str]:
        """Begin to watch one request; called with `dev=True` only.

        Returns:
            Ends it, and returns a note for the summary of the request, or an empty text.
        """
        return lambda: ""

    def reload(self, modules: Collection[str]) -> Callable[[Collection[str]], None]:
        """Forget the modules of the project that are about to be imported again, by dotted name.

        Returns:
            Takes back the modules that it is given: these were not replaced.
        """
        return lambda _: None

    async def ready(self) -> Sequence[Check]:
        """Ask what the extension needs whether it can serve; for readiness and `doctor`.

        It is called with and without a running application, and cancelled after `READY_TIMEOUT`.
        """
        return ()

    def session_store(self) -> SessionStore | None:
        """Return a store for sessions, or None if this application has none to offer."""
        return None

    def observe(self, span_factory: SpanFactory) -> Callable[[], None]:
        """Open a span around each of its operations, on whatever task or thread they run.

        Returns:
            Stops it.
        """
        return lambda: None

    def explain(self, error: BaseException) -> str:
        """Return one more sentence for an error that was not handled, or an empty text.

        It runs in a worker thread and may block for a moment. The sentence follows the error in the
        traceback and, in development, in the answer.
        """
        return ""

    def pending(self) -> Sequence[Pending]:
        """Return what is missing before the project can serve, such as migrations.

        It may block; it is called after the boot, never on the thread of an event loop.
        """
        return ()

    def apply(self) -> Sequence[str] | None:
        """Provide what `pending` calls missing, as far as that needs no decision.

        It may block, as `pending`.

        Returns:
            A line for each step that was taken; None if the project has nothing to apply, not
            even what was applied before.
        """
        return None

    def prepare_tests(self) -> None:
        """Provide what tests need if no extension had anything to apply, such as tables.

        It may block; it is called once per test run, after the boot.
        """


def find_session_store(app: Application) -> SessionStore | None:
    """Return the session store of the first extension that offers one."""
    return session_store_of(app.extensions)


def session_store_of(extensions: Sequence[Any]) -> SessionStore | None:
    """As `find_session_store`, of extensions whose application is not booted yet."""
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
    """Ask all extensions at the same time whether they are ready.

    An extension that fails or takes longer is one that is not ready. Its exception is named by
    type only: a message may quote an address.
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
    """End what `setup` of the installed extensions began, for a tool that serves nothing."""
    for extension in reversed(app.installed):
        if hasattr(extension, "shutdown"):
            await run_anywhere(app.threads, extension.shutdown)


def pending(app: Application) -> list[Pending]:
    """Return what is missing before an application can serve; it may block.

    Its models are loaded: by a boot, or by `load_models`.
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
    """Add to an error what the extensions know of it, as notes below its message.

    Returns:
        The sentences, joined; empty if no extension knows more.
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
    """Provide what the tests of a booted application need: what is to apply, else the rest."""
    if apply(app) is None:
        for extension in app.extensions:
            if hasattr(extension, "prepare_tests"):
                extension.prepare_tests()
