"""Usage: which callers use which routes and query names, counted in bounded memory.

    request                                    caller
    with a principal that a credential found   bearer:7
    without one                                python-httpx/0.28.1 192.0.2.0/24

Counts are those of the current hour, and written as a line of the log after it. `Metrics` takes
what was counted since it asked last. A route is counted when its answer is made, or its socket is
closed; one that no route serves is not.

Bounds: `MAX_CALLERS` names and `MAX_ENTRIES` pairs of route and caller in an hour, the others are
counted as `other`. Callers without a principal, who can take any name, have half of the names.
Query names are those that a route declares: others are texts of clients, and never kept.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from treefold_http._wire.addresses import parse_address, read_client_host
from treefold_http._wire.errors import HTTPError
from treefold_logging import get_logger, scrub

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.principal import Principal
    from treefold_router import Route

OTHER = "other"
MAX_CALLERS = 1_000
MAX_ENTRIES = 10_000
_MAX_KNOWN = 1_024
"""Keys of callers whose names are kept, so that they are not written again for each request."""
_MAX_KEY = 256
"""Bytes of a `User-Agent` up to which its name is kept."""
_MAX_NAME = 64
_MAX_PRODUCT = 40
_SHOWN_CALLERS = 20
_LINE = 8_000
"""Characters of a line, which the limit of a log record must not cut."""
_HOUR = 3_600
_BRIEFLY = 10

Counts: TypeAlias = dict[str, int]
Endpoint: TypeAlias = Callable[[Any], Awaitable[Any]]
Report: TypeAlias = "Callable[[Route, Counts, Counts], None]"
"""Takes a route, and how often each caller and each query name came since the last report."""


class RouteUsage:
    """The counts of one route in the current hour.

    Attributes:
        callers: requests by the name of the caller.
        query: requests by a query name that the route declares and the request has.
    """

    __slots__ = ("_names", "_reported", "_usage", "callers", "query", "route")

    def __init__(self, usage: Usage, route: Route, names: Collection[str]) -> None:
        self.route = route
        self.callers: Counts = {}
        self.query: Counts = {}
        self._usage = usage
        self._names = tuple(names)
        self._reported: tuple[Counts, Counts] = ({}, {})

    def wrap_endpoint(self, endpoint: Endpoint, /) -> Endpoint:
        """Return the chain of a route that counts its requests, whatever becomes of them."""
        count = self.count

        async def run_counted(connection: Any) -> Any:
            try:
                return await endpoint(connection)
            finally:
                # at the end, when a credential has found the caller
                count(connection)

        return run_counted

    wrap_socket = wrap_endpoint

    def count(self, connection: Connection) -> None:
        """Count a request."""
        usage, scope = self._usage, connection.scope
        principal = connection.principal if hasattr(connection, "verified") else None
        key: Any
        if principal is None:
            client = scope.get("client")
            key = (connection.fields.get(b"user-agent"), client[0] if client else None)
        else:
            key = (principal.source, principal.id)
        caller = usage.known.get(key)
        if caller is None:
            caller = usage.name_caller(key, principal, connection)
        try:
            self.callers[caller] += 1
        except KeyError:
            self._add_caller(caller)
        if self._names and scope["query_string"]:
            self._count_query(connection)
        if time.time() >= usage.due:
            usage.tick()

    def _add_caller(self, caller: str) -> None:
        if self._usage.entries >= MAX_ENTRIES:
            caller = OTHER
        else:
            self._usage.entries += 1
        self.callers[caller] = self.callers.get(caller, 0) + 1

    def _count_query(self, connection: Connection) -> None:
        with suppress(HTTPError):  # a query that cannot be read is an error of the request
            sent = connection.query
            for name in self._names:
                if name in sent:
                    self.query[name] = self.query.get(name, 0) + 1

    def take_new_counts(self) -> tuple[Counts, Counts]:
        """Return what was counted since the last call, of callers and of query names."""
        callers, query = (
            {name: n for name, total in now.items() if (n := total - before.get(name, 0))}
            for now, before in zip((self.callers, self.query), self._reported, strict=True)
        )
        self._reported = (dict(self.callers), dict(self.query))
        return callers, query

    def take_over(self, former: RouteUsage) -> None:
        """Go on with the counts of a plan that was replaced."""
        self.callers, self.query = former.callers, former.query
        self._reported = former._reported

    def clear(self) -> None:
        """Forget the counts, at the end of an hour."""
        self.callers.clear()
        self.query.clear()
        self._reported = ({}, {})


class Usage:
    """The usage of an application.

    Attributes:
        due: the time of the next line or report, in seconds since the epoch.
        known: names of callers by what they are recognized by.
        entries: pairs of route and caller in this hour.
        report: takes new counts every few seconds; None for nothing.
    """

    def __init__(self) -> None:
        self.known: dict[object, str] = {}
        self.entries = 0
        self.report: Report | None = None
        self._routes: dict[tuple[str, str], RouteUsage] = {}
        self._names: set[str] = set()
        self._anonymous = 0
        self._began = time.time()
        self._next_hour = _find_next_hour(self._began)
        self.due = self._next_hour

    def get_route(self, route: Route, query_names: Collection[str]) -> RouteUsage:
        """Return the counts of a route; a reload goes on with those of before.

        Args:
            query_names: the names that it declares.
        """
        key = (route.method, route.template)
        former, found = self._routes.get(key), RouteUsage(self, route, query_names)
        if former is not None:
            found.take_over(former)
        self._routes[key] = found
        return found

    def name_caller(self, key: object, principal: Principal | None, connection: Connection) -> str:
        """Return the name of a caller that is not known."""
        name = _describe_principal(principal) if principal else _describe_client(connection)
        if name not in self._names:
            is_full = len(self._names) >= MAX_CALLERS
            if principal is None:
                is_full = is_full or self._anonymous >= MAX_CALLERS // 2
            if is_full:
                name = OTHER
            else:
                self._names.add(name)
                self._anonymous += principal is None
        if len(connection.fields.get(b"user-agent", b"")) <= _MAX_KEY:
            if len(self.known) >= _MAX_KNOWN:
                self.known.clear()
            self.known[key] = name
        return name

    def watch(self, report: Report) -> None:
        """Report new counts every few seconds, as far as requests come."""
        self.report = report
        self.due = min(self.due, time.time() + _BRIEFLY)

    def tick(self) -> None:
        """Report new counts, and write the line of an hour that is over."""
        now = time.time()
        self.send_report()
        if now >= self._next_hour:
            self.write_line(now)
            self._next_hour = _find_next_hour(now)
        self.due = min(self._next_hour, now + _BRIEFLY) if self.report else self._next_hour

    def send_report(self) -> None:
        """Report what was counted since the last report."""
        if self.report is not None:
            for route in self._routes.values():
                callers, query = route.take_new_counts()
                if callers or query:
                    self.report(route.route, callers, query)

    def write_line(self, now: float | None = None) -> None:
        """Write what was counted in this hour as a line of the log, and begin with nothing.

        A line that would be too long is several, each with other routes.
        """
        until = time.time() if now is None else now
        head = {"from": _format_time(self._began), "to": _format_time(until)}
        for routes in _group_by_length(self._iter_records()):
            line = json.dumps(head | {"routes": routes}, separators=(",", ":"), ensure_ascii=True)
            get_logger().info("usage %s", line)
        for route in self._routes.values():
            route.clear()
        self.known.clear()
        self._names.clear()
        self.entries = self._anonymous = 0
        self._began = until

    def _iter_records(self) -> Iterator[list[Any]]:
        """Yield, for each route that was called: title, requests, callers, query names."""
        for (method, template), route in self._routes.items():
            if route.callers:
                count, callers = sum(route.callers.values()), _select_frequent(route.callers)
                query = [list(pair) for pair in sorted(route.query.items())]
                yield [f"{method} {template}", count, callers, query]


def _select_frequent(callers: Mapping[str, int]) -> list[list[Any]]:
    """Return the callers that came most often, and the sum of the others."""
    pairs = sorted(callers.items(), key=lambda pair: (pair[0] == OTHER, -pair[1], pair[0]))
    named = [pair for pair in pairs if pair[0] != OTHER][:_SHOWN_CALLERS]
    rest = sum(callers.values()) - sum(count for _, count in named)
    return [list(pair) for pair in named] + ([[OTHER, rest]] if rest else [])


def _group_by_length(records: Iterator[list[Any]]) -> Iterator[list[Any]]:
    group: list[Any] = []
    length = 0
    for record in records:
        size = len(json.dumps(record))
        if group and length + size > _LINE:
            yield group
            group, length = [], 0
        group.append(record)
        length += size
    if group:
        yield group


def _describe_principal(principal: Principal) -> str:
    return _shorten_name(f"{principal.source}:{principal.id}", _MAX_NAME)


def _describe_client(connection: Connection) -> str:
    sent = connection.fields.get(b"user-agent", b"")[:_MAX_KEY].decode("latin-1")
    product = _shorten_name(sent.partition(" ")[0], _MAX_PRODUCT) or "-"
    host = read_client_host(connection.scope)
    address = parse_address(host)
    if address is None:
        return f"{product} {_shorten_name(host, _MAX_PRODUCT)}"
    kept = 24 if address.version == 4 else 48
    number = int(address) >> address.max_prefixlen - kept << address.max_prefixlen - kept
    return f"{product} {type(address)(number)}/{kept}"


def _shorten_name(text: str, limit: int) -> str:
    shown = scrub(text[: 4 * limit]).encode("ascii", "backslashreplace").decode()
    return "".join(char if char.isprintable() else "?" for char in shown)[:limit]


def _find_next_hour(now: float) -> float:
    return (now // _HOUR + 1) * _HOUR


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
