"""Which cache an alias is: of the setting `caches`, of `configure_cache`, or memory by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit, urlunsplit

from treefold_http._runtime.boot_report import SettingsError
from treefold_http._runtime.current_application import current_application
from treefold_http._runtime.name_space import find_settings
from treefold_http.cache._cache import Cache
from treefold_http.cache._memory import MAX_BYTES, MemoryBackend
from treefold_http.cache._redis import RedisBackend

if TYPE_CHECKING:
    from treefold_http.cache._cache import Backend

DEFAULT = "default"

_caches: dict[str, Cache] = {}
_addresses: dict[str, str] = {}


def get_cache(alias: str = DEFAULT) -> Cache:
    """Return the cache of an alias, the same object each time; it may be called before the boot.

    Raises:
        SettingsError: at its first use, if the alias is not configured; `default` always is.
    """
    found = _caches.get(alias)
    if found is None:
        found = _caches[alias] = Cache(alias, _open)
    return found


def configure_cache(alias: str, address: str) -> None:
    """Set the address of an alias; a second call replaces the first.

    Args:
        address: `memory://`, `memory://?max_bytes=1000000`, or the URL of a Redis server; there,
            `?shared=true` keeps values for all applications of the environment that say so.

    Raises:
        SettingsError: for an address that is none of these.
    """
    _check(alias, address)
    if _addresses.get(alias) != address:
        _addresses[alias] = address
        get_cache(alias).reopen()


def configure_caches(addresses: Mapping[str, str]) -> None:
    """Set the addresses of the settings; called at boot.

    Raises:
        SettingsError: as `configure_cache`.
    """
    for alias, address in addresses.items():
        configure_cache(alias, address)


def clear_memory() -> None:
    """Empty the caches in memory: the application that filled them has ended."""
    for cache in _caches.values():
        cache.clear_memory()


def aliases_in_memory() -> list[str]:
    """Return the aliases in use whose values are not shared with other processes."""
    return [alias for alias in _caches if _addresses.get(alias, "memory:").startswith("memory:")]


def _open(alias: str) -> Backend:
    address = _addresses.get(alias) or _address_in_settings(alias)
    if address is None and alias != DEFAULT:
        known = ", ".join(sorted({DEFAULT, *_addresses}))
        raise SettingsError(
            f"Cache {alias!r} is not configured; add it to the setting caches, whose aliases are"
            f" {known}"
        )
    if address is None:
        return MemoryBackend()
    if address.startswith("memory:"):
        return MemoryBackend(_max_bytes(alias, address))
    url, shared = _split_shared(alias, address)
    return RedisBackend(url, alias, shared=shared)


def _address_in_settings(alias: str) -> str | None:
    """Return the address for code that runs without a boot: of a job, or of a script."""
    app = current_application()
    settings = find_settings() if app is None else app.settings
    if settings is None or alias not in settings.caches:
        return None
    _check(alias, settings.caches[alias])
    return settings.caches[alias]


def _check(alias: str, address: str) -> None:
    if address.startswith("memory:"):
        _max_bytes(alias, address)
    elif address.startswith(("redis://", "rediss://", "unix://")):
        _split_shared(alias, address)
    else:
        raise SettingsError(
            f"The address of cache {alias!r} must begin with memory:, redis://, rediss://"
            " or unix://; correct the setting caches"
        )


def _split_shared(alias: str, address: str) -> tuple[str, bool]:
    """Return the URL of a server without our option `shared`, and that option."""
    parts = urlsplit(address)
    options = parse_qsl(parts.query, keep_blank_values=True)
    given = [value for name, value in options if name == "shared"]
    if any(value not in ("true", "false") for value in given):
        raise SettingsError(
            f"Option shared of cache {alias!r} must be true or false, got {given[0]!r}; correct the"
            " setting caches"
        )
    if not given:
        return address, False
    rest = urlencode([option for option in options if option[0] != "shared"])
    return urlunsplit(parts._replace(query=rest)), given[-1] == "true"


def _max_bytes(alias: str, address: str) -> int:
    options = parse_qs(urlsplit(address).query, keep_blank_values=True)
    given = options.pop("max_bytes", [str(MAX_BYTES)])
    if options or len(given) != 1 or not given[0].isdecimal() or int(given[0]) < 1024:
        raise SettingsError(
            f"Cache {alias!r} in memory must have no option but max_bytes, from 1024 up,"
            f" got {address!r}"
        )
    return int(given[0])
