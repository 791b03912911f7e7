"""The pages that came with the installed package treefold, and their names.

The package is found and not imported; this package works without it, and then says where the pages
are.
"""

import difflib
import gzip
import importlib.util
import json
import os
import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treefold_cli._console.errors import MISUSE, CommandError

_PACKAGE = "treefold"
_FILE = "pages.json.gz"
_SITE = "https://treefold.github.io/treefold/"
_FENCE = re.compile(r" *(`{3,})")
_HEADING = re.compile(r"(#{1,6}) (.+)")


@dataclass(frozen=True, slots=True)
class Page:
    """One page of the documentation.

    Attributes:
        path: the file of the page, such as `guides/models.md`.
        section: its heading in the list of pages, such as `Guides: Data`; empty for the first page.
        title: its title.
        text: the page in Markdown.
    """

    path: str
    section: str
    title: str
    text: str

    @property
    def name(self) -> str:
        """The name that the page is asked for by: `models`, or the folder of an `index.md`."""
        stem = self.path.removesuffix(".md")
        folder = stem.removesuffix("/index")
        return folder if folder != stem else posixpath.basename(stem)


@dataclass(frozen=True, slots=True)
class Section:
    """One heading of a page, with the text below it.

    Attributes:
        page: the page.
        anchor: the name of the heading in addresses, such as `rows-of-a-page`; empty for the text
            below the title.
        heading: the heading, without marks.
        text: the Markdown from the heading to the next one, the heading included.
        level: the number of marks of the heading.
    """

    page: Page
    anchor: str
    heading: str
    text: str
    level: int

    @property
    def name(self) -> str:
        """The name that the section is asked for by, such as `models#meta`."""
        return f"{self.page.name}#{self.anchor}" if self.anchor else self.page.name


def read_pages() -> Sequence[Page]:
    """Return all pages of the installed version, in the order of the site.

    Raises:
        CommandError: the package is not installed, or has no pages.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    if not folders:
        raise CommandError(
            f"The pages come with the package {_PACKAGE!r}, which is not installed;"
            f" pip install {_PACKAGE}, or read them at {_SITE}"
        )
    file = Path(next(iter(folders)), _FILE)
    try:
        listed = json.loads(gzip.decompress(file.read_bytes()))
    except FileNotFoundError:
        raise CommandError(
            f"The installed package {_PACKAGE!r} has no file {_FILE!r}; install it again, or read"
            f" the pages at {_SITE}"
        ) from None
    return [Page(**each) for each in listed]


def find_page(pages: Sequence[Page], wanted: str) -> Page:
    """Return the page of a name, of a path with or without its ending, or of a title.

    Raises:
        CommandError: there is no such page.
    """
    key = wanted.strip("/").removesuffix(".md").lower()
    for page in pages:
        if key in (page.name.lower(), page.path.removesuffix(".md"), page.title.lower()):
            return page
    names = [page.name for page in pages]
    close = difflib.get_close_matches(key, names, 1)
    hint = f"did you mean {close[0]!r}, or" if close else "list all with 'treefold docs', or"
    raise CommandError(
        f"No page {wanted!r}; {hint} search: treefold docs --search {wanted!r}", code=MISUSE
    )


def find_section(page: Page, anchor: str) -> str:
    """Return the Markdown of a heading and of those below it.

    Raises:
        CommandError: the page has no such heading.
    """
    sections = split_sections(page)
    for place, section in enumerate(sections):
        if section.anchor == anchor:
            below = [section.text]
            for inner in sections[place + 1 :]:
                if inner.level <= section.level:
                    break
                below.append(inner.text)
            return "\n".join(below)
    anchors = [each.anchor for each in sections if each.anchor]
    close = difflib.get_close_matches(anchor, anchors, 1)
    hint = f"did you mean {close[0]!r}" if close else f"it has {', '.join(anchors) or 'none'}"
    raise CommandError(f"Page {page.name!r} has no section {anchor!r}; {hint}", code=MISUSE)


def split_sections(page: Page) -> Sequence[Section]:
    """Return the parts of a page between its headings; a block of code has no headings."""
    sections: list[Section] = []
    lines: list[str] = []
    title, level, fence = page.title, 1, ""

    def end_section() -> None:
        anchor = make_anchor(title) if level > 1 else ""
        if lines:
            sections.append(Section(page, anchor, title, "\n".join(lines), level))

    for line in page.text.splitlines():
        mark = _FENCE.match(line)
        heading = None if fence or mark else _HEADING.fullmatch(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif mark:
            fence = mark[1]
        if heading is not None:
            end_section()
            lines = []
            level, title = len(heading[1]), heading[2].replace("`", "")
        lines.append(line)
    end_section()
    return sections


def make_anchor(heading: str) -> str:
    """Return the name of a heading in addresses, as the site makes it."""
    words = re.sub(r"[^\w\s-]", "", heading.lower()).strip()
    return re.sub(r"[\s-]+", "-", words)


def resolve_link(page: Page, target: str, pages: Sequence[Page]) -> str:
    """Return the name that the target of a link is asked for by; empty where it is no page."""
    path, _, anchor = target.partition("#")
    if not path:
        return f"{page.name}#{anchor}"
    found = posixpath.normpath(posixpath.join(os.path.dirname(page.path), path))
    for other in pages:
        if other.path == found:
            return f"{other.name}#{anchor}" if anchor else other.name
    return ""
