"""`RoutePlan`: everything between a matched path and a response, composed once at boot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from treefold_http._wire.limits import DEFAULT_LIMITS, Limits
from treefold_router import Route


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoutePlan:
    """The plan of one route.

    Attributes:
        route: the route of the table; None for the plans of 404, 405 and probes.
        run: returns the handler's return value or a response; for a socket, runs it to its end.
        status: the status of a plain return value; None keeps the default of its type.
        plain_status: the status of a plain value that has a body; 0 where `status` allows none.
        max_body: the most bytes of a request body.
        form_limits: the limits of a form.
        masked: path segments whose parameter name is sensitive, counted from the end.
        log_payload: True if the payload is logged.
        is_layered: True if middleware of the project runs around the handler; it may add background
            tasks, which are not the handler's.
        is_quiet: True for probes, which are logged at level DEBUG.
    """

    route: Route | None
    run: Callable[[Any], Any]
    status: int | None = None
    plain_status: int = 200
    max_body: int
    form_limits: Limits = DEFAULT_LIMITS
    masked: tuple[int, ...] = ()
    log_payload: bool = True
    is_layered: bool = False
    is_quiet: bool = False

    def find_masked_segments(self, raw_path: bytes) -> tuple[int, ...]:
        """Return the indexes, among the non-empty path segments, to mask in logs.

        Counted from the end, because an unversioned request has no version segment: for a route
        `/v1/resets/{token}` `masked` is `(-1,)`, and the result is `(2,)` for `/v1/resets/abc` and
        `(1,)` for `/resets/abc`.
        """
        if not self.masked:
            return ()
        count = sum(map(bool, raw_path.split(b"/")))
        return tuple(count + index for index in self.masked)
