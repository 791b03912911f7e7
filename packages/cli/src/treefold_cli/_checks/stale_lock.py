"""A committed `routes.lock` that does not say what the project does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from treefold_cli._checks.findings import Kind, Problem
from treefold_cli._contract.lock_file import LOCK, read_lock_text

if TYPE_CHECKING:
    from treefold_http import Application


def find_stale_lock(app: "Application") -> Iterator[Problem]:
    """Yield a finding if the lock in the folder of a project is not the one that it has now.

    A project without a lock, and one with broken files, which are findings of their own, have none.
    """
    known = read_lock_text(str(app.root))
    if not known or app.report.broken:
        return
    from treefold_contract import write_lock
    from treefold_http.contract import UnreadableProject, build_project_lock

    try:
        text = write_lock(build_project_lock(app).lock)
    except UnreadableProject as error:
        yield Problem(Kind.LINT, str(error), (LOCK,), code="stale-lock")
        return
    if text != known:
        message = "not what the project does; run 'treefold contract lock'"
        yield Problem(Kind.LINT, message, (LOCK,), code="stale-lock")
