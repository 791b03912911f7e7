"""Read the pages of the documentation as text, in the order of the site.

`python tools/docs/pages.py FILE` packs them into the archive that the wheel of treefold holds.
Comments are left out: they hold blocks that the tests run and readers do not see.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GENERATED = "reference/"
_FENCE = re.compile(r" *(`{3,})")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Page:
    """One page.

    Attributes:
        path: its file below the folder of the pages, such as `guides/models.md`.
        section: its heading in the navigation, such as `Guides: Data`; empty for the first page.
        title: its first heading, without marks.
        text: the page in Markdown, without comments.
    """

    path: str
    section: str
    title: str
    text: str


def read_pages(docs: Path = DOCS) -> list[Page]:
    """Return the written pages in the order of the navigation, without those that are generated."""
    settings = tomllib.loads((docs / "zensical.toml").read_text(encoding="utf-8"))
    return [
        make_page(docs, path, section)
        for path, section in walk_navigation(settings["project"]["nav"])
        if not path.startswith(GENERATED)
    ]


def make_page(docs: Path, path: str, section: str) -> Page:
    """Read one page."""
    text = remove_comments((docs / path).read_text(encoding="utf-8"))
    title = _TITLE.search(text)
    if title is None:
        sys.exit(f"{path} has no line '# TITLE'; give the page one")
    return Page(path, section, title[1].replace("`", ""), text)


def walk_navigation(entries: list[Any], section: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path of each page and its headings."""
    for entry in entries:
        if isinstance(entry, str):
            yield entry, section
            continue
        for title, inner in entry.items():
            below = f"{section}: {title}" if section else title
            listed = cast("list[Any]", inner) if isinstance(inner, list) else [inner]
            yield from walk_navigation(listed, below)


def remove_comments(text: str) -> str:
    """Return a page without its comments; those inside of a block of code are a part of it."""
    kept: list[str] = []
    fence = ""
    in_comment = False
    for line in text.splitlines():
        if in_comment:
            in_comment = "-->" not in line
            continue
        mark = _FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif mark:
            fence = mark[1]
        elif line.lstrip().startswith("<!--"):
            in_comment = "-->" not in line
            continue
        if line or (kept and kept[-1]) or fence:
            kept.append(line)
    return "\n".join(kept).strip() + "\n"


def pack_pages(docs: Path, target: Path) -> None:
    """Write all pages as one compressed list of JSON; the same pages make the same bytes."""
    listed = json.dumps([asdict(page) for page in read_pages(docs)], ensure_ascii=False)
    made = target.with_name(f".{target.name}")
    made.write_bytes(gzip.compress(listed.encode(), 9, mtime=0))
    made.replace(target)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tools/docs/pages.py FILE")
    pack_pages(DOCS, Path(sys.argv[1]))
