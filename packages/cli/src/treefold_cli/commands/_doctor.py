"""`treefold doctor`: is everything there that the project needs?

Prints every finding as soon as it is known, so that a slow server is visible. The checks are in
`_checks.diagnosis`.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._console.errors import FAILURE, OK
from treefold_cli._console.options import AppDir, AsJson
from treefold_cli._console.output import print_line, print_marked_line
from treefold_cli._console.progress import show_progress
from treefold_cli._console.project import require_app_dir

if TYPE_CHECKING:
    from treefold_cli._checks.diagnosis import Finding

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


def doctor(app_dir: AppDir = ".", as_json: AsJson = False) -> int:
    """Check interpreter, packages, extras, layout, settings, secrets, handlers and servers.

    Each line is ok, warn or fail, with what to do. Exit code 1 when one fails. Databases are asked
    by their extension; Redis is that of TREEFOLD_REDIS_URL or REDIS_URL, and those of the settings
    redis_url and caches. Two seconds for each server.
    """
    require_app_dir(app_dir)
    counts = {"ok": 0, "warn": 0, "fail": 0}
    records: list[dict[str, str]] = []
    with show_progress("Looking"):
        for finding in _run_all_checks(Path(app_dir)):
            counts[finding.status] += 1
            if as_json:
                records.append(dataclasses.asdict(finding))
                continue
            advice = f"  ({finding.advice})" if finding.advice else ""
            mark = f"{finding.status:4}"
            line = f"{finding.topic:9} {finding.text}{advice}"
            print_marked_line(mark, line, colour=_COLOURS[finding.status])
    if as_json:
        print_line(json.dumps({"ok": not counts["fail"], "findings": records}))
    else:
        print_line(", ".join(f"{number} {status}" for status, number in counts.items()))
    return FAILURE if counts["fail"] else OK


def _run_all_checks(root: Path) -> Iterator["Finding"]:
    from treefold_cli._checks import diagnosis
    from treefold_cli._checks.auth_names import find_used_auth_names

    used = find_used_auth_names(root)
    yield from diagnosis.check_python_version()
    yield from diagnosis.check_framework_packages()
    yield from diagnosis.check_extras(used)
    yield from diagnosis.check_layout(root)
    settings, findings = diagnosis.read_settings_with_findings(root)
    yield from findings
    # Without settings, checks go on with the variables of the environment: one run shows all that
    # is wrong. Only the boot and the extensions cannot do without them.
    yield from diagnosis.check_secret_lengths(settings)
    if settings is not None:
        yield from diagnosis.check_extensions(root, settings)
        yield from diagnosis.check_by_booting(root, settings)
    yield from diagnosis.check_redis_connections(settings)
