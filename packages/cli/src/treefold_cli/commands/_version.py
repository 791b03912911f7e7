"""`treefold version create|list|diff`: versions of the API.

The copy and the comparison are made in treefold-scaffold; the list is made here, of the route table
and the files of each version.
"""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from treefold_cli._console.completion import complete_versions
from treefold_cli._console.errors import MISUSE, OK, translate_to_command_error
from treefold_cli._console.options import AppDir, AsJson, make_argument, make_flag, make_option
from treefold_cli._console.output import format_count, print_error, print_line, print_marked_line
from treefold_cli._console.progress import show_progress
from treefold_cli._console.project import require_api_folder
from treefold_router import RouterError, RouteTable, version_number

if TYPE_CHECKING:
    from treefold_scaffold import Entry, VersionPlan

Number = Annotated[str, make_argument("N", "A version: 2 or v2.")]


def create(
    number: Number,
    source: Annotated[
        str, make_option("--from", "M", "The version to copy; else the latest.", complete_versions)
    ] = "",
    empty: Annotated[bool, make_flag("--empty", "Endpoints only, each answering 501.")] = False,
    plan_only: Annotated[bool, make_flag("--plan", "Print the plan; write nothing.")] = False,
    as_json: AsJson = False,
    app_dir: AppDir = ".",
) -> int:
    """Create a version from another one, completely or not at all.

    Endpoints and local services are copied, and version-qualified imports are rewritten.
    """
    require_api_folder(app_dir)
    from treefold_scaffold import ScaffoldError, SourceError, plan_version, write_version

    with (
        translate_to_command_error(ScaffoldError, code=MISUSE),
        translate_to_command_error(SourceError),
        show_progress("Reading the version"),
    ):
        plan = plan_version(app_dir, number, source=source or None, empty=empty)
    if not plan_only:
        with translate_to_command_error(ScaffoldError), show_progress("Writing the version"):
            write_version(app_dir, plan)
    if as_json:
        print_line(json.dumps(_make_plan_record(plan, written=not plan_only)))
    else:
        _print_plan(plan, written=not plan_only)
    return OK


def list(app_dir: AppDir = ".", as_json: AsJson = False) -> int:
    """List the versions: routes, files of own services, and since when.

    Since when is the date of the oldest file in the version.
    """
    api = require_api_folder(app_dir)
    with translate_to_command_error(RouterError):
        table = RouteTable.scan(api)
    found = [_make_version_record(api, table, name) for name in _list_version_names(api)]
    if as_json:
        print_line(json.dumps(found))
    elif found:
        for record in found:
            latest = "  latest" if record["latest"] else ""
            routes, services = len(record["routes"]), len(record["services"])
            shown = f"{record['version']:5} {routes:4} {'route' if routes == 1 else 'routes':6}"
            files = "service file" if services == 1 else "service files"
            since = record["since"] or "-"
            print_line(f"{shown} {services:4} {files:13}  since {since}{latest}")
    else:
        print_error("No versions; make one with 'treefold create v1/health get'")
    return OK


def diff(
    first: Annotated[str, make_argument("M", "The version to compare with.", complete_versions)],
    second: Annotated[str, make_argument("N", "The other version.", complete_versions)],
    as_json: AsJson = False,
    app_dir: AppDir = ".",
) -> int:
    """Compare two versions: routes and local services.

    A file that differs only by the version in its imports is the same. The exit code is 0 also
    where versions differ.
    """
    api = require_api_folder(app_dir)
    from treefold_scaffold import ScaffoldError, compare_versions, version_name

    with (
        translate_to_command_error(ScaffoldError, code=MISUSE),
        translate_to_command_error(RouterError),
        show_progress("Comparing"),
    ):
        old, new = (
            text if text in _list_version_names(api) else version_name(text)
            for text in (first, second)
        )
        found = compare_versions(app_dir, old, new)
    if as_json:
        record: dict[str, Any] = {"from": old, "to": new}
        for name in found.__slots__:
            items: Sequence[Any] = getattr(found, name)
            record[name] = [item if isinstance(item, str) else " ".join(item) for item in items]
        print_line(json.dumps(record))
        return OK
    for mark, colour, routes, files in (
        ("-", "red", found.removed, found.services_removed),
        ("+", "green", found.added, found.services_added),
        ("~", "yellow", found.changed, found.services_changed),
    ):
        for method, url in routes:
            print_marked_line(mark, f"{method} {url}", colour=colour)
        for file in files:
            print_marked_line(mark, file, colour=colour)
    if found.is_empty:
        print_line(f"{old} and {new} have the same routes and services")
    return OK


def _make_plan_record(plan: "VersionPlan", *, written: bool) -> dict[str, Any]:
    files = [
        {"path": e.path, "action": e.action.value, "places": e.places, "computed": e.computed}
        for e in _list_plan_files(plan)
    ]
    return {"version": plan.target, "from": plan.source, "written": written, "files": files}


def _print_plan(plan: "VersionPlan", *, written: bool) -> None:
    files = _list_plan_files(plan)
    if written:
        counts = _summarize_file_counts(files)
        print_line(f"created: Api/{plan.target} from Api/{plan.source}, {counts}")
    else:
        print_line(f"would create Api/{plan.target} from Api/{plan.source}:")
        for entry in files:
            print_line(f"  {entry.action.value:7}  {entry.path}")
    for entry in files:
        for line in entry.computed:
            # lines are the same in both: a rewrite stays within its line
            advice = f"check that it does not lead to {plan.source}"
            place = f"Api/{plan.target}/{entry.path}:{line}"
            print_error(f"not rewritten: {place} imports a computed name; {advice}")


def _list_plan_files(plan: "VersionPlan") -> "Sequence[Entry]":
    files = (entry for entry in plan.entries if entry.action.value != "folder")
    return sorted(files, key=lambda entry: entry.path.split("/"))


def _summarize_file_counts(files: "Sequence[Entry]") -> str:
    rewritten = sum(entry.action.value == "rewrite" for entry in files)
    emptied = sum(entry.action.value == "empty" for entry in files)
    changed = f"{emptied} empty" if emptied else f"imports rewritten in {rewritten}"
    return f"{format_count(len(files), 'file')}, {changed}"


def _list_version_names(api: Path) -> Sequence[str]:
    names = (entry.name for entry in api.iterdir() if entry.is_dir())
    numbered = [(number, name) for name in names if (number := version_number(name)) is not None]
    return [name for _, name in sorted(numbered)]


def _make_version_record(api: Path, table: RouteTable, name: str) -> dict[str, Any]:
    from treefold_scaffold import local_services

    files = (path for path in (api / name).rglob("*") if path.is_file())
    changed = [path.stat().st_mtime for path in files if "__pycache__" not in path.parts]
    return {
        "version": name,
        "latest": name == table.latest,
        "routes": [
            f"{route.method} {route.template}" for route in table.routes if route.version == name
        ],
        "services": [file for file, _ in local_services(api / name)],
        "since": date.fromtimestamp(min(changed)).isoformat() if changed else None,
    }
