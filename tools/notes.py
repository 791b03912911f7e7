"""`python tools/notes.py TAG`: the changelog section of a tag such as router-v0.2.0.

It is read from the tag, not from the checkout.
"""

import sys
from pathlib import Path

from repository import ROOT, git, of_tag


def main(words: list[str], root: Path = ROOT) -> None:
    if len(words) != 1 or words[0].startswith("-"):
        sys.exit("usage: python tools/notes.py TAG")
    package, version = of_tag(root, words[0])
    text = git(root, "show", f"{words[0]}:{package.changelog.relative_to(root).as_posix()}")
    section = package.section(f"## {version}", text + "\n")
    if not section:
        sys.exit(f"The changelog at {words[0]} has no section '## {version}'")
    print(section)


if __name__ == "__main__":
    main(sys.argv[1:])
