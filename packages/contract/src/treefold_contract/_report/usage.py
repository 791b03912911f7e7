"""Usage: what callers sent, read from the log of a service with the setting `usage`.

    [INFO] usage {"from":"2026-11-29T17:00:00Z","to":"2026-11-29T18:00:00Z","routes":[
        ["GET /v1/user",120,[["bearer:7",100],["other",20]],[["page",3]]]]}

One line each hour and process, as text or as JSON. A change breaks no client at a place that no
caller reached: its finding is a note then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast

from treefold_contract._errors import LockError
from treefold_contract._rules.findings import Finding
from treefold_contract._rules.rule_table import GRAVITY

_START = "usage {"
_LEVEL = "[INFO] "
_PARAMETER = re.compile(r"\{[^{}/]*\}")
_ABSENCE = frozenset({"param-added-required", "param-required", "param-default-changed"})
"""Rules about requests that lack a query name: that no caller sent it excuses nothing."""
_OTHER_ROUTES = ("route-shadows", "route-unshadowed", "unversioned", "auto-", "param-moved")
"""Rules whose place may be another route, or another name, than the one that is called."""


@dataclass(slots=True)
class RouteUsage:
    """How often a route was called.

    Attributes:
        title: the method and the path, such as `GET /v1/user/{id}`.
        count: its requests.
        last: the end of the last hour in which it was called, ISO 8601 in UTC; empty for none.
        callers: requests by caller.
        query: requests by query name.
    """

    title: str
    count: int = 0
    last: str = ""
    callers: dict[str, int] = field(default_factory=dict[str, int])
    query: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(slots=True)
class Usage:
    """The usage of a service over a time.

    Attributes:
        since: the begin of the first hour, ISO 8601 in UTC.
        until: the end of the last one.
        routes: the routes that were called, by method and path without names of parameters.
    """

    since: str = ""
    until: str = ""
    routes: dict[str, RouteUsage] = field(default_factory=dict[str, RouteUsage])

    def find_route(self, title: str) -> RouteUsage | None:
        """Return the usage of a route, None if it was not called.

        Args:
            title: such as `GET /v1/user/{id}`.
        """
        return self.routes.get(_PARAMETER.sub("{}", title))

    def move_version(self, old: str, new: str) -> Usage:
        """Return the usage of one version as that of another, for a comparison of both."""
        prefix = re.compile(rf"^(\S+ /){re.escape(old)}(?=/|$)")
        moved = {
            prefix.sub(rf"\g<1>{new}", key): found
            for key, found in self.routes.items()
            if prefix.match(key)
        }
        return replace(self, routes=moved)


def read_usage(lines: Iterable[str]) -> Usage:
    """Read the usage of a log; other lines are skipped.

    Raises:
        LockError: no line is one of usage.
    """
    usage = Usage()
    for line in lines:
        if _START in line or '"usage {' in line:
            with suppress(TypeError, ValueError):  # a line of another program
                _add_record(usage, _parse_line(line) or {})
    if not usage.since:
        raise LockError(
            "No line of the log is one of usage; set usage = true in treefold.toml, and keep the"
            " lines that begin with 'usage {'"
        )
    return usage


def _parse_line(line: str) -> Mapping[str, Any] | None:
    """Return the record of a line; None for a line that only quotes one."""
    _, level, message = line.partition(_LEVEL)
    if not level:
        try:
            entry = json.loads(line[line.index("{") :])
        except (ValueError, RecursionError):
            return None
        said = cast("dict[str, Any]", entry).get("message") if isinstance(entry, dict) else None
        message = said if isinstance(said, str) else ""
    if not message.startswith(_START):
        return None
    try:
        record = json.JSONDecoder().raw_decode(message, len(_START) - 1)[0]
    except (ValueError, RecursionError):
        return None
    return cast("Mapping[str, Any]", record)


def _add_record(usage: Usage, record: Mapping[str, Any]) -> None:
    since, until, routes = (record.get(name) for name in ("from", "to", "routes"))
    if not (isinstance(since, str) and isinstance(until, str) and isinstance(routes, list)):
        return
    usage.since = min(usage.since or since, since)
    usage.until = max(usage.until, until)
    for title, count, callers, query in cast("Sequence[Any]", routes):
        key = _PARAMETER.sub("{}", title)
        found = usage.routes.setdefault(key, RouteUsage(title))
        found.count += count
        found.last = max(found.last, until)
        for counts, pairs in ((found.callers, callers), (found.query, query)):
            for name, number in pairs:
                counts[name] = counts.get(name, 0) + number


def apply_usage(findings: Iterable[Finding], usage: Usage) -> list[Finding]:
    """Return findings, of which those that no caller can meet are notes.

    A finding is about a route that was not called, or a query name that no caller sent, at all of
    its places. Weaker security is not excused.
    """
    marked = [
        replace(each, verdict="compatible", is_unused=True)
        if each.verdict in ("breaking", "warning") and _is_unused(each, usage)
        else each
        for each in findings
    ]
    return sorted(marked, key=lambda each: GRAVITY.index(each.verdict))


def _is_unused(finding: Finding, usage: Usage) -> bool:
    if finding.rule == "version-removed":
        start = f"/{finding.old}/"
        return not any(f"{key}/".split(" ")[1].startswith(start) for key in usage.routes)
    if finding.rule.startswith(_OTHER_ROUTES):
        return False
    # the route is named by its new path
    places = (finding.old,) if finding.rule == "segment-renamed" else finding.places
    return all(_is_unused_place(finding.rule, place, usage) for place in places)


def _is_unused_place(rule: str, place: str, usage: Usage) -> bool:
    words = place.split(" ")
    if len(words) < 2 or not words[1].startswith("/"):
        return False
    route = usage.find_route(" ".join(words[:2]))
    if route is None:
        return True
    is_query = len(words) > 3 and words[2] == "query" and rule not in _ABSENCE
    return is_query and words[3] not in route.query
