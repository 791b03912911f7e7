"""Search in the pages: sections that have all words, the best first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treefold_cli._pages.installed_pages import Page, Section, split_sections

_MOST = 10
"""Most sections that a search returns."""
_IN_HEADING, _IN_TITLE, _AS_PHRASE = 12, 8, 10
"""Points of a word in the heading and in the title of the page, and of all words side by side."""
_COUNTED = 4
"""Most places of a word in a text that count."""


@dataclass(frozen=True, slots=True)
class Match:
    """A section that a search has found.

    Attributes:
        section: the section.
        line: the line of its text that shows the words best; empty if only headings have them.
    """

    section: Section
    line: str


def search_pages(pages: Sequence[Page], typed: str) -> tuple[Sequence[Match], bool]:
    """Return the sections that have all words, or, if there are none, as many as possible.

    Args:
        pages: all pages.
        typed: words, in any order and case; the begin of a word is enough.

    Returns:
        At most ten sections, the best first, and True if they have all words.
    """
    words = [compile_word(word) for word in re.findall(r"[\w.$]+", typed.lower())]
    phrase = " ".join(typed.lower().split())
    scored: list[tuple[int, int, Match]] = []
    for page in pages:
        for section in split_sections(page):
            hits = [score_word(word, section) for word in words]
            points = sum(hits)
            if not points:
                continue
            if len(words) > 1 and phrase in section.text.lower():
                points += _AS_PHRASE
            found = sum(map(bool, hits))
            scored.append((found, points, Match(section, find_line(words, section))))
    scored.sort(key=lambda one: (-one[0], -one[1]))
    if not scored:
        return [], False
    most = scored[0][0]
    return [match for found, _, match in scored if found == most][:_MOST], most == len(words)


def compile_word(word: str) -> re.Pattern[str]:
    """Return the pattern of a word: its plural, and words that begin with it, are the same."""
    stem = word[:-1] if len(word) > 3 and word.endswith("s") else word
    return re.compile(rf"(?<![^\W_]){re.escape(stem)}", re.IGNORECASE)


def score_word(word: re.Pattern[str], section: Section) -> int:
    """Return the points of a word in a section; 0 where it is not."""
    points = min(len(word.findall(section.text)), _COUNTED)
    if word.search(section.heading):
        points += _IN_HEADING
    if word.search(section.page.title) or word.search(section.page.name):
        points += _IN_TITLE if points or section.level == 1 else 1
    return points


def find_line(words: Sequence[re.Pattern[str]], section: Section) -> str:
    """Return the line below the heading that has the most of the words."""
    lines = section.text.splitlines()[1:]
    best = max(lines, key=lambda line: sum(bool(word.search(line)) for word in words), default="")
    return best.strip() if any(word.search(best) for word in words) else ""
