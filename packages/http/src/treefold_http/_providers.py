"""Providers: values by type or by name, for the whole application or for one request.

`providers.py` and `app.provide` fill the registry; `_injection` asks it while it plans. A value of
the application is made when it is first asked for and cleaned up when the application stops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

Key: TypeAlias = type | str
ProviderScope: TypeAlias = Literal["app", "request"]


@dataclass(frozen=True, slots=True, eq=False)
class Provider:
    """How the values of a key are made.

    Attributes:
        factory: a function, class or generator as `Depends` takes them.
        scope: `app` for one value in the application's life, `request` for one in each request.
    """

    factory: Callable[..., Any]
    scope: ProviderScope = "request"


class Providers:
    """The registry of an application.

    Args:
        changed: called after every change, to plan the routes anew.

    Attributes:
        values: what has been made for the application.
        lifetime: the scope in which it is made, set by the application.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.lifetime: Any = None
        self._by_key: dict[Key, Provider] = {}
        self.values: dict[Provider, Any] = {}
        self._making: dict[Provider, asyncio.Future[Any]] = {}

    def add(self, key: Key, provider: Any) -> None:
        """Register what provides a type or a parameter name; a later one replaces an earlier.

        Raises:
            TypeError: for a key that is neither, or something that cannot be called.
        """
        made = provider if isinstance(provider, Provider) else Provider(provider)
        if not isinstance(cast("object", key), (type, str)):
            raise TypeError(f"Provider key {key!r} is neither a type nor a name; give one of these")
        if not callable(made.factory):
            raise TypeError(
                f"The provider of {key!r} is {type(made.factory).__qualname__!r} and cannot be"
                " called; give a function, a class or a generator"
            )
        self._by_key[key] = made
        self._changed()

    def find(self, annotation: Any, name: str) -> Provider | None:
        """Give the provider of a parameter: by its type, then by its name."""
        found = self._by_key.get(annotation) if isinstance(annotation, type) else None
        return found or self._by_key.get(name)

    async def value(self, provider: Provider, make: Callable[[Any], Awaitable[Any]]) -> Any:
        """Give the application's value of a provider; `make` runs once, whoever asks first."""
        if provider in self.values:
            return self.values[provider]
        making = self._making.get(provider)
        if making is None:
            making = self._making[provider] = asyncio.ensure_future(make(self.lifetime))
            making.add_done_callback(lambda done: self._keep(provider, done))
        return await asyncio.shield(making)

    async def close(self) -> None:
        """Clean up what was made for the application, last made first."""
        self.values.clear()
        await self.lifetime.close()

    def _keep(self, provider: Provider, done: asyncio.Future[Any]) -> None:
        del self._making[provider]
        if not done.cancelled() and done.exception() is None:
            self.values[provider] = done.result()
