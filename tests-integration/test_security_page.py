"""`docs/project/security.md` names each number in the name of a test."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^\| ([SRD]-\d{2,3}) \| .+ \| (.+) \|$", re.MULTILINE)
IN_A_NAME = re.compile(r"_([srd])_?(\d{2,3})(?=_|\b)")
SPAN = re.compile(r"\b([SRD])-(\d+) to \1-(\d+)")
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
