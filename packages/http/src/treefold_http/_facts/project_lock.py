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
    RouteWords,
    Segment,
    Settings,
    Side,
    TypeNode,
    VersionFacts,
)
from treefold_http._description.routes import Known, RouteDescription, describe_routes
from treefold_http._description.words import read_words
from treefold_http._facts.answers import PROBLEM
from treefold_http._facts.named_types import (
    NamedType,
    NamedTypes,
    rename_in_definition,
    rename_references,
)
from treefold_http._facts.route_facts import build_deprecation_facts, build_route_facts
from treefold_http._facts.type_names import assign_type_names
from treefold_http._facts.type_reader import TypeReader
from treefold_router import version_number

if TYPE_CHECKING:
    from treefold_http._project.loaded_project import LoadedProject
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
        words: summary and description of each route, by its title.
    """

    lock: Lock
    files: dict[str, str]
    words: dict[str, RouteWords]


class LockBuilder:
    """Builds the lock of an application, again after each reload.

    What did not change is kept: the facts of routes whose modules, plans and middleware are the
    same objects.

    Args:
        app: the application; it boots if necessary.
    """

    def __init__(self, app: Host) -> None:
        self._app = app
        self._descriptions: Known = {}
        self._named = NamedTypes()
        self._facts: dict[str, tuple[RouteDescription, RouteFacts]] = {}

    def build(self) -> ProjectLock:
        """Return the lock of the project as it is loaded now.

        Raises:
            UnreadableProject: if a file is broken or a route cannot be described; it names them
                all.
            BootError, SettingsError: when the project cannot be read.
        """
        project, named = self._app.project, self._named
        described, _ = describe_routes(self._app, project, self._descriptions)
        _refuse_missing_routes(self._app, described)
        routes = self._collect_facts(described)
        errors = _read_error_model(self._app, named)
        versions = _collect_versions(routes, errors, named)
        named.keep_only(versions)
        names = assign_type_names(named.types, versions)
        lock = Lock(
            routes=tuple(_rename_types(route, names) for route in routes),
            versions=tuple(_build_version_facts(project, v) for v in project.table.versions),
            definitions=_build_definitions(named.types.values(), names),
            settings=_read_settings(self._app, errors, names),
        )
        titles = [route.title for route in routes]
        return ProjectLock(
            lock,
            dict(zip(titles, map(_locate_handler, described), strict=True)),
            dict(zip(titles, map(_read_route_words, described), strict=True)),
        )

    def _collect_facts(self, described: Sequence[RouteDescription]) -> list[RouteFacts]:
        middlewares = self._app.project.middlewares
        made: dict[str, tuple[RouteDescription, RouteFacts]] = {}
        for each in described:
            key = f"{each.route.method} {each.route.template}"
            former = self._facts.get(key)
            if former is not None and former[0] is each:
                made[key] = former
            else:
                made[key] = each, build_route_facts(each, self._named, middlewares)
        self._facts = made
        return [facts for _, facts in made.values()]


def build_project_lock(app: Host) -> ProjectLock:
    """Return the lock of an application; boots it if necessary.

    Raises:
        UnreadableProject, BootError, SettingsError: as `LockBuilder.build`.
    """
    return LockBuilder(app).build()


def _build_version_facts(project: LoadedProject, version: str) -> VersionFacts:
    settings = project.table.layers.settings.get(version)
    is_draft = settings is not None and settings.status == "draft"
    deprecation = build_deprecation_facts(project.deprecations.versions.get(version))
    return VersionFacts(version, "draft" if is_draft else "stable", deprecation)


def _collect_versions(
    routes: Sequence[RouteFacts], errors: TypeNode | None, named: NamedTypes
) -> dict[str, set[int]]:
    """Return the numbers of the versions that use each type, by its key."""
    versions: dict[str, set[int]] = {}
    for route in routes:
        for key in named.find_reachable(_iter_types(route)):
            versions.setdefault(key, set()).add(version_number(route.version) or 0)
    for key in named.find_reachable([] if errors is None else [errors]):
        versions.setdefault(key, {0})
    return versions


def _read_route_words(described: RouteDescription) -> RouteWords:
    summary, description = read_words(described.module)
    return RouteWords(summary, description)


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
        node = rename_references(errors, names, "response")
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
        views: tuple[tuple[Definition | None, Side], ...] = (
            (request, "request"),
            (response, "response"),
        )
        renamed = [view and rename_in_definition(view, names, side) for view, side in views]
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

    def rename(fact: _Fact, side: Side = "request") -> _Fact:
        if fact.type is None:
            return fact
        return replace(fact, type=rename_references(fact.type, names, side))

    def rename_message(fact: Message) -> Message:
        return rename(fact, "request" if fact.direction == "in" else "response")

    return replace(
        route,
        path=tuple(map(rename, route.path)),
        inputs=tuple(map(rename, route.inputs)),
        bodies=tuple(map(rename, route.bodies)),
        answers=tuple(rename(each, "response") for each in route.answers),
        fields=tuple(rename(each, "response") for each in route.fields),
        messages=tuple(map(rename_message, route.messages)),
    )


def _locate_handler(described: RouteDescription) -> str:
    """Return the file below `Api/` and the line of a handler."""
    code: CodeType | None = getattr(inspect.unwrap(described.handler_function), "__code__", None)
    place = f"Api/{described.route.file}"
    if code is None or not Path(code.co_filename).as_posix().endswith(place):
        return place
    return f"{place}:{code.co_firstlineno}"
