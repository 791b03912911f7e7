"""The findings of `check` about `version.toml` and versions that inherit: names that mean nothing.

Unlike those of `_lint` they are errors: a version has no other place where its author would notice
them. Reads names only, and has no effect on serving.
"""

from collections.abc import Iterable, Iterator, Sequence

from treefold_router._layers import Layers, Overlay, Parts
from treefold_router._naming import parameter_name
from treefold_router._scan import GONE, VERSION_FILE
from treefold_router._types import Finding, Route


def find_layer_findings(layers: Layers, routes: Sequence[Route]) -> tuple[Finding, ...]:
    """Return every finding, rule by rule.

    Args:
        layers: the versions that inherit.
        routes: the routes that serve.
    """
    return (
        *_find_marks_without_base(layers),
        *_find_idle_marks(layers),
        *_find_case_differences(layers),
        *_find_bracket_differences(layers, routes),
        *_find_unknown_successors(layers, routes),
    )


def _find_unknown_successors(layers: Layers, routes: Sequence[Route]) -> Iterator[Finding]:
    served = {route.version for route in routes}
    for version, settings in sorted(layers.settings.items()):
        successor = settings.successor
        if successor and (successor == version or successor not in served):
            yield Finding(
                "no-successor",
                f"'successor' must name another version that serves routes, got {successor!r};"
                " no answer links to it",
                (f"{version}/{VERSION_FILE}",),
            )


def _find_marks_without_base(layers: Layers) -> Iterator[Finding]:
    for mark in sorted(layers.marks, key=lambda mark: mark.parts):
        if (version := mark.parts[0]) not in layers.chains:
            yield Finding(
                "gone-nothing",
                f"Version {version!r} inherits from no version, so this removes nothing; remove it,"
                f" or write 'inherits' in Api/{version}/version.toml",
                (mark.file,),
            )


def _find_idle_marks(layers: Layers) -> Iterator[Finding]:
    for version in sorted(layers.chains):
        own = {entry.parts[1:] for entry in layers.own[version]}
        used = {one.mark for one in layers.hidden[version]}
        for mark in sorted(layers.marks, key=lambda mark: mark.parts):
            if mark.parts[0] != version:
                continue
            path = mark.parts[1:]
            alone, name = Overlay((), [path]), path[-1].removesuffix(GONE)
            beside = [one for one in own if _is_removed_as_file(alone, one, path)]
            if beside:
                file = "/".join((version, *sorted(beside)[0]))
                yield Finding(
                    "gone-beside",
                    f"Api/{file} stands beside it and serves, so {name!r} is not gone; remove one",
                    (mark.file,),
                )
            elif mark.file not in used:
                yield Finding(
                    "gone-nothing",
                    f"Version {version!r} inherits no {name!r} here, so this removes nothing;"
                    " remove it",
                    (mark.file,),
                )


def _is_removed_as_file(alone: Overlay, path: Parts, mark: Parts) -> bool:
    return len(path) == len(mark) and alone.find_mark(path) is not None


def _find_case_differences(layers: Layers) -> Iterator[Finding]:
    for version in sorted(layers.chains):
        inherited = {
            entry.parts[1:depth]: "/".join((entry.layer, *entry.parts[1:depth]))
            for entry in layers.inherited[version]
            for depth in range(2, len(entry.parts))
        }
        spellings: dict[str, Parts] = {}
        for folder in inherited:
            spellings.setdefault("/".join(folder).lower(), folder)
        own = {
            entry.parts[1:depth]
            for entry in layers.own[version]
            for depth in range(2, len(entry.parts))
        }
        for folder in sorted(own - inherited.keys()):
            other = spellings.get("/".join(folder).lower())
            # of a whole path the first folder that differs is the one to rename
            if other is not None and folder[:-1] == other[:-1] and not parameter_name(folder[-1]):
                yield Finding(
                    "layer-case",
                    f"Folder differs from Api/{inherited[other]}, which {version!r} inherits, only"
                    " in case: their routes are one place, their modules are not; use one spelling",
                    ("/".join((version, *folder)),),
                )


def _find_bracket_differences(layers: Layers, routes: Iterable[Route]) -> Iterator[Finding]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for route in routes:
        if route.version not in layers.chains:
            continue
        own = [name for part in route.file.split("/") if (name := parameter_name(part))]
        for mine, served in zip(own, route.parameters, strict=True):
            if mine != served:
                found.setdefault((route.version, mine, served), []).append(route.file)
    for (version, mine, served), files in found.items():
        yield Finding(
            "layer-brackets",
            f"Version {version!r} names this parameter {served!r} in another file, so the handler"
            f" here receives {served!r} instead of {mine!r}; use one name",
            tuple(files),
        )
