"""The lock of a revision of git. Nothing is checked out and nothing is imported."""

import shutil
import subprocess

from treefold_cli._console.errors import CommandError
from treefold_cli._contract.lock_file import LOCK


def read_revision(app_dir: str, revision: str) -> str:
    """Return the text of the lock in a revision; empty if that has no lock.

    Args:
        app_dir: the application root, inside of a repository.
        revision: a branch, a tag or a commit, such as `origin/main`.

    Raises:
        CommandError: git is missing, the folder is in no repository, or the revision is unknown.
    """
    if shutil.which("git") is None:
        raise CommandError(
            f"Reading {LOCK} of {revision!r} needs git, which is not installed; compare two files"
            " with 'treefold-contract diff'"
        )
    if revision.startswith("-"):
        raise CommandError(f"Revision must not begin with '-', got {revision!r}")
    if _run(app_dir, "rev-parse", "--git-dir").returncode:
        raise CommandError(
            "This folder is in no git repository; compare two files with 'treefold-contract diff'"
        )
    known = _run(app_dir, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    if known.returncode:
        raise CommandError(_explain_unknown(app_dir, revision))
    found = _run(app_dir, "show", f"{known.stdout.strip()}:./{LOCK}")
    return "" if found.returncode else found.stdout


def _explain_unknown(app_dir: str, revision: str) -> str:
    message = f"Revision {revision!r} is not in this clone"
    if _run(app_dir, "rev-parse", "--is-shallow-repository").stdout.strip() != "true":
        return f"{message}; name another, or fetch it with 'git fetch'"
    remote, _, branch = revision.partition("/")
    if branch and remote in _run(app_dir, "remote").stdout.split():
        target = f"{branch}:refs/remotes/{revision}"
        return f"{message}, which is shallow; run 'git fetch --depth=1 {remote} {target}'"
    return f"{message}, which is shallow; run 'git fetch --unshallow', or fetch with a larger depth"


def _run(app_dir: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(  # noqa: S603 - no shell, and the revision is no option
        ["git", "-C", app_dir, *arguments],  # noqa: S607 - the git of the user
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
