"""`treefold docs`: the pages of the installed version in the terminal.

Needs no project and loads none. The pages are those of the package treefold.
"""

import dataclasses
import json
import shutil
from collections.abc import Sequence
from itertools import groupby
from typing import Annotated

from treefold_cli._console.errors import FAILURE, MISUSE, OK, CommandError
from treefold_cli._console.options import AsJson, make_argument, make_option
from treefold_cli._console.output import print_line
from treefold_cli._console.pager import print_paged
from treefold_cli._pages.installed_pages import (
    Page,
    find_page,
    find_section,
    read_pages,
    resolve_link,
)
from treefold_cli._pages.page_search import search_pages
from treefold_cli._pages.terminal_text import render_markdown, wrap_text

_WIDEST = 100
"""Most characters of a line, whatever the terminal has."""


def complete_pages(incomplete: str) -> list[str]:
    """Offer the names of the pages."""
    try:
        return sorted(page.name for page in read_pages() if page.name.startswith(incomplete))
    except CommandError:
        return []


def docs(
    page: Annotated[
        str,
        make_argument(
            "[PAGE]", "The page, or PAGE#SECTION; without one, list all.", complete_pages
        ),
    ] = "",
    search: Annotated[
        str, make_option("--search", "WORDS", "List the sections that have these words.")
    ] = "",
    as_json: AsJson = False,
) -> int:
    """Print the pages of the documentation, as of the installed version.

    A page is named as in the list; a name in angle brackets is that of another page.
    """
    if page and search:
        raise CommandError("Give a page or --search, not both", code=MISUSE)
    pages = read_pages()
    if search:
        return _print_matches(pages, search, as_json=as_json)
    if page:
        _print_page(pages, page, as_json=as_json)
    else:
        _print_list(pages, as_json=as_json)
    return OK


def _print_list(pages: Sequence[Page], *, as_json: bool) -> None:
    if as_json:
        print_line(json.dumps([_make_record(page) for page in pages]))
        return
    width = max(len(page.name) for page in pages)
    lines: list[str] = []
    for section, group in groupby(pages, key=lambda page: page.section):
        lines += ["", section] if section else []
        lines += [f"  {page.name:{width}}  {page.title}" for page in group]
    lines += ["", "read one: treefold docs PAGE; search: treefold docs --search WORDS"]
    print_paged(lines)


def _print_page(pages: Sequence[Page], wanted: str, *, as_json: bool) -> None:
    name, _, anchor = wanted.partition("#")
    found = find_page(pages, name)
    text = find_section(found, anchor) if anchor else found.text
    if as_json:
        print_line(json.dumps(_make_record(found) | {"markdown": text}))
        return
    print_paged(
        render_markdown(text, _measure_width(), lambda target: resolve_link(found, target, pages))
    )


def _print_matches(pages: Sequence[Page], typed: str, *, as_json: bool) -> int:
    matches, is_complete = search_pages(pages, typed)
    if as_json:
        records = [
            {"name": one.section.name, "heading": one.section.heading, "line": one.line}
            | {"page": one.section.page.title}
            for one in matches
        ]
        print_line(json.dumps(records))
        return OK if matches else FAILURE
    if not matches:
        raise CommandError(f"No page has {typed!r}; list all with 'treefold docs'")
    if not is_complete:
        print_line("no section has all words; these have some of them")
    lines: list[str] = []
    for match in matches:
        section = match.section
        place = f"{section.page.title}: {section.heading}" if section.anchor else section.heading
        lines.append(f"{section.name}  {place}")
        lines += wrap_text(match.line, _measure_width(), "    ", "    ")[:1]
    print_paged([*lines, f"read one: treefold docs '{matches[0].section.name}'"])
    return OK


def _measure_width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _make_record(page: Page) -> dict[str, str]:
    record = dataclasses.asdict(page)
    del record["text"]
    return {"name": page.name, **record}
