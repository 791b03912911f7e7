"""Several processes: state that each of them keeps for itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from treefold_http._deploy.deployment import Deployment
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._modules.modules import ModuleSpace
from treefold_http._websockets.rooms import Rooms
from treefold_http.cache._aliases import get_cache
from treefold_http.cache._cached import Cached
from treefold_http.middleware._rate_limit import RateLimit
from treefold_http.middleware._sessions import Sessions

KINDS = make_kinds(
    """
    severe workers-sessions: each process has sessions of its own;
      an attacker stays logged in with a stolen cookie: a logout ends the session in one process
      only
    warning workers-limits: each process counts by itself;
      an attacker tries as often in each process as the limit allows once
    warning workers-cache: each process has a cache of its own;
      an attacker reads what was invalidated in one process and is kept in the others
    warning workers-rooms: rooms reach the sockets of one process;
      an attacker is removed from a room in one process, and stays in it in another
    """
)
SESSIONS, LIMITS, CACHE, ROOMS = KINDS


def check_per_process_state(deployment: Deployment) -> Iterator[Finding]:
    """Find state in memory beside several processes."""
    count = deployment.settings.serve.workers
    if count < 2:
        return
    beside = f"beside {count} processes"
    for entry in deployment.middleware_entries:
        file = deployment.find_middleware_file(entry)
        if isinstance(entry, Sessions) and entry.is_in_memory:
            text = f"Sessions keeps its sessions in memory, {beside}"
            yield SESSIONS.make_finding(file, text, "Sessions(store='database')  # or 'redis'")
        elif isinstance(entry, RateLimit) and entry.is_in_memory:
            text = f"RateLimit counts in memory, {beside}"
            yield LIMITS.make_finding(file, text, "RateLimit(..., redis=True)")
    yield from _check_in_memory_caches(deployment, beside)
    space = ModuleSpace.get_or_create_space(deployment.root)
    for name, module in space.find_loaded_modules().items():
        for each in vars(module).values():
            if isinstance(each, Rooms) and each.is_in_memory:
                file = f"{name.replace('.', '/')}.py"
                text = f"Rooms() is in memory, {beside}"
                yield ROOMS.make_finding(file, text, "Rooms(redis=True)")
                return


def _check_in_memory_caches(deployment: Deployment, process_count_text: str) -> Iterator[Finding]:
    caches = deployment.settings.caches
    used = {"default"} if _uses_cache(deployment) else set[str]()
    for alias in sorted({*caches, *used}):
        if _is_in_memory(caches, alias):
            text = f"cache {alias!r} is in memory, {process_count_text}"
            write = f'[caches]\n{alias} = "redis://..."'
            file = deployment.sources.find_setting_file("caches", alias)
            yield CACHE.make_finding(file, text, write)


def _is_in_memory(caches: Mapping[str, str], alias: str) -> bool:
    return caches.get(alias, "memory:").startswith("memory:")


def _uses_cache(deployment: Deployment) -> bool:
    return any(isinstance(each, Cached) for each in deployment.middleware_entries) or any(
        served.code_references.includes_any(get_cache) for served in deployment.loaded_routes
    )
