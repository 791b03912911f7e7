"""`treefold version ...`: versions of the API.

Files are made and compared in treefold-scaffold; the list is made here, of the route table and the
files of each version.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from treefold_cli._console.completion import complete_versions
from treefold_cli._console.errors import (
    FAILURE,
    MISUSE,
    OK,
    CommandError,
    translate_to_command_error,
)
from treefold_cli._console.options import AppDir, AsJson, make_argument, make_flag, make_option
from treefold_cli._console.output import format_count, print_error, print_line, print_marked_line
from treefold_cli._console.progress import show_progress
from treefold_cli._console.project import require_api_folder
from treefold_cli._console.route_lines import sort_by_url
from treefold_cli._console.version_stages import format_stage, make_stage_record
from treefold_cli._contract.usage_log import read_usage_log
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
    overlay: Annotated[bool, make_flag("--overlay", "Inherit all files; copy none.")] = False,
    plan_only: Annotated[bool, make_flag("--plan", "Print the plan; write nothing.")] = False,
    as_json: AsJson = False,
    app_dir: AppDir = ".",
) -> int:
    """Create a version from another one, completely or not at all.

    Endpoints and local services are copied, and version-qualified imports are rewritten. With
    --overlay the version serves the files of the other one, except where it has its own.
    """
    require_api_folder(app_dir)
    from treefold_scaffold import (
        ScaffoldError,
        SourceError,
        plan_overlay,
        plan_version,
        write_version,
    )

    if overlay and empty:
        raise CommandError("--overlay and --empty exclude each other; leave out one", code=MISUSE)
    with (
        translate_to_command_error(ScaffoldError, code=MISUSE),
        translate_to_command_error(SourceError, RouterError),
        show_progress("Reading the version"),
    ):
        if overlay:
            plan = plan_overlay(app_dir, number, source=source or None)
        else:
            plan = plan_version(app_dir, number, source=source or None, empty=empty)
    if not plan_only:
        with translate_to_command_error(ScaffoldError), show_progress("Writing the version"):
            write_version(app_dir, plan)
    if as_json:
        print_line(json.dumps(_make_plan_record(plan, written=not plan_only)))
    else:
        _print_plan(plan, written=not plan_only)
    return OK


def flatten(
    number: Annotated[str, make_argument("N", "The version.", complete_versions)],
    plan_only: Annotated[bool, make_flag("--plan", "Print the plan; write nothing.")] = False,
    as_json: AsJson = False,
    app_dir: AppDir = ".",
) -> int:
    """Copy what a version inherits into it, so that it inherits no longer.

    Its answers stay the same.
    """
    require_api_folder(app_dir)
    from treefold_scaffold import ScaffoldError, SourceError, flatten_version, plan_flatten

    with (
        translate_to_command_error(ScaffoldError, code=MISUSE),
        translate_to_command_error(SourceError, RouterError),
        show_progress("Reading the version"),
    ):
        plan = plan_flatten(app_dir, number)
    if not plan_only:
        with translate_to_command_error(ScaffoldError), show_progress("Writing the version"):
            flatten_version(app_dir, plan)
    files = [entry for entry in plan.entries if entry.action.value != "folder"]
    if as_json:
        shown = [{"path": e.path, "action": e.action.value, "from": e.layer} for e in files]
        record = {"version": plan.version, "from": plan.chain, "written": not plan_only}
        print_line(json.dumps(record | {"files": shown, "removed": plan.marks}))
        return OK
    if plan_only:
        print_line(f"would flatten Api/{plan.version}:")
        for entry in files:
            print_line(f"  {entry.action.value:7}  {entry.path}  from Api/{entry.layer}")
        for mark in plan.marks:
            print_line(f"  remove   {mark}")
    else:
        chain = ", ".join(f"Api/{name}" for name in plan.chain)
        counts = f"{format_count(len(files), 'file')} from {chain}"
        marks = f", {format_count(len(plan.marks), 'mark')} removed" if plan.marks else ""
        print_line(f"flattened: Api/{plan.version}, {counts}{marks}")
    return OK


def delete(
    number: Annotated[str, make_argument("N", "The version.", complete_versions)],
    app_dir: AppDir = ".",
) -> int:
    """Delete a version with all its files, unless another one inherits from it."""
    require_api_folder(app_dir)
    from treefold_scaffold import ScaffoldError, delete_version

    with (
        translate_to_command_error(ScaffoldError, code=MISUSE),
        translate_to_command_error(RouterError),
    ):
        name, files = delete_version(app_dir, number)
    print_line(f"deleted: Api/{name}, {format_count(files, 'file')}")
    return OK


def relative(
    number: Annotated[str, make_argument("N", "The version.", complete_versions)],
    plan_only: Annotated[bool, make_flag("--plan", "Print the plan; write nothing.")] = False,
    app_dir: AppDir = ".",
) -> int:
    """Make imports of a version by its name relative, so that another one can inherit it.

    Every other byte stays. Exit code 1 where a file still names its version: the line is printed,
    to be changed by hand.
    """
    require_api_folder(app_dir)
    from treefold_scaffold import ScaffoldError, SourceError, plan_relative, write_relative

    with (
        translate_to_command_error(ScaffoldError, code=MISUSE),
        translate_to_command_error(SourceError),
        show_progress("Reading the version"),
    ):
        files = plan_relative(app_dir, number)
    if not plan_only:
        write_relative(app_dir, files)
    changed = [one for one in files if one.places]
    verb = "would rewrite" if plan_only else "rewritten"
    for one in changed:
        print_line(f"{verb}: {one.path}, {format_count(one.places, 'import')}")
    for one in files:
        for line in one.left:
            print_error(f"not rewritten: {one.path}:{line} has no relative form; change it")
    if not files:
        print_line("No file names its version in an import")
    return FAILURE if any(one.left for one in files) else OK


def list(app_dir: AppDir = ".", as_json: AsJson = False) -> int:
    """List the versions: routes, files of own services, since when, and their stage.

    Since when is the date of the oldest file in the version. The stage is that of its version.toml:
    draft, deprecated, sunset.
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
            stage = format_stage(table, record["version"])
            more = f"{_format_layers(record)}  {stage}" if stage else _format_layers(record)
            print_line(f"{shown} {services:4} {files:13}  since {since}{latest}{more}")
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


def usage(
    number: Annotated[str, make_argument("N", "The version.", complete_versions)],
    log: Annotated[
        str, make_option("--log", "FILE", "The log of the service; else standard input.")
    ] = "-",
    as_json: AsJson = False,
    app_dir: AppDir = ".",
) -> int:
    """List who still calls a version: each route with its requests, its last hour and callers.

    The log is that of a service with the setting usage. Routes without a call are listed too.
    """
    api = require_api_folder(app_dir)
    with translate_to_command_error(RouterError):
        table = RouteTable.scan(api)
    name = number if number in table.versions else f"v{number}"
    if name not in table.versions:
        known = ", ".join(table.versions) or "none"
        raise CommandError(f"No version {number!r} has routes; there is {known}", code=MISUSE)
    found = read_usage_log(log)
    titles = [f"{r.method} {r.template}" for r in sort_by_url(table.routes) if r.version == name]
    called = [(title, found.find_route(title)) for title in titles]
    if as_json:
        routes = [
            {
                "route": title,
                "count": each.count if each else 0,
                "last": each.last if each else None,
                "callers": each.callers if each else {},
                "query": each.query if each else {},
            }
            for title, each in called
        ]
        record = {"version": name, "from": found.since, "to": found.until, "routes": routes}
        print_line(json.dumps(record))
        return OK
    print_line(f"{name}, from {found.since} to {found.until}")
    width = max(map(len, titles))
    for title, each in called:
        if each is None:
            print_line(f"{title:{width}}  not called")
            continue
        count = format_count(each.count, "request")
        print_line(f"{title:{width}}  {count}, last until {each.last}")
        for caller, count in _list_callers(each.callers):
            print_line(f"  {count:8}  {caller}")
    return OK


_SHOWN_CALLERS = 5


def _list_callers(callers: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """Yield the callers with the most requests, and the sum of the others."""
    ordered = sorted(callers.items(), key=lambda pair: (pair[0] == "other", -pair[1], pair[0]))
    yield from ordered[:_SHOWN_CALLERS]
    if rest := ordered[_SHOWN_CALLERS:]:
        yield "other", sum(count for _, count in rest)


def _make_plan_record(plan: "VersionPlan", *, written: bool) -> dict[str, Any]:
    files = [
        {"path": e.path, "action": e.action.value, "places": e.places, "computed": e.computed}
        for e in _list_plan_files(plan)
    ]
    return {"version": plan.target, "from": plan.source, "written": written, "files": files}


def _print_plan(plan: "VersionPlan", *, written: bool) -> None:
    files = _list_plan_files(plan)
    if written and any(entry.action.value == "write" for entry in files):
        print_line(f"created: Api/{plan.target}, which inherits from Api/{plan.source}")
    elif written:
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
    record: dict[str, Any] = {
        "version": name,
        "latest": name == table.latest,
        "routes": [
            f"{route.method} {route.template}" for route in table.routes if route.version == name
        ],
        "services": [file for file, _ in local_services(api, name)],
        "since": date.fromtimestamp(min(changed)).isoformat() if changed else None,
    }
    if name in table.layers.chains:
        layers = Counter(route.layer for route in table.routes if route.version == name)
        record["inherits"] = table.layers.chains[name][1]
        record["layers"] = {layer: layers[layer] for layer in table.layers.chains[name]}
        record["gone"] = len(table.layers.list_hidden_routes(name))
    if not table.layers.is_served(name):
        record["served"] = False
    return record | make_stage_record(table, name)


def _format_layers(record: dict[str, Any]) -> str:
    if not record.get("served", True):
        return "  not served"
    if "inherits" not in record:
        return ""
    counts = record["layers"]
    inherited = [f"{n} from {layer}" for layer, n in counts.items() if layer != record["version"]]
    parts = [f"{counts[record['version']]} own", *inherited]
    if record["gone"]:
        parts.append(f"{record['gone']} gone")
    return f"  {', '.join(parts)}"
