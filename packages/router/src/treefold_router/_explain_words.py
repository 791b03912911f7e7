"""An explanation in words: labelled lines, the same for the command line and a browser.

Pure functions from data to text. Escapes and colours are added when it is printed.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from treefold_router._explain import Explanation, Step
from treefold_router._types import Route

_SHOWN = 10
"""Most segments at a place that are listed."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of an explanation.

    Attributes:
        label: its subject, such as `did you mean`.
        text: the line.
    """

    label: str
    text: str


def explanation_lines(found: Explanation) -> Iterator[Line]:
    """Put an explanation into words.

    Yields:
        The walk segment by segment, the answer, then everything that may help.
    """
    if found.default_version:
        yield Line("version", f"none in the path, default_version is {found.default_version}")
    for step in found.steps:
        yield Line(f"/{step.segment}", _describe_step(step))
    yield Line("answer", _describe_answer(found))
    for file in found.duplicates:
        yield Line("hidden", f"Api/{file} has the same method and URL, and is visited earlier")
    for gone in found.gone:
        yield Line("gone", f"Api/{gone.file} is hidden by Api/{gone.mark}")
    if found.unserved:
        yield Line("not served", f"serve = false in Api/{found.unserved}/version.toml")
    for route in found.shadowed:
        yield Line("hidden", f"{_format_route(route)} would match, but a static folder is final")
    for skipped in found.skipped:
        yield Line("skipped", f"Api/{skipped.file}: {skipped.reason}")
    for route in found.near:
        yield Line("did you mean", f"{_format_route(route)}  {format_route_file(route)}")
    for route in found.versions:
        yield Line("other version", f"{_format_route(route)}  {format_route_file(route)}")
    if found.status == 204 or found.unserved:
        return
    if found.gone:
        yield Line("to add it", f"remove the file Api/{found.gone[0].mark}")
    elif found.create:
        path, _, method = found.create.rpartition(" ")
        yield Line("to add it", f"treefold create {shlex.quote(path)} {method}")
    elif found.file:
        yield Line("to add it", f"make the file Api/{found.file}")
    elif found.status == 404 and found.steps:
        yield Line("to add it", "no folder can serve this path: URLs are lower-case and plain")


def _describe_step(step: Step) -> str:
    if step.place == "dynamic":
        return f"is the value of [{step.parameter}]"
    if step.place == "static":
        return f"is a folder, which wins over [{step.over}]" if step.over else "is a folder"
    if not step.here:
        return "matches nothing: there is nothing below"
    more = ", ..." if len(step.here) > _SHOWN else ""
    return f"matches nothing: there is {', '.join(step.here[:_SHOWN])}{more}"


def _describe_answer(found: Explanation) -> str:
    if found.route is not None and found.fault:
        return f"500: {format_route_file(found.route)} does not load: {found.fault}"
    if found.route is not None and found.route.method != found.method:
        return f"200, served by {format_route_file(found.route)} (setting auto_head)"
    if found.route is not None:
        return f"200, served by {format_route_file(found.route)}"
    if found.fault:
        return f"400: {found.fault}"
    if found.status == 204:
        return f"204 with Allow: {', '.join((*found.methods, 'OPTIONS'))} (setting auto_options)"
    if found.status == 405:
        return f"405: the path exists, but for {', '.join(found.methods)} only"
    if found.unversioned and not found.default_version:
        return "404: the path does not begin with a version, and no default_version serves it"
    matched = all(step.place for step in found.steps)
    return "404: folders only, no file serves a method here" if matched else "404: no such path"


def format_route_file(route: Route) -> str:
    """Return the path of a route's file, and the version that inherits it from another one."""
    inherited = f" (inherited by {route.version})" if route.layer != route.version else ""
    return f"Api/{route.file}{inherited}"


def _format_route(route: Route) -> str:
    return f"{route.method} {route.template}"
