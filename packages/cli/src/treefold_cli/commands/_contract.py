"""`treefold contract lock|check|diff|accept|show`: the lock of the API, in the folder and in git.

`lock`, `check` and `show` boot the project; `diff` and `accept` read files and git alone.
"""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from treefold_cli._console.completion import complete_versions
from treefold_cli._console.errors import (
    FAILURE,
    MISUSE,
    OK,
    CommandError,
    translate_to_command_error,
)
from treefold_cli._console.options import (
    AppDir,
    make_argument,
    make_choice,
    make_flag,
    make_option,
    parse_choice_option,
    parse_number_option,
)
from treefold_cli._console.output import format_count, print_error, print_line
from treefold_cli._console.project import require_api_folder
from treefold_cli._console.replace_file import replace_file
from treefold_cli._contract.held import measure_held
from treefold_cli._contract.judged import (
    Judged,
    judge_locks,
    load_contract_settings,
    locate_handlers,
)
from treefold_cli._contract.lock_file import (
    ACCEPTED,
    LOCK,
    build_lock,
    parse_lock,
    read_lock_text,
    require_lock,
)
from treefold_cli._contract.revisions import read_revision
from treefold_cli._contract.usage_log import read_usage_log

if TYPE_CHECKING:
    from treefold_contract import Finding, Lock

FORMATS = ("text", "json", "github", "markdown")
FAIL_ON = ("breaking", "warning", "source")
_FINGERPRINT = re.compile(r"[0-9a-f]{12}").fullmatch
_VERSION = re.compile(r"v[0-9]+").fullmatch
_LONG = 80
"""Characters of a value that diff shows."""
_CI = "treefold contract check && treefold contract diff origin/main"

Revision = Annotated[
    str, make_argument("[REV]", "A revision of git, such as origin/main.", complete_versions)
]


def lock(app_dir: AppDir = ".") -> int:
    """Write routes.lock: what clients rely on, one fact a line.

    Nothing is written while a file is broken.
    """
    require_api_folder(app_dir)
    from treefold_contract import write_lock

    made = build_lock(app_dir)
    text, known = write_lock(made.lock), read_lock_text(app_dir)
    counts = _count(made.lock)
    if text == known:
        print_line(f"{LOCK} is up to date: {counts}")
        return OK
    with translate_to_command_error(OSError):
        replace_file(str(Path(app_dir, LOCK)), text)
    print_line(f"wrote {LOCK}: {counts}")
    if not known:
        print_line(f"commit it, and let CI run: {_CI}")
    return OK


def check(
    app_dir: AppDir = ".",
    min_held: Annotated[
        str, make_option("--min-held", "N", "The percentage of answers that must be checked.")
    ] = "",
) -> int:
    """Check that routes.lock says what the project does.

    Exit code 1 if it does not; the changes are listed.
    """
    require_api_folder(app_dir)
    from treefold_contract import format_text, write_lock

    least = load_contract_settings(app_dir).min_held
    if min_held:
        least = parse_number_option(min_held, "--min-held", low=0, high=100)
    known = read_lock_text(app_dir)
    if not known:
        raise CommandError(f"No {LOCK}; write it with 'treefold contract lock'")
    made = build_lock(app_dir)
    if write_lock(made.lock) != known:
        judged = judge_locks(app_dir, parse_lock(known, LOCK), made.lock)
        if judged.findings:
            _print_block(format_text(judged.findings, name=LOCK, files=made.files))
        else:
            print_line(f"{LOCK} would be written in another way; no client notices")
        print_error(f"{LOCK} is not what the project does; run 'treefold contract lock'")
        return FAILURE
    share = measure_held(made.lock)
    print_line(f"{LOCK} is up to date: {_count(made.lock)}; {share.describe()}")
    if share.percent < least:
        for title in share.unknown:
            print_line(f"  no type: {title}")
        print_error(
            f"At least {least} % of the answers must be checked at run time, got"
            f" {share.percent:.0f} %; set response_model = true in treefold.toml and annotate them"
        )
        return FAILURE
    return OK


def diff(
    old: Annotated[
        str,
        make_argument("[REV|vM]", "A revision of git, HEAD by default; or a version, with vN."),
    ] = "HEAD",
    new: Annotated[str, make_argument("[vN]", "The other version.", complete_versions)] = "",
    output: Annotated[str, make_choice("--format", FORMATS, "How to print.")] = "text",
    fail_on: Annotated[
        str, make_choice("--fail-on", FAIL_ON, "The least verdict of exit code 1.")
    ] = "breaking",
    shows_all: Annotated[bool, make_flag("--all", "Show all findings, not ten lines.")] = False,
    used: Annotated[
        str, make_option("--used", "LOG", "A log with usage: what no caller sent is a note.")
    ] = "",
    app_dir: AppDir = ".",
) -> int:
    """Show what changed for clients, since a revision or between two versions.

    Reads routes.lock here and in git, and imports nothing. Exit code 1 if clients break or a route
    is less secure.
    """
    require_api_folder(app_dir)
    form = parse_choice_option(output, "--format", choices=FORMATS)
    least = parse_choice_option(fail_on, "--fail-on", choices=FAIL_ON)
    pair = _read_versions(app_dir, old, new) if new else _read_since(app_dir, old)
    if pair is None:
        print_line(f"{old} has no {LOCK}: this is the first")
        return OK
    usage = read_usage_log(used) if used else None
    if usage is not None and new:
        usage = usage.move_version(old, new)
    judged = judge_locks(app_dir, *pair, usage)
    _print_block(_format(judged, form, app_dir, shows_all=shows_all))
    return FAILURE if _fails(judged.findings, least) else OK


def accept(
    fingerprint: Annotated[str, make_argument("ID", "The twelve digits that diff shows.")],
    revision: Revision = "HEAD",
    reason: Annotated[str, make_option("--reason", "TEXT", "One line, for reviewers.")] = "",
    app_dir: AppDir = ".",
) -> int:
    """Accept a finding of diff, with a reason, in contract-accepted.txt.

    Commit the file with the change.
    """
    require_api_folder(app_dir)
    from treefold_contract import LockError, write_acceptance

    if not reason.strip():
        raise CommandError("Give a reason: --reason TEXT", code=MISUSE)
    found = _find_finding(app_dir, fingerprint, revision)
    with translate_to_command_error(LockError, code=MISUSE):
        line = write_acceptance(found, reason)
    with translate_to_command_error(OSError):
        _append_line(Path(app_dir, ACCEPTED), line)
    print_line(f"accepted: {line}")
    return OK


def show(
    wanted: Annotated[
        str, make_argument("[ROUTE|ID]", "A route such as 'GET /v1/user', or what diff found.")
    ] = "",
    revision: Revision = "HEAD",
    app_dir: AppDir = ".",
) -> int:
    """Print the facts of the project, of one route, or a finding of diff in full.

    Routes are read from the project as it is; nothing is written.
    """
    require_api_folder(app_dir)
    from treefold_contract import select_routes, write_lock

    if _FINGERPRINT(wanted):
        _print_finding(_find_finding(app_dir, wanted, revision), app_dir)
        return OK
    made = build_lock(app_dir).lock
    if not wanted:
        sys.stdout.write(write_lock(made))
        return OK
    kept = [route for route in made.routes if wanted in (route.title, route.title.split(" ")[1])]
    if not kept:
        raise CommandError(
            f"No route {wanted!r}; name one of 'treefold routes', such as 'GET /v1/user/{{id}}'"
        )
    text = write_lock(select_routes(made, kept))
    # the head and the name of the version say nothing of a route
    _print_block(text.partition("\n\n")[2].rstrip())
    return OK


def _count(lock: "Lock") -> str:
    routes, types = len(lock.routes), len(lock.definitions)
    return f"{format_count(routes, 'route')}, {format_count(types, 'type')}"


def _read_since(app_dir: str, revision: str) -> "tuple[Lock, Lock] | None":
    if _VERSION(revision):
        raise CommandError(
            f"{revision} is a version of the API; name the one that it is compared with too:"
            f" 'treefold contract diff {revision} vN'",
            code=MISUSE,
        )
    new = require_lock(app_dir)
    text = read_revision(app_dir, revision)
    return (parse_lock(text, f"{LOCK} of {revision}"), new) if text else None


def _read_versions(app_dir: str, old: str, new: str) -> "tuple[Lock, Lock]":
    from treefold_contract import select_version

    lock = require_lock(app_dir)
    known = [version.name for version in lock.versions]
    for name in (old, new):
        if name not in known:
            raise CommandError(
                f"No version {name!r} in {LOCK}; it has {', '.join(known)}", code=MISUSE
            )
    return select_version(lock, old, as_name=new), select_version(lock, new)


def _format(judged: Judged, form: str, app_dir: str, *, shows_all: bool) -> str:
    from treefold_contract import format_github, format_json, format_markdown, format_text

    titles = {" ".join(place.split(" ")[:2]) for each in judged.findings for place in each.places}
    files = locate_handlers(app_dir, titles)
    if form == "json":
        return format_json(judged.findings, judged.stale, files=files)
    if form == "github":
        return format_github(judged.findings, name=LOCK, files=files)
    if form == "markdown":
        return format_markdown(judged.findings, files=files)
    return format_text(judged.findings, judged.stale, name=LOCK, files=files, shows_all=shows_all)


def _fails(findings: "list[Finding]", least: str) -> bool:
    from treefold_contract import GRAVITY

    # security that is weaker fails wherever a break does
    failing = GRAVITY[: max(1, [str(each) for each in GRAVITY].index(least)) + 1]
    return any(each.verdict in failing and not each.accepted for each in findings)


def _find_finding(app_dir: str, fingerprint: str, revision: str) -> "Finding":
    pair = _read_since(app_dir, revision)
    found = [] if pair is None else judge_locks(app_dir, *pair).findings
    for each in found:
        if each.fingerprint == fingerprint:
            return each
    raise CommandError(
        f"'treefold contract diff {revision}' finds no {fingerprint!r}; name the revision that the"
        " change is compared with, such as origin/main"
    )


def _print_finding(finding: "Finding", app_dir: str) -> None:
    from treefold_contract import format_text

    files = locate_handlers(app_dir, {" ".join(place.split(" ")[:2]) for place in finding.places})
    _print_block(format_text([finding], name=LOCK, files=files, shows_all=True))
    if len(finding.witness) > _LONG:
        print_line(f"  value: {finding.witness}")
    for place in finding.places[1:]:
        print_line(f"  also {place}")


def _append_line(path: Path, line: str) -> None:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    break_before = "\n" if text and not text.endswith("\n") else ""
    replace_file(str(path), f"{text}{break_before}{line}\n")


def _print_block(text: str) -> None:
    for line in text.split("\n"):
        print_line(line)
