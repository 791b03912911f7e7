"""Names that no migration may have are named by each command, and the longest name works."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from run_support import (
    AUTHOR,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)
from test_half_done import AGE, records, run

from treefold_migrations import lint

COMMANDS: dict[str, Callable[[Files, str], int]] = {
    "migrate": lambda files, name: run(files, "migrate", name),
    "rollback": lambda files, name: run(files, "rollback", name),
    "resolve": lambda files, name: run(files, "migrate", "again", resolve=name),
    "showmigrations": lambda files, _: run(files, "list_migrations"),
    "drift": lambda files, _: run(files, "drift"),
    "lint": lambda files, name: run(files, "lint", since=name),
}
WRONG = ("0002_a b", "0002_it's", '0002_a"b', "0002_größe", "0002_A", "0002_a\nb", "٠٠٠٢_a")


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", WRONG)
def test_a_file_with_another_name_is_named(
    place: Place, files: Files, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", AUTHOR)
    assert run(files, "migrate") == 0
    files.write(name, AGE)
    assert COMMANDS[command](files, name) == 1
    said = capsys.readouterr().err
    assert f"{name}.py must be called like 0002_add_slug.py" in said
    assert records(place) == ["0001_initial"]


@pytest.mark.parametrize("engine", ["sqlite"])
@pytest.mark.parametrize("command", ["migrate", "rollback", "resolve", "lint"])
@pytest.mark.parametrize("name", [*WRONG, "0002_" + "a" * 10_000])
def test_a_value_that_is_no_name_of_a_file_is_named(
    place: Place, files: Files, command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", AUTHOR)
    assert run(files, "migrate") == 0
    assert COMMANDS[command](files, name) == 1
    assert f"Migration {name!r} must exist" in capsys.readouterr().err
    assert records(place) == ["0001_initial"]


def test_the_longest_name_of_a_file_works(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "0002_" + "a" * (255 - len("0002_.py"))
    apart = 'RunSQL("UPDATE author SET {} = 1", "", transactional=False)'
    files.write("0001_initial", AUTHOR)
    files.write(name, AGE, apart.format("wrong"))
    assert run(files, "migrate") == 1
    assert f"`migrate --resolve {name} again`" in capsys.readouterr().err
    files.write(name, AGE, apart.format("age"), after=["0001_initial"])
    assert run(files, "migrate", "again", resolve=name) == 0
    assert records(place) == ["0001_initial", name]
    for command in ("list_migrations", "drift"):
        assert run(files, command) == 0
    # not by its command, which asks for the models of all other tests
    assert {item.name for item, _ in lint(files.folder, metas=[])} == {name}
    assert f"[x] {name}" in capsys.readouterr().out
    assert run(files, "rollback", "0001_initial") == 0
    assert records(place) == ["0001_initial"]
    assert run(files, "migrate", name) == 0
    assert run(files, "rollback", allow_destructive=True) == 0
    assert run(files, "drift") == 0
