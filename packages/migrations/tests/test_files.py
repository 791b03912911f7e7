"""Migration files: written, loaded, hashed."""

from __future__ import annotations

import os
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pairs import PAIRS

import treefold_migrations as m
from treefold_migrations import FileError, HistoryError, SchemaState
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._files.hashing import compute_legacy_digests
from treefold_migrations._files.layout import format_expression
from treefold_migrations._files.loading import load_folder
from treefold_migrations._files.names import build_next_migration_name, suggest_name_words
from treefold_migrations._files.writing import render_migration_source, write_migration
from treefold_migrations._state.schema_state import is_same_state
from treefold_orm import fields

HEAD = "from treefold_orm import fields\nfrom treefold_migrations import *\n"
AUTHOR = 'CreateTable("author", {"id": fields.BigAutoField()}, model="Author")'


def put(folder: Path, name: str, body: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(HEAD + textwrap.dedent(body), encoding="utf-8")
    return path


def declared(after: list[str], *operations: str, more: str = "") -> str:
    return f"migration = Migration(after={after!r}, operations=[{', '.join(operations)}]{more})\n"


def test_every_change_is_written_and_loaded_again(tmp_path: Path) -> None:
    for number, pair in enumerate(PAIRS, 1):
        folder = tmp_path / str(number)
        first = detect_operations(SchemaState(), pair.old())
        second = detect_operations(pair.old(), pair.new(), pair.answers())
        write_migration(folder, "0001_initial", [], first)
        write_migration(folder, "0002_change", ["0001_initial"], second)
        history = load_folder(folder)
        assert list(history["0002_change"].operations) == second, pair.name
        assert is_same_state(history.compute_state_after("0001_initial"), pair.old()), pair.name
        assert is_same_state(history.compute_state_after(), pair.new()), pair.name


def test_a_file_says_what_it_does_and_imports_what_it_needs() -> None:
    operations = [
        m.CreateTable(
            "author",
            {
                "id": fields.BigAutoField(),
                "name": fields.CharField(max_length=80),
                "rank": fields.DecimalField(max_digits=5, decimal_places=2),
            },
            "Author",
        ),
        m.AddField("author", "born", fields.DateField(null=True)),
    ]
    assert render_migration_source([], operations) == textwrap.dedent(
        '''\
        """Create table author.
        Add field author.born.
        """

        from treefold_migrations import AddField, CreateTable, Migration
        from treefold_orm import fields

        migration = Migration(
            after=[],
            operations=[
                CreateTable(
                    "author",
                    {
                        "id": fields.BigAutoField(),
                        "name": fields.CharField(max_length=80),
                        "rank": fields.DecimalField(max_digits=5, decimal_places=2),
                    },
                    model="Author",
                ),
                AddField("author", "born", fields.DateField(null=True)),
            ],
        )
        '''
    )


@given(st.recursive(st.integers() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner)))
def test_source_that_is_laid_out_means_the_same(value: Any) -> None:
    assert eval(format_expression(repr(value), indent=8)) == value


def test_a_file_appears_completely_or_not_at_all(tmp_path: Path) -> None:
    write_migration(tmp_path, "0001_initial", [], [])
    with pytest.raises(FileError, match=r"0001_initial\.py must not exist yet"):
        write_migration(tmp_path, "0001_initial", [], [m.DropTable("x")])
    with pytest.raises(FileError, match=r"'\.\./evil' cannot name a migration"):
        write_migration(tmp_path, "../evil", [], [])
    assert [path.name for path in tmp_path.iterdir()] == ["0001_initial.py"]


def test_loading_leaves_nothing_in_the_modules(tmp_path: Path) -> None:
    put(tmp_path, "0001_initial", declared([], AUTHOR))
    load_folder(tmp_path)  # imports what the file itself needs
    before = set(sys.modules)
    load_folder(tmp_path)
    assert set(sys.modules) == before
    assert not [name for name in sys.modules if "0001_initial" in name]


def created(folder: Path) -> str:
    """The table that the first migration creates."""
    (operation,) = load_folder(folder)["0001_initial"].operations
    assert isinstance(operation, m.CreateTable)
    return operation.name


def test_an_edit_of_the_same_size_and_second_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    path = put(tmp_path, "0001_initial", declared([], AUTHOR))
    written = path.stat()
    assert created(tmp_path) == "author"
    assert [*tmp_path.glob("__pycache__/*.pyc")]
    path.write_text(path.read_text().replace('"author"', '"editor"'), encoding="utf-8")
    os.utime(path, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert path.stat().st_size == written.st_size
    for _ in range(2):
        assert created(tmp_path) == "editor"


@pytest.mark.parametrize("content", [b"", b"\0" * 40, None])
def test_a_cache_that_is_damaged_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    put(tmp_path, "0001_initial", declared([], AUTHOR))
    load_folder(tmp_path)
    (cache,) = tmp_path.glob("__pycache__/*.pyc")
    cache.write_bytes(cache.read_bytes()[:20] if content is None else content)
    assert created(tmp_path) == "author"


def test_a_folder_that_does_not_exist_has_no_migrations(tmp_path: Path) -> None:
    history = load_folder(tmp_path / "none")
    assert history.order() == []
    assert history.head() is None
    assert is_same_state(history.compute_state_after(), SchemaState())


def test_other_files_of_the_folder_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "0001_initial", declared([], AUTHOR))
    (tmp_path / "__init__.py").touch()
    (tmp_path / "notes.txt").touch()
    (tmp_path / "sql_of_ours.py").write_text("raise RuntimeError")
    assert [item.name for item in load_folder(tmp_path).order()] == ["0001_initial"]


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("0001_a", "migration = 3", r"0001_a\.py must set migration = Migration\(\.\.\.\), got 3"),
        ("0001_a", "x = 1", "must set migration"),
        ("0001_a", "1 / 0", r"0001_a\.py cannot be loaded: ZeroDivisionError"),
        ("0001_a", "def", "cannot be loaded: SyntaxError"),
        ("0001_a", "migration = Migration(operations=[3])", "operations must hold operations, got"),
        ("0001_a", 'migration = Migration(after="0001")', "after must be a list of names"),
        ("0001_a", 'migration = Migration(operations=[RunSQL("x", when="y")])', "phase must be"),
        ("0001-a", "migration = Migration()", r"must be called like 0002_add_slug\.py"),
    ],
)
def test_a_file_that_is_none_is_named_with_the_reason(
    tmp_path: Path, name: str, body: str, message: str
) -> None:
    put(tmp_path, name, body)
    with pytest.raises(FileError, match=message):
        load_folder(tmp_path)


def test_an_operation_that_does_not_fit_is_named_with_its_file(tmp_path: Path) -> None:
    put(tmp_path, "0001_a", declared([], AUTHOR, 'DropField("author", "none")'))
    with pytest.raises(m.StateError, match=r"0001_a, operation 2 \(drop field author\.none\): "):
        load_folder(tmp_path).compute_state_after()


def test_numbers_go_on_after_the_highest() -> None:
    assert build_next_migration_name([], "initial") == "0001_initial"
    assert build_next_migration_name(["0003_a", "0003_b", "0002_x"], "Add Slug!") == "0004_add_slug"
    assert build_next_migration_name(["9999_x"], "") == "10000_changes"
    assert build_next_migration_name([], "ä" * 9 + "x" * 99) == "0001_" + "x" * 50
    words = suggest_name_words([m.DropTable("a"), m.DropTable("b")], is_first_migration=False)
    assert words == "drop table a and more"


# -- hashes ---------------------------------------------------------------------------------------

PYTHON = """
LIMIT = 3

def forward(*_):
    return LIMIT

"""


def digests(folder: Path, **files: str) -> dict[str, str]:
    for old in folder.glob("*.py"):
        old.unlink()
    for name, body in files.items():
        put(folder, name, body)
    history = load_folder(folder)
    return {item.name: history.compute_digest(item.name) for item in history.order()}


def one(folder: Path, body: str) -> str:
    return digests(folder, **{"0001_a": body})["0001_a"]


def test_comments_and_formatting_do_not_count(tmp_path: Path) -> None:
    plain = one(tmp_path, declared([], AUTHOR))
    other = """
        '''Another docstring.'''
        # a comment
        migration = Migration(
            operations=[
                CreateTable('author', {'id': fields.BigAutoField()}, model='Author'),
            ],
            after=[],
        )
    """
    assert one(tmp_path, other) == plain


def test_the_order_of_imports_does_not_count(tmp_path: Path) -> None:
    body = "def used():\n    return datetime, d\n\n" + declared([], AUTHOR)
    plain = one(tmp_path, f"import datetime\nimport decimal as d\n{body}")
    assert one(tmp_path, f"import decimal as d, datetime\n\n{body}") == plain
    assert one(tmp_path, f"import decimal, datetime as d\n\n{body}") != plain


def test_names_of_parents_count_by_their_hashes_alone(tmp_path: Path) -> None:
    first = declared([], AUTHOR)
    plain = digests(tmp_path, **{"0001_a": first, "0002_b": declared(["0001_a"])})
    other = digests(tmp_path, **{"0001_x": first, "0002_y": declared(["0001_x"])})
    assert list(plain.values()) == list(other.values())


def test_comments_and_formatting_of_functions_do_not_count(tmp_path: Path) -> None:
    run = declared([], "RunPython(forward)")
    plain = one(tmp_path, PYTHON + run)
    other = "\n\nLIMIT = (3)\ndef forward(\n    *_,\n):\n    return LIMIT  # here\n"
    assert one(tmp_path, other + run) == plain
    assert one(tmp_path, PYTHON.replace("3", "4") + run) != plain
    assert one(tmp_path, PYTHON.replace("return", "return 1 +") + run) != plain


def test_what_an_operation_does_counts(tmp_path: Path) -> None:
    texts = [
        declared([], AUTHOR),
        declared([], AUTHOR.replace("Big", "")),
        declared([], AUTHOR, AUTHOR.replace("author", "other")),
        declared([], 'RunSQL("SELECT 1")'),
        declared([], 'RunSQL("SELECT 2")'),
        declared([]),
    ]
    assert len({one(tmp_path, text) for text in texts}) == len(texts)


def test_a_change_reaches_the_hashes_of_all_that_follow(tmp_path: Path) -> None:
    rest = {
        "0002_b": declared(["0001_a"], 'RenameTable("author", "x")'),
        "0003_c": declared(["0002_b"]),
    }
    before = digests(tmp_path, **{"0001_a": declared([], AUTHOR)}, **rest)
    after = digests(tmp_path, **{"0001_a": declared([], AUTHOR.replace("Big", ""))}, **rest)
    assert all(before[name] != after[name] for name in before)


def test_hashes_are_those_of_every_version_of_python(tmp_path: Path) -> None:
    body = PYTHON + declared([], AUTHOR, "RunPython(forward)")
    known = "2:0cd5613f808102bdcb8193373c9452ce0100867bbd0f44ee5850d81730c09021"
    assert one(tmp_path, body) == known
    (loaded,) = load_folder(tmp_path).order()
    first = "eec43514e448d8a9f19c86e4a88be704d065fc74302bc60059c960298c046ca7"
    assert compute_legacy_digests([], loaded.migration, loaded.path.read_text()) == {first}


# -- the graph ------------------------------------------------------------------------------------


def history_of(folder: Path, **after: list[str]) -> Any:
    for name, parents in after.items():
        put(folder, name, declared(parents))
    return load_folder(folder)


def test_files_come_after_their_parents(tmp_path: Path) -> None:
    history = history_of(
        tmp_path,
        **{
            "0001_a": [],
            "0002_z": ["0001_a"],
            "0002_b": ["0001_a"],
            "0003_m": ["0002_z", "0002_b"],
        },
    )
    assert [i.name for i in history.order()] == ["0001_a", "0002_b", "0002_z", "0003_m"]
    assert history.parents("0003_m") == ("0002_z", "0002_b")
    assert history.ancestors("0002_b") == {"0001_a", "0002_b"}
    assert history.head().name == "0003_m"
    assert history.find("0003").name == "0003_m"
    with pytest.raises(HistoryError, match="'0002' could be 0002_b or 0002_z; give the whole"):
        history.find("0002")
    with pytest.raises(HistoryError, match="Migration '0009' must exist; did you mean '0003_m'"):
        history.find("0009")


def test_a_fork_is_an_error_that_names_its_heads(tmp_path: Path) -> None:
    history = history_of(tmp_path, **{"0001_a": [], "0002_b": ["0001_a"], "0002_c": ["0001_a"]})
    assert [item.name for item in history.heads()] == ["0002_b", "0002_c"]
    with pytest.raises(HistoryError, match="fork into 0002_b, 0002_c; merge them with"):
        history.head()


def test_a_missing_parent_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="0002_b comes after '0001_a', which does not exist"):
        history_of(tmp_path, **{"0002_b": ["0001_a"]})


def test_a_circle_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HistoryError, match="in a circle: 0001_a, 0002_b"):
        history_of(tmp_path, **{"0001_a": ["0002_b"], "0002_b": ["0001_a"]})


def test_steps_are_the_states_between_files(tmp_path: Path) -> None:
    put(tmp_path, "0001_a", declared([], AUTHOR))
    put(tmp_path, "0002_b", declared(["0001_a"], 'RenameTable("author", "x")'))
    history = load_folder(tmp_path)
    tables = [
        (i.name, list(before.tables), list(after.tables))
        for i, before, after in history.walk_states()
    ]
    assert tables == [("0001_a", [], ["author"]), ("0002_b", ["author"], ["x"])]
    assert list(history.compute_state_before("0002_b").tables) == ["author"]
