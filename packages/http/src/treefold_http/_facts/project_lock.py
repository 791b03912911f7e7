"""The lock of a project: the facts of all routes, with the names of their types."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, TypeVar

from treefold_contract import (
    Answer,
    AnswerField,
    Body,
    Definition,
    Input,
    Lock,
    Message,
    Reference,
    RouteFacts,
    Segment,
    Settings,
    TypeNode,
    VersionFacts,
)
from treefold_http._description.routes import RouteDescription, describe_routes
from treefold_http._facts.answers import PROBLEM
from treefold_http._facts.named_types import (
    NamedType,
    NamedTypes,
    rename_in_definition,
    rename_references,
)
from treefold_http._facts.route_facts import build_route_facts
from treefold_http._facts.type_names import assign_type_names
from treefold_http._facts.type_reader import TypeReader
from treefold_router import version_number

if TYPE_CHECKING:
    from treefold_http._serving.host import Host

_Fact = TypeVar("_Fact", Segment, Input, Body, Answer, AnswerField, Message)


class UnreadableProject(Exception):
    """A project of which no lock can be made: a file is broken, or a route cannot be described."""


@dataclass(frozen=True, slots=True)
class ProjectLock:
    """The lock of a project.

    Attributes:
        lock: the facts of its routes.
        files: the file of each route, by its title such as `GET /v1/user/{id}`, with the line of
            its handler.
    """

    lock: Lock
    files: dict[str, str]


def build_project_lock(app: Host) -> ProjectLock:
    """Return the lock of an application; boots it if necessary.

    Raises:
        UnreadableProject: if a file is broken or a route cannot be described; it names them all.
        BootError, SettingsError: when the project cannot be read.
    """
    project = app.project
    described, _ = describe_routes(app, project)
    _refuse_missing_routes(app, described)
    named = NamedTypes()
    routes = [build_route_facts(each, named, project.middlewares) for each in described]
    errors = _read_error_model(app, named)
    roots = {route: list(_iter_types(route)) for route in routes}
    versions: dict[str, set[int]] = {}
    for route, types in roots.items():
        for key in named.find_reachable(types):
            versions.setdefault(key, set()).add(version_number(route.version) or 0)
    for key in named.find_reachable([errors] if errors is not None else []):
        versions.setdefault(key, {0})
    used = {key: known for key, known in named.types.items() if key in versions}
    names = assign_type_names(used, versions)
    lock = Lock(
        routes=tuple(_rename_types(route, names) for route in routes),
        versions=tuple(map(VersionFacts, project.table.versions)),
        definitions=_build_definitions(used.values(), names),
        settings=_read_settings(app, errors, names),
    )
    files = {
        facts.title: _locate_handler(each) for facts, each in zip(routes, described, strict=True)
    }
    return ProjectLock(lock, files)


def _refuse_missing_routes(app: Host, described: Sequence[RouteDescription]) -> None:
    project = app.project
    broken = {each.file: each.error for each in project.report.broken}
    found = {each.route for each in described}
    for route in project.modules:
        if route not in found:
            broken.setdefault(route.file, "its parameters or answers cannot be described")
    if broken:
        lines = [f"{file}: {error}" for file, error in sorted(broken.items())]
        raise UnreadableProject(
            f"A lock needs a project without broken files, got {len(lines)}; mend\n  "
            + "\n  ".join(lines)
        )


def _read_error_model(app: Host, named: NamedTypes) -> TypeNode | None:
    """Return the type of all errors; None for problem documents."""
    form = app.errors.error_format
    return None if form is None else TypeReader(named, "response").read(form.model)


def _read_settings(app: Host, errors: TypeNode | None, names: Mapping[str, str]) -> Settings:
    shown = PROBLEM
    if errors is not None:
        node = rename_references(errors, names)
        shown = node.name if isinstance(node, Reference) else "other"
    settings = app.settings
    automatic = (("head", settings.auto_head), ("options", settings.auto_options))
    return Settings(
        default_version=app.project.default_version or "",
        errors=shown,
        automatic=tuple(name for name, is_on in automatic if is_on),
        mounts=tuple(sorted(f"/{'/'.join(parts)}" for parts in app.mounts.take_snapshot())),
    )


def _build_definitions(
    types: Iterable[NamedType], names: Mapping[str, str]
) -> dict[str, Definition]:
    """Return the definitions by name; the two views of a type where they differ."""
    found: dict[str, Definition] = {}
    for named in types:
        name, (request, response) = names[named.key], named.shape
        renamed = [view and rename_in_definition(view, names) for view in (request, response)]
        if renamed[0] is not None and renamed[1] is not None:
            found[f"{name} in"], found[f"{name} out"] = renamed[0], renamed[1]
            continue
        view = renamed[0] if renamed[0] is not None else renamed[1]
        assert view is not None  # noqa: S101 - a type has a view from the moment that it is known
        found[name] = view
    return found


def _iter_types(route: RouteFacts) -> Iterator[TypeNode]:
    """Yield the types that the facts of a route hold."""
    yield from (segment.type for segment in route.path)
    yield from (each.type for each in (*route.inputs, *route.bodies, *route.fields))
    yield from (each.type for each in route.messages)
    yield from (answer.type for answer in route.answers if answer.type is not None)


def _rename_types(route: RouteFacts, names: Mapping[str, str]) -> RouteFacts:
    """Return facts whose references hold the names of types."""

    def rename(fact: _Fact) -> _Fact:
        if fact.type is None:
            return fact
        return replace(fact, type=rename_references(fact.type, names))

    return replace(
        route,
        path=tuple(map(rename, route.path)),
        inputs=tuple(map(rename, route.inputs)),
        bodies=tuple(map(rename, route.bodies)),
        answers=tuple(map(rename, route.answers)),
        fields=tuple(map(rename, route.fields)),
        messages=tuple(map(rename, route.messages)),
    )


def _locate_handler(described: RouteDescription) -> str:
    """Return the file below `Api/` and the line of a handler."""
    code: CodeType | None = getattr(inspect.unwrap(described.handler_function), "__code__", None)
    place = f"Api/{described.route.file}"
    if code is None or not Path(code.co_filename).as_posix().endswith(place):
        return place
    return f"{place}:{code.co_firstlineno}"
