"""The findings of `check --strict` about a tree: routes that work in a surprising manner.

Reads routes and paths only, and has no effect on serving.
"""

import keyword
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from treefold_router._naming import parameter_name, segment_of, version_number
from treefold_router._near_names import (
    guess_misspelt_method,
    guess_parameter_name,
    strip_parameter_decorations,
)
from treefold_router._types import Duplicate, Finding, Route

# Injection provides these names itself, independent of the path.
_RESERVED = frozenset(("request", "websocket", "background"))


def find_lint_findings(
    routes: Sequence[Route],
    duplicates: Iterable[Duplicate],
    clashes: Iterable[Sequence[str]],
    ordinary: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Return every finding, rule by rule, each rule in visiting order.

    Args:
        routes: the routes that serve.
        duplicates: for the files that lost: their folders name parameters too.
        clashes: groups of sibling paths that a case-insensitive disk cannot tell apart.
        ordinary: files of ordinary code at places where a method file would be a route.
    """
    files = {route.file for route in routes}
    for duplicate in duplicates:
        files.update(duplicate.files)
    visited = sorted(files, key=lambda file: file.split("/"))
    return (
        *_find_conflicting_parameters(visited),
        *_find_repeated_parameters(routes),
        *_find_invalid_parameters(visited),
        *_find_foreign_parameter_syntax(visited),
        *_find_misspelt_method_files(ordinary),
        *_find_case_clashes(clashes),
        *_find_duplicate_versions(visited),
    )


def _find_conflicting_parameters(route_files: Iterable[str]) -> Iterator[Finding]:
    positions: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for file in route_files:
        position: tuple[str, ...] = ()
        for folder in file.split("/")[:-1]:
            name = parameter_name(folder)
            # A folder cannot be named '/', so it can represent any segment.
            position = (*position, segment_of(folder) if name is None else "/")
            if name is not None:
                positions.setdefault(position, {}).setdefault(name, []).append(file)
    for names in positions.values():
        if len(names) > 1:
            first, *others = names
            others_shown = ", ".join(repr(name) for name in others)
            yield Finding(
                "bracket-names",
                f"One position is named {first!r} and {others_shown}, every handler there "
                f"receives {first!r}; use one name",
                tuple(file for group in names.values() for file in group),
            )


def _find_repeated_parameters(routes: Iterable[Route]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[str]] = {}
    for route in routes:
        for name in dict.fromkeys(route.parameters):
            if route.parameters.count(name) > 1:
                groups.setdefault((route.template, name), []).append(route.file)
    for (template, name), files in groups.items():
        yield Finding(
            "repeated-parameter",
            f"Path {template!r} has the parameter {name!r} more than once, only the deepest "
            "value reaches the handler; rename the others",
            tuple(files),
        )


def _find_invalid_parameters(route_files: Iterable[str]) -> Iterator[Finding]:
    groups: dict[str, list[str]] = {}
    for file in route_files:
        names = {parameter_name(folder): None for folder in file.split("/")[:-1]}
        for name in names:
            if name is not None:
                groups.setdefault(name, []).append(file)
    for name, files in groups.items():
        if not _is_valid_parameter_identifier(name):
            meant = strip_parameter_decorations(name)
            way = f"; a parameter is one segment, name the folder '[{meant}]'" if meant else ""
            yield Finding(
                "parameter-identifier",
                f"Parameter {name!r} is no identifier, it can only be read as "
                f"request.path_params[{name!r}]{way}",
                tuple(files),
            )
        elif name in _RESERVED:
            yield Finding(
                "reserved-parameter",
                f"Parameter {name!r} is a name injection keeps for itself, it can only be read "
                f"as request.path_params[{name!r}]; rename the folder",
                tuple(files),
            )


def _find_foreign_parameter_syntax(route_files: Iterable[str]) -> Iterator[Finding]:
    groups: dict[tuple[str, str], list[str]] = {}
    for file in route_files:
        for folder in dict.fromkeys(file.split("/")[1:-1]):
            meant = None if parameter_name(folder) else guess_parameter_name(folder)
            if meant is not None:
                groups.setdefault((folder, meant), []).append(file)
    for (folder, meant), files in groups.items():
        yield Finding(
            "parameter-spelling",
            f"Folder {folder!r} is the plain segment {segment_of(folder)!r}, no parameter; name it "
            f"'[{meant}]'",
            tuple(files),
        )


def _find_misspelt_method_files(ordinary_code_files: Iterable[str]) -> Iterator[Finding]:
    for file in sorted(ordinary_code_files, key=lambda file: file.split("/")):
        name = file.rpartition("/")[2]
        if (meant := guess_misspelt_method(name.removesuffix(".py"))) is not None:
            text = f"File {name!r} is no method, so it serves no route; name it '{meant}.py'"
            yield Finding("method-name", text, (file,))


def _is_valid_parameter_identifier(name: str) -> bool:
    # The compiler folds identifiers to NFKC, so any other spelling never equals a parameter's.
    folded = unicodedata.normalize("NFKC", name) == name
    return folded and name.isidentifier() and not keyword.iskeyword(name)


def _find_case_clashes(clashes: Iterable[Sequence[str]]) -> Iterator[Finding]:
    for group in sorted(clashes, key=lambda group: group[0].split("/")):
        names = ", ".join(repr(path.rpartition("/")[2]) for path in group)
        text = f"Names {names} are one name on a case-insensitive disk; rename all but one"
        yield Finding("case-clash", text, tuple(group))


def _find_duplicate_versions(route_files: Iterable[str]) -> Iterator[Finding]:
    numbers: dict[int | None, dict[str, list[str]]] = {}
    for file in route_files:
        version = file.partition("/")[0]
        numbers.setdefault(version_number(version), {}).setdefault(version, []).append(file)
    for spellings in numbers.values():
        if len(spellings) > 1:
            names = ", ".join(repr(name) for name in spellings)
            yield Finding(
                "version-spelling",
                f"Versions {names} have one number and are served as different versions; "
                "keep one spelling",
                tuple(file for group in spellings.values() for file in group),
            )
