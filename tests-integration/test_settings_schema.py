"""The schema of `treefold.toml` says what the settings themselves say."""

import dataclasses
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from treefold_http import Settings
from treefold_http._runtime.boot_report import SettingsError
from treefold_scaffold import create_project

REPOSITORY = Path(__file__).resolve().parent.parent
TOOL = REPOSITORY / "tools/docs/settings_schema.py"
SCHEMA: dict[str, Any] = json.loads((REPOSITORY / "docs/treefold.schema.json").read_text())
VALUES: tuple[Any, ...] = (
    True,
    1,
    1.5,
    "INFO",
    "json",
    ["a"],
    [1],
    {"default": "sqlite:///x"},
    {"a": 1},
)
FILES = re.compile(r"```toml\n# treefold\.toml\n(.*?)```", re.DOTALL)


def accepts_schema(settings: Any) -> bool:
    validator: Any = jsonschema.Draft7Validator(SCHEMA)
    return not list(validator.iter_errors(settings))


def accepts_type(name: str, value: Any) -> bool:
    """Return True unless the settings refuse the type of a value; its range is another matter."""
    try:
        Settings.from_mapping({name: value})
    except SettingsError as error:
        return not re.search(r"in settings must be|Unknown setting", str(error))
    return True


def test_the_file_is_current() -> None:
    """`python tools/docs/settings_schema.py --write` writes it."""
    done = subprocess.run([sys.executable, TOOL], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Settings)])
def test_a_type_is_accepted_by_both_or_by_none(name: str) -> None:
    if name in {"serve", "contract"}:
        assert accepts_schema({name: {}})
        assert not accepts_schema({name: {"bogus": 1}})
        return
    judged = [(accepts_type(name, value), accepts_schema({name: value})) for value in VALUES]
    assert {ours for ours, _ in judged} == {True, False}
    assert [
        value for value, (ours, theirs) in zip(VALUES, judged, strict=True) if ours != theirs
    ] == []


def test_an_unknown_name_is_marked() -> None:
    assert not accepts_schema({"databasse": {}})
    assert accepts_schema({"test": {"databases": {"default": "sqlite:///x"}}})
    assert not accepts_schema({"test": {"caches": {}}})


def test_the_files_of_the_pages_are_valid() -> None:
    files = [
        text
        for page in (REPOSITORY / "docs").glob("*/*.md")
        for text in FILES.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(files) > 20
    assert [text for text in files if not accepts_schema(tomllib.loads(text))] == []


def test_a_new_project_names_the_schema_in_its_first_line(tmp_path: Path) -> None:
    file = create_project("shop", tmp_path, starter=True) / "treefold.toml"
    text = file.read_text(encoding="utf-8")
    assert text.splitlines()[0] == f"#:schema {SCHEMA['$id']}"
    assert accepts_schema(tomllib.loads(text))
