"""`treefold check`: errors in the tree, and files below `Api/` that serve no route, with reasons.

Decides which problems are reported and the exit code; the output is formatted in
`_checks.findings`.
Handlers are imported, by booting the application once without serving it.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from treefold_cli._checks.broken_files import (
    find_failing_line,
    format_broken_path,
    hide_findings_from_log,
)
from treefold_cli._checks.deployment import find_deploy_problems
from treefold_cli._checks.findings import ENVIRONMENT, FORMATS, Kind, Problem, Report, render_report
from treefold_cli._checks.layers import (
    find_layer_problems,
    find_lost_guard_problems,
    find_unchanged_files,
    find_unread_data_files,
)
from treefold_cli._console.errors import FAILURE, OK, translate_to_command_error
from treefold_cli._console.options import (
    AppDir,
    AsJson,
    make_choice,
    make_flag,
    parse_choice_option,
)
from treefold_cli._console.output import print_error, print_line
from treefold_cli._console.progress import show_progress
from treefold_cli._console.project import require_api_folder
from treefold_router import RouterError, RouteTable

if TYPE_CHECKING:
    from treefold_http import Application


def check(
    app_dir: AppDir = ".",
    strict: Annotated[
        bool, make_flag("--strict", "Report constructs that are likely to surprise, too.")
    ] = False,
    output: Annotated[str, make_choice("--format", FORMATS, "How to print it.")] = "text",
    as_json: AsJson = False,
    deploy: Annotated[
        bool, make_flag("--deploy", "Report what an attacker can use, in this environment, too.")
    ] = False,
) -> int:
    """Report duplicate routes, broken handlers and skipped files.

    Exit code 1 for a duplicate or a broken handler, with --deploy for a severe finding of the
    deployment, with --strict for any finding. --deploy reads the environment: run it where the
    application is served, with the variables of the server.
    """
    form = "json" if as_json else parse_choice_option(output, "--format", choices=FORMATS)
    api = require_api_folder(app_dir)
    with translate_to_command_error(RouterError):
        table = RouteTable.scan(api)
    found = _boot_and_find_problems(app_dir, table, strict=strict, deploy=deploy)
    problems = [*_find_table_problems(table), *found, *find_layer_problems(table)]
    problems += find_unread_data_files(table)
    if strict:
        for finding in table.lint():
            files = _prefix_with_api_folder(finding.files)
            problems.append(Problem(Kind.LINT, finding.message, files, code=finding.code))
        problems += find_unchanged_files(table)
    if form == "github":
        problems = [replace(p, files=_relativize_to_checkout(app_dir, p)) for p in problems]
    report = Report(problems, len(table.routes), strict=strict)
    if form == "text":
        _print_tracebacks(problems)
    for line in render_report(report, form=form):
        print_line(line)
    return FAILURE if report.has_failed else OK


def _print_tracebacks(problems: Iterable[Problem]) -> None:
    """Print the traceback of each cause once: one module may fail for each file that imports it."""
    by_cause: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        by_cause.setdefault((problem.cause, problem.message), []).append(problem)
    for first, *others in by_cause.values():
        for line in first.detail.splitlines():
            print_error(f"  | {line}")
        if others and first.detail:
            importers = "file that imports it" if len(others) == 1 else "files that import it"
            print_error(f"  | and {len(others)} {importers}")


def _find_table_problems(table: RouteTable) -> Iterator[Problem]:
    for duplicate in table.duplicates:
        message = f"{duplicate.method} {duplicate.url} defined more than once"
        yield Problem(Kind.DUPLICATE, message, _prefix_with_api_folder(duplicate.files))
    for skipped in table.skipped:
        yield Problem(Kind.SKIPPED, skipped.reason, _prefix_with_api_folder((skipped.file,)))


def _boot_and_find_problems(
    app_dir: str, table: RouteTable, *, strict: bool, deploy: bool
) -> Iterator[Problem]:
    from treefold_http import Application, BootError, TreefoldError
    from treefold_logging import flush, scrub

    app = Application(app_dir)
    app.role = "command"
    try:
        # Output of handlers goes to standard error, not into the report.
        with (
            contextlib.redirect_stdout(sys.stderr),
            show_progress("Loading"),
            hide_findings_from_log(),
        ):
            app.boot()
        report, is_booted = app.report, True
    except TreefoldError as error:
        is_booted = False
        report = error.report if isinstance(error, BootError) else None
        if report is None:
            yield Problem(Kind.BROKEN, scrub(str(error)))
            return
    finally:
        flush()
    if is_booted:
        yield from _find_unserved_prefixes(app)
        yield from find_lost_guard_problems(app)
    for broken in report.broken:
        file = format_broken_path(broken, table)
        known = (file,) if file.endswith(".py") else ()  # `databases` is not a file
        line = find_failing_line(broken, file)
        yield Problem(
            Kind.BROKEN,
            broken.error,
            known,
            detail=broken.traceback,
            cause=broken.cause,
            line=line,
        )
    if deploy:
        yield from find_deploy_problems(app, is_booted=is_booted)
    if strict:
        yield from (Problem(Kind.NOTE, note) for note in report.notes)
        if is_booted:  # without routes there are no documents
            from treefold_http.openapi import scheme_clashes

            for clash in scheme_clashes(app):
                places = re.findall(r"(Api/\S+\.py):(\d+)", clash)
                files = tuple(file for file, _ in places)
                line = int(places[-1][1]) if places else None
                yield Problem(Kind.LINT, clash, files, code="security-scheme", line=line)
            from treefold_http.extensions import find_parameter_findings

            for file, code, message in find_parameter_findings(app.project, app.extensions):
                yield Problem(Kind.LINT, message, (file,), code=code)
            from treefold_cli._checks.stale_lock import find_stale_lock

            yield from find_stale_lock(app)
            from treefold_cli._checks.pending import load_models_and_find_pending

            for one in load_models_and_find_pending(app):
                message = f"{one.text} ({one.advice})" if one.advice else one.text
                yield Problem(Kind.LINT, message, code="pending")


def _find_unserved_prefixes(app: "Application") -> Iterator[Problem]:
    from treefold_cli._checks.later_mounts import describe_unserved_prefixes

    for message in describe_unserved_prefixes(app):
        yield Problem(Kind.BROKEN, message, ("Middleware/__init__.py",))


def _relativize_to_checkout(app_dir: str, problem: Problem) -> tuple[str, ...]:
    """Name files as annotations do: from the root of the checkout, else from where we are."""
    if problem.files == (ENVIRONMENT,):
        return ()
    checkout, place = os.environ.get("GITHUB_WORKSPACE", ""), os.path.realpath(app_dir)
    holds = checkout and Path(place).is_relative_to(os.path.realpath(checkout))
    below = os.path.relpath(place, os.path.realpath(checkout if holds else os.curdir))
    return tuple(Path(below, file).as_posix() for file in problem.files)


def _prefix_with_api_folder(files: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"Api/{file}" for file in files)
