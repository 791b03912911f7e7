"""`treefold docs`: pages of the installed package, listed, printed, searched and paged."""

import gzip
import json
import os
import pty
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

Executable = Callable[..., "subprocess.CompletedProcess[str]"]

LISTS = """\
# Lists of rows

A list is [filtered](models.md#meta) by **keyset**
cursors; see [the site](https://example.com/x) and [models](models.md).

| Word | Effect | Note |
|---|---|---|
| `a\\|b` | short | |

## Cursors

1. A cursor is a position in an order of rows, and the next page of a list begins after it, wherever
   rows were added meanwhile.

```python
# Api/v1/Book/Get.py
x = [1](2)
```

### Signed cursors

They cannot be made by hand.

## The end
"""
MODELS = "# Models\n\nA model is a class.\n\n## Meta\n\n| | |\n|---|---|\n| `order` | " + (
    "a long text about orders " * 5
)
PAGES = [
    {"path": "index.md", "section": "", "title": "treefold", "text": "# treefold\n\nA tree.\n"},
    {"path": "start/index.md", "section": "Start", "title": "Sixty", "text": "# Sixty\n\nGo.\n"},
    {"path": "guides/lists.md", "section": "Guides", "title": "Lists of rows", "text": LISTS},
    {"path": "guides/models.md", "section": "Guides", "title": "Models", "text": MODELS},
]


@pytest.fixture
def docs(tmp_path: Path, executable: Executable) -> Executable:
    """Run the command beside a package of this name that has four pages."""
    package = tmp_path / "installed" / "treefold"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (package / "pages.json.gz").write_bytes(gzip.compress(json.dumps(PAGES).encode()))

    def run(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        variables = {"PYTHONPATH": str(package.parent), "COLUMNS": "60", **variables}
        return executable("docs", *arguments, cwd=tmp_path, **variables)

    return run


def test_the_pages_are_listed_by_section(docs: Executable):
    done = docs()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "  index   treefold",
        "",
        "Start",
        "  start   Sixty",
        "",
        "Guides",
        "  lists   Lists of rows",
        "  models  Models",
        "",
        "read one: treefold docs PAGE; search: treefold docs --search WORDS",
    ]


def test_a_page_is_printed_without_marks(docs: Executable):
    done = docs("lists")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "Lists of rows",
        "=============",
        "",
        "A list is filtered <models#meta> by keyset cursors; see the",
        "site <https://example.com/x> and <models>.",
        "",
        "Word   Effect  Note",
        "-----  ------  ----",
        "`a|b`  short",
        "",
        "Cursors",
        "-------",
        "",
        "1. A cursor is a position in an order of rows, and the next",
        "   page of a list begins after it, wherever rows were added",
        "   meanwhile.",
        "",
        "    # Api/v1/Book/Get.py",
        "    x = [1](2)",
        "",
        "Signed cursors",
        "",
        "They cannot be made by hand.",
        "",
        "The end",
        "-------",
    ]


@pytest.mark.parametrize("name", ["lists", "guides/lists", "guides/lists.md", "Lists of rows"])
def test_a_page_is_found_by_name_path_and_title(docs: Executable, name: str):
    assert docs(name).stdout == docs("lists").stdout != ""


def test_a_section_is_printed_with_the_headings_below_it(docs: Executable):
    lines = docs("lists#cursors").stdout.splitlines()
    assert lines[0] == "Cursors"
    assert lines[-1] == "They cannot be made by hand."
    assert docs("lists#signed-cursors").stdout.startswith("Signed cursors\n")


def test_a_table_that_is_too_wide_becomes_a_list(docs: Executable):
    lines = docs("models#meta").stdout.splitlines()
    assert lines[3] == "`order`"
    assert all(line.startswith("    ") for line in lines[4:])
    assert max(map(len, lines)) <= 60


def test_a_search_finds_sections_that_have_all_words(docs: Executable):
    done = docs("--search", "signed cursor")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "lists#signed-cursors  Lists of rows: Signed cursors",
        "read one: treefold docs 'lists#signed-cursors'",
    ]
    begins = docs("--search", "position order").stdout.splitlines()
    assert begins[0] == "lists#cursors  Lists of rows: Cursors"
    assert begins[1].startswith("    1. A cursor is a position in an order")


def test_a_search_without_a_section_for_all_words_says_so(docs: Executable):
    done = docs("--search", "signed zebra")
    assert done.returncode == 0
    assert done.stdout.startswith("no section has all words; these have some of them\nlists#signed")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["modls"], 2, "No page 'modls'; did you mean 'models', or search: treefold docs --search"),
        (["xyz"], 2, "No page 'xyz'; list all with 'treefold docs', or search: "),
        (["lists#cursor"], 2, "Page 'lists' has no section 'cursor'; did you mean 'cursors'"),
        (["start#none"], 2, "Page 'start' has no section 'none'; it has none"),
        (["--search", "zebra"], 1, "No page has 'zebra'; list all with 'treefold docs'"),
        (["models", "--search", "x"], 2, "Give a page or --search, not both"),
    ],
)
def test_what_is_not_there_is_one_line(
    docs: Executable, arguments: list[str], code: int, message: str
):
    done = docs(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (code, "", 1)
    assert done.stderr.startswith(f"Error: {message}")


def test_everything_is_data_too(docs: Executable):
    listed = json.loads(docs("--json").stdout)
    assert [page["name"] for page in listed] == ["index", "start", "lists", "models"]
    assert json.loads(docs("models#meta", "--json").stdout)["markdown"].startswith("## Meta\n")
    found = json.loads(docs("--search", "signed", "--json").stdout)
    assert found[0]["name"] == "lists#signed-cursors"
    assert docs("--search", "zebra", "--json").returncode == 1


def test_without_the_umbrella_it_says_where_the_pages_are(executable: Executable):
    done = executable("docs")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: The pages come with the package 'treefold', which is not installed; pip install"
        " treefold, or read them at https://treefold.github.io/treefold/\n"
    )


def test_an_umbrella_without_pages_is_named(docs: Executable, tmp_path: Path):
    (tmp_path / "installed/treefold/pages.json.gz").unlink()
    done = docs("models")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The installed package 'treefold' has no file 'pages.")


def in_a_terminal(folder: Path, *arguments: str, **variables: str) -> str:
    """Run the command in a pseudo terminal of 60 columns; return what it prints."""
    leader, follower = pty.openpty()
    command = [f"{sysconfig.get_path('scripts')}/treefold", "docs", *arguments]
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "60", "TERM": "xterm", **variables}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=follower, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        printed = b""
        try:
            while part := os.read(leader, 65536):
                printed += part
        except OSError:  # Linux: the other end is closed
            pass
        process.wait(60)
    os.close(leader)
    return printed.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_pager_and_a_pipe_does_not(docs: Executable, tmp_path: Path):
    path = str(tmp_path / "installed")
    pager = f"sed 's/^/paged /;w {tmp_path}/paged'"
    assert "paged Cursors\n" in in_a_terminal(tmp_path, "lists", PYTHONPATH=path, PAGER=pager)
    paged = (tmp_path / "paged").read_text()
    assert paged.replace("paged ", "") == docs("lists", PAGER=pager).stdout
    missing = in_a_terminal(tmp_path, "lists", PYTHONPATH=path, PAGER="no-such-pager")
    assert missing == in_a_terminal(tmp_path, "lists", PYTHONPATH=path, PAGER="")
    assert missing == docs("lists").stdout
