"""Which cache an alias is: of the setting `caches`, of `configure_cache`, or memory by default.

Addresses and what is kept there belong to an application: two of them in one process, one beside
the other in tests or one mounted in the other, share neither values nor answers. An address that is
set outside of any application is for all of them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit
from weakref import WeakKeyDictionary

from treefold_http._runtime.boot_report import SettingsError
from treefold_http._runtime.current_application import current_application, entered
from treefold_http._runtime.name_space import load_project_settings
from treefold_http.cache._cache import Cache, CacheState
from treefold_http.cache._memory import MAX_BYTES, MemoryBackend
from treefold_http.cache._redis import RedisBackend

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime
    from treefold_http.cache._cache import Backend

DEFAULT = "default"


class _ApplicationCaches:
    """The caches of one application: their addresses, and what was opened there."""

    __slots__ = ("addresses", "states")

    def __init__(self) -> None:
        self.addresses: dict[str, str] = {}
        self.states: dict[str, CacheState] = {}


_caches: dict[str, Cache] = {}
_common = _ApplicationCaches()
"""Of scripts, which have no application; its addresses serve applications too."""
_by_application: WeakKeyDictionary[Runtime, _ApplicationCaches] = WeakKeyDictionary()
_opening = threading.Lock()


def get_cache(alias: str = DEFAULT) -> Cache:
    """Return the cache of an alias, the same object each time; it may be called before the boot.

    Raises:
        SettingsError: at its first use, if the alias is not configured; `default` always is.
    """
    if (found := _caches.get(alias)) is None:
        found = _caches[alias] = Cache(alias, _get_or_open_app_cache)
    return found


def configure_cache(alias: str, address: str) -> None:
    """Set the address of an alias; a second call replaces the first.

    In a hook or a handler it is set for that application, elsewhere for all of the process.

    Args:
        address: `memory://`, `memory://?max_bytes=1000000`, or the URL of a Redis server; there,
            `?shared=true` keeps values for all applications of the environment that say so.

    Raises:
        SettingsError: for an address that is none of these.
    """
    _check_address(alias, address)
    caches = _get_or_create_app_caches(entered.get())
    # a call outside of an application also replaces what applications have set before: the last
    # one counts; a cache whose address stays the same keeps its values
    for each in (caches, *(_by_application.values() if caches is _common else ())):
        if _find_address(each, alias) != address:
            each.states.pop(alias, None)
        each.addresses.pop(alias, None)
    caches.addresses[alias] = address


def configure_caches(addresses: Mapping[str, str]) -> None:
    """Set the addresses of the settings; called at boot, as code of the application.

    Raises:
        SettingsError: as `configure_cache`.
    """
    for alias, address in addresses.items():
        configure_cache(alias, address)


def clear_memory() -> None:
    """Empty the caches in memory of the application that ends."""
    for state in _get_or_create_app_caches(current_application()).states.values():
        state.clear_memory()


def list_memory_aliases() -> list[str]:
    """Return the aliases in use whose values are not shared with other processes."""
    caches = _get_or_create_app_caches(current_application())
    return [a for a in _caches if (_find_address(caches, a) or "memory:").startswith("memory:")]


def forget_caches() -> None:
    """Forget every cache and every address, for tests of this package."""
    _caches.clear()
    _by_application.clear()
    _common.addresses.clear()
    _common.states.clear()


def _get_or_create_app_caches(app: Runtime | None) -> _ApplicationCaches:
    if app is None:
        return _common
    found = _by_application.get(app)
    return _by_application.setdefault(app, _ApplicationCaches()) if found is None else found


def _find_address(caches: _ApplicationCaches, alias: str) -> str | None:
    return caches.addresses.get(alias) or _common.addresses.get(alias)


def _get_or_open_app_cache(alias: str, app: Runtime | None) -> CacheState:
    caches = _get_or_create_app_caches(app)
    if (found := caches.states.get(alias)) is None:
        with _opening:  # two threads must not open two
            if (found := caches.states.get(alias)) is None:
                found = caches.states[alias] = CacheState(_open_backend(caches, alias, app))
    return found


def _open_backend(caches: _ApplicationCaches, alias: str, app: Runtime | None) -> Backend:
    address = _find_address(caches, alias) or _read_address_from_settings(alias, app)
    if address is None and alias != DEFAULT:
        known = ", ".join(sorted({DEFAULT, *caches.addresses, *_common.addresses}))
        raise SettingsError(
            f"Cache {alias!r} is not configured; add it to the setting caches, whose aliases are"
            f" {known}"
        )
    if address is None:
        return MemoryBackend()
    if address.startswith("memory:"):
        return MemoryBackend(_parse_max_bytes(alias, address))
    url, shared = _split_shared_option(alias, address)
    return RedisBackend(url, alias, app, shared=shared)


def _read_address_from_settings(alias: str, app: Runtime | None) -> str | None:
    """Return the address for code that runs without a boot: of a job, or of a script."""
    settings = load_project_settings() if app is None else app.settings
    if settings is None or alias not in settings.caches:
        return None
    _check_address(alias, settings.caches[alias])
    return settings.caches[alias]


def _check_address(alias: str, address: str) -> None:
    if address.startswith("memory:"):
        _parse_max_bytes(alias, address)
    elif address.startswith(("redis://", "rediss://", "unix://")):
        _split_shared_option(alias, address)
    else:
        raise SettingsError(
            f"The address of cache {alias!r} must begin with memory:, redis://, rediss://"
            " or unix://; correct the setting caches"
        )


def _split_shared_option(alias: str, address: str) -> tuple[str, bool]:
    """Return the URL of a server without our option `shared`, and that option."""
    options = parse_qsl(urlsplit(address).query, keep_blank_values=True)
    given = [value for name, value in options if name == "shared"]
    if any(value not in ("true", "false") for value in given):
        raise SettingsError(
            f"Option shared of cache {alias!r} must be true or false, got {given[0]!r}; correct the"
            " setting caches"
        )
    if not given:
        return address, False
    # redis-py takes every option of a URL for an argument of its connection and refuses this one
    rest = urlencode([option for option in options if option[0] != "shared"])
    base = address.partition("?")[0]  # urlunsplit() takes the slashes of unix:// away
    return f"{base}?{rest}" if rest else base, given[-1] == "true"


def _parse_max_bytes(alias: str, address: str) -> int:
    options = parse_qs(urlsplit(address).query, keep_blank_values=True)
    given = options.pop("max_bytes", [str(MAX_BYTES)])
    if options or len(given) != 1 or not given[0].isdecimal() or int(given[0]) < 1024:
        raise SettingsError(
            f"Cache {alias!r} in memory must have no option but max_bytes, from 1024 up,"
            f" got {address!r}"
        )
    return int(given[0])
