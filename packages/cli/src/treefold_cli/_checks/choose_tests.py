"""Select the tests that touch a route, by reading their sources without running or importing one.

A test touches a route when it names a URL that the route serves, when it names the handler's file
or module, when it imports from the folder of the handler, or when its own folder mirrors that
folder (`Tests/v1/User/[id]/`). Pure but for reading the sources.
"""

import ast
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from treefold_cli._checks.sources import parse_source, project_files
from treefold_cli._checks.unplaced_tests import find_computed_url_tests
from treefold_router import Found, Route, RouteTable

WHOLE = ""
"""In a choice, stands for all tests of the file."""

Choice = Mapping[str, Sequence[str]]
"""Path of a test file from the application root, to the tests in it (`TestX::test_y`)."""

_PARAMETER = re.compile(r"\{[^/]*\}|\[[^/]*\]")
_UNSAFE = "/%:@!$&'()*+,;=~-._"
_Tests = (ast.FunctionDef, ast.AsyncFunctionDef)


def find_routes_by_url(
    table: RouteTable, url: str, *, default_version: str | None = None
) -> list[Route]:
    """Return the routes at a URL: a template (`/v1/user/[id]`, `/v1/user/{id}`) or a concrete path.

    Args:
        table: the route table of the project.
        url: the URL as the user typed it.
        default_version: the version that serves a URL without one.
    """
    shape = _PARAMETER.sub("{}", url.rstrip("/"))
    shapes = {shape} if default_version is None else {shape, f"/{default_version}{shape}"}
    same = [route for route in table.routes if _PARAMETER.sub("{}", route.template) in shapes]
    return same or [
        r for r in table.routes if _does_route_serve_url(table, r, url, default_version)
    ]


def find_tests_for_routes(
    root: Path,
    table: RouteTable,
    routes: Sequence[Route],
    *,
    default_version: str | None = None,
    mount_prefix: str = "",
    strip_root_path: Callable[[str], str] = str,
) -> Choice:
    """Find the tests that touch one of `routes`, or a path below a mount.

    Args:
        root: the application root.
        table: the project's.
        routes: all of one place.
        default_version: the version that serves a URL without one.
        mount_prefix: a mount, such as `/static`.
        strip_root_path: cuts the prefix of the setting `root_path` from a URL.

    Returns:
        The tests by file; nothing where no test touches them.
    """
    targets = _RouteReferenceMatcher(table, routes, default_version, mount_prefix, strip_root_path)
    found: dict[str, Sequence[str]] = {}
    for file in find_test_files(root):
        if targets.matches_handler_folder(file):
            found[file] = [WHOLE]
        elif names := list(_find_tests_touching((root / file).read_bytes(), targets)):
            found[file] = [WHOLE] if WHOLE in names else names
    return found


def collect_unchosen_computed_url_tests(
    root: Path,
    table: RouteTable,
    chosen_tests: Choice,
    *,
    default_version: str | None = None,
    strip_root_path: Callable[[str], str] = str,
) -> list[str]:
    """Find the tests outside of a choice whose URL is computed, as pytest names them.

    Args:
        root: the application root.
        table: the project's.
        chosen_tests: the tests that were placed.
        default_version: the version that serves a URL without one.
        strip_root_path: as for `find_tests_for_routes`.
    """

    def is_served_url(url: str) -> bool:
        path = _extract_url_path(url)
        path = strip_root_path(path) if path.startswith("/") else path
        return any(
            _does_route_serve_url(table, route, path, default_version) for route in table.routes
        )

    return [
        f"{file}::{test}"
        for file in find_test_files(root)
        if WHOLE not in chosen_tests.get(file, ())
        for test in find_computed_url_tests((root / file).read_bytes(), is_served_url)
        if test not in chosen_tests.get(file, ())
    ]


def find_test_files(root: Path) -> Iterator[str]:
    """Yield the test files (`test_*.py`, `*_test.py`), sorted and relative to the root."""
    for file in project_files(root):
        if file.match("test_*.py") or file.match("*_test.py"):
            yield os.fspath(file.relative_to(root))


@dataclass(frozen=True, slots=True)
class _RouteReferenceMatcher:
    """The routes at one URL, and the predicates that find references to them."""

    table: RouteTable
    routes: Sequence[Route]
    default_version: str | None
    prefix: str
    below: Callable[[str], str]

    def matches_handler_folder(self, file: str) -> bool:
        """Return True if the folders of a test file end with the folders of a handler."""
        folders = [part.lower() for part in Path(file).parts[:-1]]
        homes = ([part.lower() for part in route.file.split("/")[:-1]] for route in self.routes)
        return any(folders[-len(home) :] == home for home in homes)

    def matches_route_text(self, text: str) -> bool:
        """Return True if a string is the URL, the file or the module of one of the routes."""
        if any(text in (f"Api/{r.file}", _build_module_name(r)) for r in self.routes):
            return True
        url = _extract_url_path(text)
        if not url.startswith("/"):
            return False
        url = self.below(url)
        if self.prefix and f"{url}/".startswith(f"{self.prefix}/"):
            return True
        return any(
            _does_route_serve_url(self.table, route, url, self.default_version)
            for route in self.routes
        )

    def is_in_handler_package(self, name: str) -> bool:
        """Return True if an imported module lies in the folder of one of the routes."""
        homes = (_build_module_name(route).rpartition(".")[0] for route in self.routes)
        return any(name == home or name.startswith(f"{home}.") for home in homes)


def _extract_url_path(url: str) -> str:
    return urlsplit(url).path if "://" in url else url.partition("?")[0]


def _build_module_name(route: Route) -> str:
    return "Api." + route.effective_file.removesuffix(".py").replace("/", ".")


def _does_route_serve_url(
    table: RouteTable, route: Route, url: str, default_version: str | None = None
) -> bool:
    path = quote(url, safe=_UNSAFE).encode()
    for version in (None, default_version) if default_version else (None,):
        if route.method == "WEBSOCKET":
            answer = table.resolve_socket(path, version=version)
        else:
            answer = table.resolve(route.method, path, version)
        if isinstance(answer, Found):
            return answer.route is route
    return False


def _find_tests_touching(source: bytes, targets: _RouteReferenceMatcher) -> Iterator[str]:
    """Yield the tests in a source that touch the routes, `WHOLE` for code that all tests share."""
    tree = parse_source(source)  # without one, pytest reports the error better
    for node in tree.body if tree is not None else ():
        tests = [(node.name, node)] if isinstance(node, _Tests) else list(_list_class_members(node))
        for name, test in tests:
            if _contains_route_reference(test, targets):
                yield name if name.rpartition("::")[2].startswith("test") else WHOLE
        if not tests and _contains_route_reference(node, targets):
            yield WHOLE


def _list_class_members(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    if not isinstance(node, ast.ClassDef):
        return
    for inner in node.body:
        name = inner.name if isinstance(inner, _Tests) else ""
        yield f"{node.name}::{name}", inner


def _contains_route_reference(tree: ast.AST, targets: _RouteReferenceMatcher) -> bool:
    return any(_is_route_reference(node, targets) for node in ast.walk(tree))


def _is_route_reference(node: ast.AST, targets: _RouteReferenceMatcher) -> bool:
    match node:
        case ast.Constant(value=str(text)):
            return targets.matches_route_text(text)
        case ast.JoinedStr(values=parts):
            texts = (part.value if isinstance(part, ast.Constant) else "0" for part in parts)
            return targets.matches_route_text("".join(map(str, texts)))
        case ast.Import(names=names):
            return any(targets.is_in_handler_package(alias.name) for alias in names)
        case ast.ImportFrom(module=str(module), level=0, names=names):
            inner = (f"{module}.{alias.name}" for alias in names)
            return targets.is_in_handler_package(module) or any(
                map(targets.is_in_handler_package, inner)
            )
        case _:
            return False
