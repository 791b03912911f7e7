"""`python tools/changed.py [BASE] [--json]`: the packages that a diff touches, dependents included.

The diff is from the merge base with BASE (`main`) to the working tree. Files outside of `packages/`
touch every package, unless only the integration tests read them.
"""

import json
import sys
from pathlib import Path

from repository import ROOT, git, packages

NONE = ("tests-integration/", "README.md", "LICENSE", "docs/")
"""Read by integration tests alone, which always run."""
NEW_BRANCH = "0" * 40
"""The commit before the first one of a branch, as hosts of repositories spell it."""


def main(words: list[str], root: Path = ROOT) -> None:
    names = [word for word in words if word != "--json"]
    base = names[0] if names else "main"
    if len(names) > 1 or base.startswith("-"):
        sys.exit("usage: python tools/changed.py [BASE] [--json]")
    found = sorted(packages(root)) if base == NEW_BRANCH else changed(root, base)
    print(json.dumps(found) if "--json" in words else "\n".join(found))


def changed(root: Path, base: str) -> list[str]:
    """Return the folders of the touched packages and of all that depend on them."""
    files = changed_files(root, base)
    touched = {folder for file in files for folder in touched_by(file, set(packages(root)))}
    return sorted(with_dependents(root, touched))


def changed_files(root: Path, base: str = "main") -> list[str]:
    """Return the files of a diff from the merge base to the working tree, new ones included."""
    start = git(root, "merge-base", base, "HEAD")
    files = git(root, "diff", "--name-only", "--no-renames", start).splitlines()
    return files + git(root, "ls-files", "--others", "--exclude-standard").splitlines()


def touched_by(file: str, folders: set[str]) -> set[str]:
    kind, _, rest = file.partition("/")
    if kind == "packages" and rest.partition("/")[0] in folders:
        return {rest.partition("/")[0]}
    return set() if file.startswith(NONE) else folders


def with_dependents(root: Path, touched: set[str]) -> set[str]:
    found = packages(root)
    before: set[str] = set()
    while touched != before:
        before = touched
        names = {found[folder].distribution for folder in before}
        touched = before | {each.folder for each in found.values() if names & each.ranges.keys()}
    return touched


if __name__ == "__main__":
    main(sys.argv[1:])
