"""`docs/project/security.md` names each number in the name of a test."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| ([SRD]-\d{2,3}) \| .+ \| (.+) \|$", re.MULTILINE)
IN_A_NAME = re.compile(r"_([srd])_?(\d{2,3})(?=_|\b)")
SPAN = re.compile(r"\b([SRD])-(\d+) to \1-(\d+)")
PROMISES = {
    "Requests are parsed strictly.": ["S-04", "S-13", "S-20", "S-21", "S-24", "S-31", "S-37"],
    "Every response forbids content sniffing": ["S-49", "S-56"],
    "A page of another origin cannot open a socket.": ["S-70"],
    "Every request is one log line": ["S-38", "S-77", "S-80", "S-82"],
    "Names and values from a request never become SQL.": ["S-100", "S-101", "S-102", "S-103"],
    "Documentation, source code and the log are not served in production.": ["S-116"],
    'A session in a cookie (`store="cookie"`) is signed': ["S-66"],
    "Two applications, two environments and tests on one Redis": [
        "integration/arrangements/test_deployments.py"
    ],
    "A limit in memory is separate for each process.": ["S-96"],
    "These parts act only where a project lists them in `middlewares`": [
        "integration/served/test_security_promises.py"
    ],
    "finds these parts missing, late in their order, or defeated by a setting": [
        "integration/test_deploy_mistakes.py"
    ],
    "With `dev=True` an error shows its exception": ["S-56", "S-117"],
    "a copy of it stays valid until it expires": ["S-66"],
    "are told apart by their names alone": ["integration/served/test_security_promises.py"],
    "`RateLimit` lets requests pass while its Redis is away": ["S-98"],
    "A socket without an `Origin` field is accepted": ["S-70"],
}
"""The sentences of the page outside of the tables, to the numbers or files whose tests ran."""

REQUIRED = {f"S-{number:02}" for number in range(1, 129)} - {
    *(f"S-{number}" for number in (89, 119, 127, 128))
}
"""Security cases that the page must keep, whatever tests are called."""


def listed() -> dict[str, list[str]]:
    page = (ROOT / "docs/project/security.md").read_text(encoding="utf-8")
    return {number: re.findall(r"`([^`]+)`", files) for number, files in ROW.findall(page)}


def path_of(file: str) -> Path:
    folder, _, name = file.partition("/")
    tests = "tests-integration" if folder == "integration" else f"packages/{folder}/tests"
    return ROOT / tests / name


def numbers_in_names(source: str) -> set[str]:
    names: list[str] = re.findall(r"def (test_\w+)", source)
    found = (match for name in names for match in IN_A_NAME.findall(name))
    return {f"{letter.upper()}-{number}" for letter, number in found}


def numbers_in(source: str) -> set[str]:
    """Return the numbers in names of tests, in ids, and in docstrings, where spans count too."""
    found = numbers_in_names(source) | set(re.findall(r"\b[SRD]-\d{2,3}\b", source))
    for letter, first, last in SPAN.findall(source):
        found |= {f"{letter}-{number:02}" for number in range(int(first), int(last) + 1)}
    return found


def test_each_number_in_the_name_of_a_test_is_on_the_page() -> None:
    files = [*ROOT.glob("packages/*/tests/**/test_*.py"), *ROOT.glob("tests-integration/**/*.py")]
    users: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for number in numbers_in_names(file.read_text(encoding="utf-8")):
            users[number].append(str(file.relative_to(ROOT)))
    assert {number: users[number] for number in users.keys() - listed().keys()} == {}


def test_no_case_has_left_the_page() -> None:
    assert listed().keys() >= REQUIRED


@pytest.mark.parametrize(("number", "files"), listed().items())
def test_each_file_on_the_page_names_its_number(number: str, files: list[str]) -> None:
    paths = [path_of(file) for file in files]
    assert [str(path) for path in paths if not path.is_file()] == []
    silent = [path for path in paths if number not in numbers_in(path.read_text(encoding="utf-8"))]
    assert (files != [], silent) == (True, [])


def sentences() -> str:
    """Return what the page promises before its tables, on one line."""
    page = (ROOT / "docs/project/security.md").read_text(encoding="utf-8")
    return " ".join(page.partition("## Report a defect")[0].split())


@pytest.mark.parametrize(("sentence", "numbers"), PROMISES.items())
def test_each_sentence_of_the_page_has_numbers(sentence: str, numbers: list[str]) -> None:
    assert sentence in sentences()
    assert numbers
    files = {name for name in numbers if "/" in name}
    assert {*numbers} - files <= listed().keys()
    assert [file for file in files if not plain_tests_of(path_of(file).read_text("utf-8"))] == []


def test_no_promise_of_the_page_is_without_a_number() -> None:
    page = (ROOT / "docs/project/security.md").read_text(encoding="utf-8")
    by_default = page.partition("## Promised by default")[2].partition("\n## ")[0]
    bullets = [
        " ".join(text.split())
        for text in re.findall(r"^- (.+?)(?=\n- |\n\n)", by_default, re.M | re.S)
    ]
    assert bullets
    assert [text for text in bullets if not any(text.startswith(said) for said in PROMISES)] == []


def plain_tests_of(source: str) -> list[str]:
    """Return the tests of a file that a plain run takes: neither `long` nor skipped."""
    tree = ast.parse(source)
    marks = r"\b(?:mark\.long|mark\.skip|mark\.xfail)\b"
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
        and not any(re.search(marks, ast.unparse(mark)) for mark in node.decorator_list)
    ]


@pytest.mark.parametrize(("number", "files"), listed().items())
def test_each_number_has_a_test_that_a_plain_run_takes(number: str, files: list[str]) -> None:
    assert any(plain_tests_of(path_of(file).read_text(encoding="utf-8")) for file in files)
