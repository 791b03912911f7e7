"""`treefold docs` over the real pages: each is printed, each link leads on, words are found."""

import json
import os
from pathlib import Path

import pytest
from forked_commands import ForkServer

from treefold_cli._pages import installed_pages, page_search, terminal_text

NEWCOMER = {
    "cookie": "sessions",
    "redirect": "handlers",
    "upload": "uploads",
    "websocket": "sockets",
    "background": "11-background-work",
    "cron": "jobs",
    "cors": "middleware",
    "login": "07-login",
    "jwt": "auth",
    "password": "auth",
    "postgres": "databases",
    "docker": "deployment",
    "nginx": "deployment",
    "pagination": "lists",
    "transaction": "transactions",
    "env": "settings",
    "404": "errors",
    "pytest": "testing",
    "rate limit": "limits",
    "openapi": "openapi",
}
"""What a newcomer types, and a page that must be among those that are found."""


@pytest.fixture(scope="module")
def pages() -> list[installed_pages.Page]:
    return list(installed_pages.read_pages())


def test_the_installed_pages_are_those_of_the_folder(
    pages: list[installed_pages.Page], repository: Path
) -> None:
    """`hatch run assets` makes them again."""
    docs = repository / "docs"
    written = {str(file.relative_to(docs)) for file in docs.glob("**/*.md")}
    assert {page.path for page in pages} == {
        path for path in written if not path.startswith("reference/")
    }


def test_each_page_has_a_name_of_its_own(pages: list[installed_pages.Page]) -> None:
    names = [page.name for page in pages]
    assert sorted(names) == sorted(set(names))


def test_each_link_of_a_page_leads_to_a_page_and_a_section(
    pages: list[installed_pages.Page],
) -> None:
    followed: list[str] = []

    def follow(page: installed_pages.Page, target: str) -> str:
        name = installed_pages.resolve_link(page, target, pages)
        if ".md" in target and "reference/" not in target:
            found, _, anchor = name.partition("#")
            other = installed_pages.find_page(pages, found)
            assert not anchor or installed_pages.find_section(other, anchor), target
            followed.append(name)
        return name

    for page in pages:
        terminal_text.render_markdown(
            page.text, 100, lambda target, page=page: follow(page, target)
        )
    assert len(followed) > 300


def test_no_mark_is_left_in_the_text_of_a_page(pages: list[installed_pages.Page]) -> None:
    for page in pages:
        lines = terminal_text.render_markdown(page.text, 100, lambda target: "")
        outside = [line for line in lines if not line.startswith("    ")]
        assert [line for line in outside if "](" in line or line.startswith(("```", "|--"))] == []
        assert [line for line in lines if line.startswith("<!--")] == []


@pytest.mark.parametrize(("words", "name"), NEWCOMER.items())
def test_a_newcomer_finds_the_page(
    pages: list[installed_pages.Page], words: str, name: str
) -> None:
    matches, is_complete = page_search.search_pages(pages, words)
    assert is_complete
    assert name in {match.section.page.name for match in matches}


def test_the_command_prints_the_installed_pages(fork_server: ForkServer, tmp_path: Path) -> None:
    done = fork_server.run(["docs", "--json"], cwd=tmp_path, env=dict(os.environ))
    listed = json.loads(done.stdout)
    assert "models" in {page["name"] for page in listed}


def test_a_shell_is_offered_the_pages(fork_server: ForkServer, tmp_path: Path) -> None:
    typed = {"COMP_WORDS": "treefold docs mod", "COMP_CWORD": "2"}
    environment = os.environ | typed | {"_TREEFOLD_COMPLETE": "complete_bash"}
    done = fork_server.run([], cwd=tmp_path, env=environment)
    assert done.stdout.split() == ["models"]
