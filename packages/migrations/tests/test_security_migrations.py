"""S-113: names of models and fields never become code in a migration file."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import treefold_migrations as m
from treefold_migrations import SchemaState, StateError
from treefold_migrations._commands.files import makemigrations
from treefold_migrations._detect.models import build_models_state
from treefold_migrations._files.loading import load_folder
from treefold_migrations._files.writing import render_migration_source, write_migration
from treefold_orm import CheckConstraint, Index, Model, Q, fields

HOSTILE = 'a"); import os #'


def hostile_model(name: str, **body: Any) -> Any:
    return type(name, (Model,), {"__module__": __name__, "_space": "hostile", **body})


def test_s_113_a_model_with_a_hostile_name_is_refused(tmp_path: Path) -> None:
    meta = hostile_model(HOSTILE, Meta=type("Meta", (), {"table": "plain"}))._meta
    with pytest.raises(StateError, match="must be a plain name; rename the class"):
        build_models_state([meta])
    with pytest.raises(StateError, match="must be a plain name; rename the class"):
        makemigrations(tmp_path, metas=[meta])
    assert list(tmp_path.iterdir()) == []


def test_s_113_a_hostile_table_is_text_in_the_file(tmp_path: Path) -> None:
    meta = hostile_model("Plain", Meta=type("Meta", (), {"table": HOSTILE}))._meta
    made = makemigrations(tmp_path, metas=[meta])
    assert not [n for n in ast.walk(ast.parse(made.source)) if isinstance(n, ast.Import)]
    assert list(load_folder(tmp_path).compute_state_after().tables) == [HOSTILE]


def test_s_113_the_path_comes_from_checked_words_alone(tmp_path: Path) -> None:
    made = makemigrations(tmp_path, "../../etc/x; rm -rf", metas=[], empty=True)
    assert made.path == tmp_path / "0001_etc_x_rm_rf.py"


printable = st.characters(exclude_categories=["C", "Z"], include_characters=" ")
texts = st.text(printable, min_size=1)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(texts, texts, texts)
def test_s_113_any_text_in_any_place_stays_text(
    tmp_path: Path, table: str, column: str, value: str
) -> None:
    operations = [
        m.CreateTable(
            table,
            {
                "id": fields.BigAutoField(),
                "t": fields.TextField(db_column=column, default=value, choices=[(value, table)]),
            },
            "T",
            constraints=[CheckConstraint(Q(t=value), name=column)],
            indexes=[Index("t", name=value, condition=Q(t=table))],
        ),
        m.RunSQL(value, tables=[table]),
        m.AlterField(table, "t", fields.TextField(db_default=value), fill=column),
    ]
    source = render_migration_source([], operations)
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert names <= {
        *("AlterField", "CheckConstraint", "CreateTable", "Index", "Migration", "Q", "RunSQL"),
        *("fields", "migration"),
    }
    for old in tmp_path.glob("*.py"):
        old.unlink()
    write_migration(tmp_path, "0001_initial", [], operations)
    assert list(load_folder(tmp_path)["0001_initial"].operations) == operations


def test_s_113_names_of_fields_are_checked_wherever_they_come_from() -> None:
    operation = m.CreateTable("t", {HOSTILE: fields.TextField()}, "T")
    with pytest.raises(StateError, match="must be a plain name"):
        operation.apply(SchemaState())
