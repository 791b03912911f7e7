"""The console script `treefold-contract`: compares two locks, accepts findings, writes clients.

It reads files and imports no project, so that a repository of clients can run it alone. Exit codes:
0 nothing fails, 1 clients break, security is weaker or a client is stale, 2 a file or an argument
is not valid.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

from treefold_contract.__about__ import __version__
from treefold_contract._clients.client_files import (
    LANGUAGES,
    find_stale_client_files,
    update_client_files,
    write_client,
)
from treefold_contract._errors import LockError
from treefold_contract._report.accepted import apply_accepted, read_accepted, write_acceptance
from treefold_contract._report.reports import format_json, format_text
from treefold_contract._report.usage import apply_usage, read_usage
from treefold_contract._rules.findings import Finding
from treefold_contract._rules.lock_diff import diff_locks
from treefold_contract._rules.rule_table import GRAVITY
from treefold_contract._text.lock_reader import read_lock

ACCEPTED = "contract-accepted.txt"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    options = build_parser().parse_args(arguments)
    runs = {"accept": run_accept, "client": run_client, "diff": run_diff}
    try:
        return runs[options.command](options)
    except (LockError, OSError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = argparse.ArgumentParser(
        prog="treefold-contract",
        description="Compare two lock files of an API, and write its clients.",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True)
    diff = commands.add_parser("diff", help="show what changed from one lock to another")
    add_locks(diff)
    diff.add_argument("--format", choices=("text", "json"), default="text")
    diff.add_argument("--all", action="store_true", help="show all findings, not ten lines")
    diff.add_argument("--used", help="a log with lines of usage: what no caller sent is a note")
    diff.add_argument("--fail-on", choices=("breaking", "warning", "source"), default="breaking")
    accept = commands.add_parser("accept", help="accept a finding, with a reason")
    add_locks(accept)
    accept.add_argument("fingerprint", help="the twelve digits that diff shows")
    accept.add_argument("--reason", required=True, help="one line, for reviewers")
    client = commands.add_parser("client", help="write a client of a lock")
    client.add_argument("language", choices=sorted(LANGUAGES))
    client.add_argument("--from", dest="lock", required=True, help="the lock; - reads stdin")
    client.add_argument("--out", required=True, type=Path, help="the folder of the client")
    client.add_argument("--name", default="client", help="the name of its files or package")
    client.add_argument("--version", dest="only", default="", help="one version, such as v2")
    client.add_argument("--check", action="store_true", help="write nothing; exit 1 if it is stale")
    return parser


def add_locks(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of two locks, and of how they are judged."""
    parser.add_argument("old", help="the lock before; - reads standard input")
    parser.add_argument("new", help="the lock after; - reads standard input")
    parser.add_argument("--accepted", default=ACCEPTED, help="the file of accepted findings")
    parser.add_argument("--on", type=date.fromisoformat, help="the day that sunsets are judged on")
    parser.add_argument(
        "--min-notice-days", type=int, default=0, help="the notice that a sunset must give"
    )


def find_all(options: argparse.Namespace) -> list[Finding]:
    """Return the findings of the two locks that the arguments name."""
    old, new = (read_lock(read_file(name)) for name in (options.old, options.new))
    return diff_locks(old, new, today=options.on, min_notice_days=options.min_notice_days)


def read_file(name: str) -> str:
    """Return the text of a file, or of standard input."""
    if name == "-":
        return sys.stdin.buffer.read().decode()
    return Path(name).read_text(encoding="utf-8")


def run_diff(options: argparse.Namespace) -> int:
    """Print what changed; return 1 if something fails."""
    path = Path(options.accepted)
    accepted = read_accepted(path.read_text(encoding="utf-8")) if path.exists() else []
    found = find_all(options)
    if options.used:
        found = apply_usage(found, read_usage(read_file(options.used).splitlines()))
    findings, stale = apply_accepted(found, accepted)
    if options.format == "json":
        print(format_json(findings, stale))
    else:
        print(format_text(findings, stale, name=options.new, shows_all=options.all))
    least = 1 if options.fail_on == "breaking" else GRAVITY.index(options.fail_on)
    failing = GRAVITY[: least + 1]
    return int(any(each.verdict in failing and not each.accepted for each in findings))


def run_accept(options: argparse.Namespace) -> int:
    """Add a line to the file of accepted findings."""
    found = [each for each in find_all(options) if each.fingerprint == options.fingerprint]
    if not found:
        raise LockError(
            f"No finding has the fingerprint {options.fingerprint!r}; run diff to see them"
        )
    line = write_acceptance(found[0], options.reason)
    with Path(options.accepted).open("a", encoding="utf-8", newline="\n") as file:
        file.write(f"{line}\n")
    print(f"accepted: {line}")
    return 0


def run_client(options: argparse.Namespace) -> int:
    """Write the files of a client that differ, or with --check only name them."""
    lock = read_lock(read_file(options.lock))
    files = write_client(options.language, lock, name=options.name, version=options.only)
    if not options.check:
        written = update_client_files(options.out, files)
        print("\n".join(f"wrote: {path}" for path in written) or "nothing to write")
        return 0
    stale = find_stale_client_files(options.out, files)
    for path in stale:
        print(f"stale: {path}; write it again without --check")
    return int(bool(stale))
