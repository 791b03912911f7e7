"""The deprecated routes of a project: what their modules and the `version.toml` files say.

    Api/v1/version.toml      deprecated = 2026-11-01, successor = "v2"    all routes of v1
    Api/v2/User/Get.py       deprecated = Deprecation("2026-12-01")       GET /v2/user, and in a
                                                                          v3 that inherits v2

A version does not inherit the deprecation of its base: that of a file comes with the file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, TypeAlias

from treefold_http._plans.deprecation import (
    Deprecation,
    merge_deprecations,
    read_version_deprecation,
)
from treefold_http._plans.deprecation_fields import (
    DeprecationLayer,
    SuccessorLayer,
    build_deprecation_layer,
    split_route_path,
)
from treefold_http._plans.handlers import HandlerModule

if TYPE_CHECKING:
    from treefold_http._project.findings import Findings
    from treefold_http._runtime.boot_report import BrokenFile
    from treefold_router import Route, RouteTable

_Place: TypeAlias = tuple[str, str, tuple[str, ...]]
Layer: TypeAlias = DeprecationLayer | SuccessorLayer


@dataclass(frozen=True, slots=True)
class Deprecations:
    """The deprecations of a project.

    Attributes:
        versions: by version, that of its `version.toml`.
        routes: by route, its own completed by that of its version.
        layers: by route, what adds the header fields; none where there is none to add.
        version_layers: by version, what adds them to answers of paths that no route serves.
    """

    versions: Mapping[str, Deprecation] = field(default_factory=dict[str, Deprecation])
    routes: Mapping[Route, Deprecation] = field(default_factory=dict["Route", Deprecation])
    layers: Mapping[Route, Sequence[Layer]] = field(default_factory=dict["Route", Sequence[Layer]])
    version_layers: Mapping[str, Sequence[Layer]] = field(
        default_factory=dict[str, Sequence[Layer]]
    )

    def list_changed_routes(self, former: Deprecations) -> list[Route]:
        """Return the routes whose header fields are others than before."""
        both = {**former.layers, **self.layers}
        return [route for route in both if self.layers.get(route) != former.layers.get(route)]

    def list_passed_sunsets(self, today: date) -> list[str]:
        """Return a text for each version that is served after its sunset, and other routes."""
        found = {name: each.sunset for name, each in self.versions.items()}
        for route, each in self.routes.items():
            if each.sunset != found.get(route.version):
                found[f"{route.method} {route.template}"] = each.sunset
        return [
            f"{name} is served after its sunset {sunset}"
            for name, sunset in found.items()
            if sunset is not None and sunset <= today
        ]


NO_DEPRECATIONS = Deprecations()


def find_deprecations(
    table: RouteTable,
    modules: Mapping[Route, HandlerModule | BrokenFile],
    findings: Findings,
    former: Deprecations = NO_DEPRECATIONS,
    *,
    is_fatal: bool = True,
) -> Deprecations:
    """Return the deprecations of a project.

    Args:
        findings: receives a route whose own deprecation begins after the sunset of its version.
        former: those of the project before; what is equal stays the same object.
        is_fatal: False if such a route is served all the same.
    """
    settings = table.layers.settings
    versions = {
        name: found
        for name in settings
        if (found := read_version_deprecation(settings[name])) is not None
    }
    routes: dict[Route, Deprecation] = {}
    for route, module in modules.items():
        own = module.deprecated if isinstance(module, HandlerModule) else None
        of_version = versions.get(route.version)
        if own is None and of_version is None:
            continue
        try:
            found = merge_deprecations(own, of_version)
        except ValueError as error:
            findings.record_setting_failure(
                f"`deprecated` in Api/{route.file} does not fit Api/{route.version}/version.toml:"
                f" {error}",
                fatal=is_fatal,
            )
            found = of_version
        if found is not None:
            known = former.routes.get(route)
            routes[route] = known if known == found and known is not None else found
    if not routes and not versions:
        return NO_DEPRECATIONS
    layers = _build_layers(table, routes)
    of_versions = {name: build_deprecation_layer(found) for name, found in versions.items()}
    version_layers = {name: (layer,) for name, layer in of_versions.items() if layer.fields}
    return Deprecations(versions, routes, layers, version_layers)


def _build_layers(
    table: RouteTable, routes: Mapping[Route, Deprecation]
) -> dict[Route, Sequence[Layer]]:
    successors = {each.successor for each in routes.values()} - {""}
    places: set[_Place] = set()
    for route in table.routes:
        if route.version in successors:
            places.add(_identify_place(route, route.version))
    layers: dict[Route, Sequence[Layer]] = {}
    for route, deprecation in routes.items():
        successor = deprecation.successor
        has_successor = successor != route.version and _identify_place(route, successor) in places
        layer = build_deprecation_layer(deprecation, route, has_successor=has_successor)
        if layer.fields or has_successor:
            layers[route] = (layer,)
    return layers


def _identify_place(route: Route, version: str) -> _Place:
    """Return a key that is equal for the routes of a method at one place, whatever their names."""
    segments = ("" if is_name else text for text, is_name in split_route_path(route))
    return version, route.method, tuple(segments)
