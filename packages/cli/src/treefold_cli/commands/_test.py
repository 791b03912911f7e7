"""`treefold test`: pytest over the project, whole or for one URL.

Only arguments and words; which tests touch a URL is decided in `_checks.choose_tests`.
"""

import json
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from treefold_cli._console.completion import complete_urls
from treefold_cli._console.errors import MISUSE, CommandError, translate_to_command_error
from treefold_cli._console.options import AppDir, make_argument, make_option
from treefold_cli._console.output import format_count, print_error
from treefold_cli._console.project import rebase_typed_path, require_api_folder
from treefold_cli._console.tools import require_tool, run_module
from treefold_router import RouterError, RouteTable

__test__ = False  # or pytest would take the command for a test
_PLUGIN = "treefold_cli._checks.pytest_choice"  # by name: it imports pytest, as the child does
_ARGUMENTS = "A URL runs the tests that touch its route; the rest goes to pytest."
_SHOWN = 10
_NONE_COLLECTED = 5  # pytest's own code
_WITH_VALUE = frozenset({"-k", "-m", "-p", "-c", "-o", "-W", "-n"})


def test(
    arguments: Annotated[
        list[str] | None, make_argument("[URL|PATH|OPTION]...", _ARGUMENTS, complete_urls)
    ] = None,  # noqa: PT028 - a command, no test
    database: Annotated[
        str, make_option("--database", "URL", "Use this database as it is, not one of the run.")
    ] = "",  # noqa: PT028 - as above
    app_dir: AppDir = ".",  # noqa: PT028 - as above
) -> int:
    """Run pytest on the project, with the fixtures of treefold.

    Tests have databases of their own: the configured ones are never touched.

    With a URL such as /v1/user/[id], or /v1/user/42, only the tests that name that URL, its file
    or its folder. Options are those of pytest; put -- before them where they are ours as well. The
    exit code is that of pytest.
    """
    require_api_folder(app_dir)
    require_tool("pytest", install="'treefold[test]'")
    root = Path(app_dir).absolute()
    given = [_rebase_argument_path(argument) for argument in arguments or []]
    environment = dict(os.environ)
    if database:
        environment["TREEFOLD_TEST_DATABASE_URL"] = database
    options = ["-p", _PLUGIN, "-p", "treefold", "--treefold-app-dir", os.fspath(root)]
    if any(map(_is_test_selector, given)):
        from treefold_cli._checks.pytest_choice import VARIABLE

        choice, rest = _separate_test_selectors(root, given)
        if not choice:
            return _NONE_COLLECTED
        environment[VARIABLE] = json.dumps(choice)
        given = rest
    code, _ = run_module("pytest", [*options, *given], cwd=root, environment=environment)
    return code


def _rebase_argument_path(argument: str) -> str:
    """Return an argument with the path in it as it leads from the root of the project."""
    path, colons, name = argument.partition("::")
    place = rebase_typed_path(path)
    return f"{place}{colons}{name}" if place != path and os.path.exists(place) else argument


def _is_test_selector(argument: str) -> bool:
    path = argument.partition("::")[0]
    return _is_url(argument) or ("[" in path and not argument.startswith("-"))


def _is_url(argument: str) -> bool:
    return argument.startswith("/") and not os.path.exists(argument.partition("::")[0])


def _separate_test_selectors(
    root: Path, given: Sequence[str]
) -> tuple[dict[str, Sequence[str]], list[str]]:
    """Separate arguments that select tests from those that pytest handles itself."""
    choice: dict[str, list[str]] = {}
    rest: list[str] = []
    for index, argument in enumerate(given):
        path, _, name = argument.partition("::")
        if _is_url(argument):
            for file, tests in _find_and_announce_tests(root, argument).items():
                choice.setdefault(file, []).extend(tests)
        elif (index and given[index - 1] in _WITH_VALUE) or not (root / path).exists():
            rest.append(argument)
        else:
            choice.setdefault(os.path.relpath(root / path, root), []).append(name)
    return dict(choice), rest


def _find_and_announce_tests(root: Path, url: str) -> dict[str, list[str]]:
    from treefold_cli._checks.choose_tests import (
        collect_unchosen_computed_url_tests,
        find_routes_by_url,
        find_test_files,
        find_tests_for_routes,
    )
    from treefold_cli._checks.served_paths import (
        explain_path,
        read_settings,
        resolve_default_version,
    )
    from treefold_http.extensions import below_root

    with translate_to_command_error(RouterError):
        table = RouteTable.scan(root / "Api")
    settings = read_settings(root)
    version = resolve_default_version(settings, table)
    below = partial(below_root, root=settings.root_path)
    routes, prefix = find_routes_by_url(table, below(url), default_version=version), ""
    if routes:
        named = ", ".join(f"{route.method} {route.template}" for route in routes)
    else:
        raw_path = url.encode(errors="surrogateescape")
        served = explain_path(root, table, "GET", raw_path, loads_handler=False)
        named, prefix = served.text, served.prefix
        if not prefix:
            message = f"No route at {url!r}; 'treefold why get {url}' says why"
            raise CommandError(message, code=MISUSE)
    found = find_tests_for_routes(
        root, table, routes, default_version=version, mount_prefix=prefix, strip_root_path=below
    )
    choice = {file: list(names) for file, names in found.items()}
    if choice:
        print_error(f"Tests of {named} are in {', '.join(choice)}")
    else:
        looked = format_count(sum(1 for _ in find_test_files(root)), "test file")
        print_error(f"No test touches {named}; looked in {looked} for its URL or its file")
    unplaced = collect_unchosen_computed_url_tests(
        root, table, found, default_version=version, strip_root_path=below
    )
    _print_computed_url_tests(unplaced)
    return choice


def _print_computed_url_tests(tests: Sequence[str]) -> None:
    if not tests:
        return
    shown = ", ".join(tests[:_SHOWN])
    more = f" and {format_count(len(tests) - _SHOWN, 'more test')}" if len(tests) > _SHOWN else ""
    print_error(f"Not placed, because their URL is computed: {shown}{more}")
