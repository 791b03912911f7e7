"""`/livez` and `/readyz`, with the setting `health`: probes for an orchestrator.

They are outside of the versions and of the project's middleware: a probe comes from inside the
network, by address, many times a minute. A response tells only whether to send requests to this
process, and which part is not ready. Only a change of readiness is logged, not each probe.
"""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, cast

from treefold_http._extensions.calls import readiness
from treefold_http._plans.plans import Plan
from treefold_http._responses.response import Response
from treefold_http._runtime.current_application import list_running_applications
from treefold_http._serving.mounted_app import list_mounted_apps
from treefold_http._wire.errors import require_read_method
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._redis import SharedRedis
    from treefold_http._requests.request import Request
    from treefold_http._runtime.runtime import Runtime
    from treefold_http._serving.host import Host

LIVE, READY = b"/livez", b"/readyz"

LIMIT = 1.0
"""Seconds that the checks of all parts together may take."""
KEPT = 1.0
"""Seconds for which a result is reused."""


class Health:
    """Answers the probes of one application."""

    def __init__(self, app: Host) -> None:
        self._app = app
        self._asking: asyncio.Task[list[str]] | None = None
        self._failed: list[str] = []
        self._until = 0.0
        self.plans = {
            LIVE: Plan(route=None, run=self._answer_livez, max_body=0, is_quiet=True),
            READY: Plan(route=None, run=self._answer_readyz, max_body=0, is_quiet=True),
        }

    async def _answer_livez(self, request: Request) -> Response:
        require_read_method(request.method, "A probe supports GET and HEAD only")
        return _build_probe_response({"status": "alive"})

    async def _answer_readyz(self, request: Request) -> Response:
        require_read_method(request.method, "A probe supports GET and HEAD only")
        if self._app.stopping.is_set():
            return _build_probe_response({"status": "stopping"}, 503)
        if failed := await self._get_or_check_failed_parts():
            return _build_probe_response({"status": "unavailable", "failed": failed}, 503)
        return _build_probe_response({"status": "ready"})

    async def _get_or_check_failed_parts(self) -> list[str]:
        if self._asking is None or self._asking.get_loop() is not asyncio.get_running_loop():
            if monotonic() < self._until:
                return self._failed
            self._asking = asyncio.ensure_future(self._recheck_and_keep_failed_parts())
        # a probe that gives up must not cancel the check that others wait for
        return await asyncio.shield(self._asking)

    async def _recheck_and_keep_failed_parts(self) -> list[str]:
        try:
            failed = await _collect_failed_parts(self._app)
        finally:
            self._asking = None
        if failed != self._failed:
            if failed:
                get_logger().warning("not ready: %s", ", ".join(failed))
            else:
                get_logger().info("ready again")
        self._failed, self._until = failed, monotonic() + KEPT
        return failed


async def _collect_failed_parts(app: Host) -> list[str]:
    """Return the names of the parts that are not ready, such as `database default`."""
    found = await asyncio.gather(*map(_check_and_list_failed_parts, _list_app_and_mounted(app)))
    return list(dict.fromkeys(name for failed in found for name in failed))


def _list_app_and_mounted(app: Host) -> list[Runtime]:
    """Return an application and those of this framework that it serves below a prefix."""
    found: list[Runtime] = [app]
    for outer in found:  # which grows
        mounted = [target.app for target in list_mounted_apps(cast("Host", outer))]
        found += [inner for inner in list_running_applications() if inner in mounted]
    return found


async def _check_and_list_failed_parts(app: Runtime) -> list[str]:
    from treefold_http._redis import list_used_redis_clients

    answers = asyncio.gather(
        *map(_responds_to_ping, list_used_redis_clients(app))
    )  # concurrent with the other checks
    checks = await readiness(app, timeout=LIMIT)
    failed = [f"{check.topic} {check.name}" for check in checks if not check.ok]
    return failed if all(await answers) else [*failed, "redis"]


async def _responds_to_ping(client: SharedRedis) -> bool:
    from treefold_http._redis import RedisUnavailable

    try:
        await client.ping_server()
    except RedisUnavailable:
        return False
    return True


def _build_probe_response(document: dict[str, object], status: int = 200) -> Response:
    return Response.json(document, status, headers={"Cache-Control": "no-store"})
