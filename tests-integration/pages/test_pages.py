"""Every block of code on every page runs, in order, as a reader would run it."""

import re
from pathlib import Path

import pytest
from page_blocks import read_blocks
from page_session import PageSession

DOCS = Path(__file__).resolve().parents[2] / "docs"
TUTORIAL = sorted((DOCS / "start").glob("[0-9]*.md"))
PAGES = sorted(set(DOCS.glob("**/*.md")) - set(TUTORIAL) - set(DOCS.glob("reference/*.md")))

IN_MEMORY = 'configure("sqlite", ":memory:")'
ON_BOTH = [
    f"guides/{name}.md"
    for name in (
        "differences-from-django",
        "fields",
        "managers",
        "models",
        "queries",
        "transactions",
    )
]
"""Pages whose examples mean the same on PostgreSQL."""


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(DOCS)) for path in paths]


@pytest.mark.parametrize("page", names(PAGES))
def test_every_block_of_a_page_runs(page: str, session: PageSession) -> None:
    for block in read_blocks((DOCS / page).read_text(encoding="utf-8")):
        session.run(page, block)


@pytest.mark.parametrize("page", ON_BOTH)
def test_a_page_says_the_same_on_postgresql(page: str, session: PageSession) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert IN_MEMORY in text
    for block in read_blocks(
        text.replace(IN_MEMORY, 'configure("postgres", "postgresql://h/page")')
    ):
        session.run(page, block)


def test_the_tutorial_runs_from_its_first_page_to_its_last(session: PageSession) -> None:
    for page in TUTORIAL:
        for block in read_blocks(page.read_text(encoding="utf-8")):
            session.run(page.name, block)
        session.close_prompt()


@pytest.mark.parametrize("page", names(sorted(DOCS.glob("**/*.md"))))
def test_a_page_has_one_title_and_says_why_a_block_is_not_run(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    outside = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert len(re.findall(r"^# ", outside, re.MULTILINE)) == 1
    for block in read_blocks(text):
        assert not block.not_run or len(block.not_run.split()) > 2
