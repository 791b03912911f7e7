"""Providers: values by type or by name, for the whole application or for one request.

`providers.py` and `app.provide` fill the registry; `_injection.resolver` reads it while it plans. A
value of the application is made at its first use and cleaned up when the application stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar

from treefold_http._wire.aliases import AnyCallable

T = TypeVar("T")
Key: TypeAlias = type | str
ProviderScope: TypeAlias = Literal["app", "request"]


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """The factory of a key's values, and their lifetime.

    Attributes:
        factory: a function, class or generator, as for `Depends`.
        scope: `app` for one value in the application's life, `request` for one in each request.
    """

    factory: AnyCallable
    scope: ProviderScope = "request"


class Providers:
    """The registry of an application.

    Args:
        changed: called after every change, to plan the routes again.

    Attributes:
        values: the existing values of the application.
        declared: the providers of `providers.py`; `app.provide` takes precedence.
        open_scope: returns the scope in which a value is made; set by the application.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.open_scope: Callable[[], Any] = object
        self.declared: dict[Key, Provider] = {}
        self._asked: set[Key] | None = None
        self._added: dict[Key, Provider] = {}
        self.values: dict[Provider, Any] = {}
        self._scopes: list[tuple[Provider, Any]] = []
        self._making: dict[Provider, asyncio.Future[Any]] = {}

    def add_provider(self, key: Key, provider: Any) -> None:
        """Register the provider of a type or a parameter name; a later one replaces an earlier.

        Raises:
            TypeError: for a key that is neither, or a factory that cannot be called.
        """
        self._added[key] = _make_checked_provider(key, provider)
        self._changed()

    def replace_declared_providers(self, providers: Mapping[Key, Any]) -> None:
        """Replace the declared providers by the current ones of `providers.py`.

        A provider whose factory and scope are unchanged stays the same object and keeps its value.

        Raises:
            TypeError: as `add_provider`; the declared providers are then unchanged.
        """
        former = self.declared
        made = {key: _make_checked_provider(key, provider) for key, provider in providers.items()}
        self.declared = {
            key: _reuse_unchanged_provider(former.get(key), provider)
            for key, provider in made.items()
        }

    def find_for_parameter(self, annotation: Any, name: str) -> Provider | None:
        """Return the provider of a parameter, by its type or else by its name."""
        if self._asked is not None:
            self._asked.update([annotation, name] if isinstance(annotation, type) else [name])
        found = self._find_provider(annotation) if isinstance(annotation, type) else None
        return found or self._find_provider(name)

    @contextmanager
    def record_lookups(
        self, user: T, into: MutableMapping[T, frozenset[Key]] | None
    ) -> Generator[None]:
        """Note the keys that are looked for in a block, found or not.

        Args:
            user: the key of the note.
            into: receives it; None to note nothing.
        """
        keys = self._asked = None if into is None else set[Key]()
        try:
            yield
        finally:
            self._asked = None
            if into is not None and keys is not None:
                into[user] = frozenset(keys)

    def _find_provider(self, key: Key) -> Provider | None:
        return self._added.get(key) or self.declared.get(key)

    async def get_or_make_app_value(
        self, provider: Provider, make: Callable[[Any], Awaitable[Any]]
    ) -> Any:
        """Return the application's value of a provider; concurrent callers share one `make`."""
        if provider in self.values:
            return self.values[provider]
        if (making := self._making.get(provider)) is None:
            scope = self.open_scope()
            making = self._making[provider] = asyncio.ensure_future(make(scope))
            making.add_done_callback(lambda done: self._store_value(provider, scope, done))
        # a request that is cancelled must not cancel the value that others wait for
        return await asyncio.shield(making)

    async def close(self, providers: Iterable[Provider] | None = None) -> None:
        """Clean up the values of the application, in reverse order of creation.

        Args:
            providers: only the values of these; None for all.

        Raises:
            BaseException: the first exception after a `yield`; all other cleanups still run.
        """
        chosen = {made for made, _ in self._scopes} if providers is None else set(providers)
        ending = [(made, scope) for made, scope in reversed(self._scopes) if made in chosen]
        self._scopes = [pair for pair in self._scopes if pair not in ending]
        failure: BaseException | None = None
        for provider, scope in ending:
            # first, so that no request takes a value while it is being closed
            self.values.pop(provider, None)
            try:
                await scope.close()
            except BaseException as error:  # the other cleanups still run
                failure = failure or error
        if failure is not None:
            raise failure

    def _store_value(self, provider: Provider, scope: Any, made_value: asyncio.Future[Any]) -> None:
        # also after a failure: the next request tries again
        del self._making[provider]
        self._scopes.append((provider, scope))  # also after a failure: generators may be entered
        if not made_value.cancelled() and made_value.exception() is None:
            self.values[provider] = made_value.result()


def _make_checked_provider(key: Any, provider: Any) -> Provider:
    made = provider if isinstance(provider, Provider) else Provider(provider)
    if not isinstance(key, (type, str)):
        raise TypeError(f"A provider key must be a type or a name, got {key!r}")
    if not callable(made.factory):
        raise TypeError(
            f"The provider of {key!r} must be a function, a class or a generator, got"
            f" {type(made.factory).__qualname__!r}"
        )
    return made


def _reuse_unchanged_provider(former: Provider | None, new: Provider) -> Provider:
    if former is not None and (former.factory, former.scope) == (new.factory, new.scope):
        return former
    return new
