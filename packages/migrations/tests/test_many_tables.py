"""Hundreds of tables that point to each other in a chain: no command counts on a short one."""

from __future__ import annotations

import pytest
from run_support import (
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)

from treefold_migrations._commands.drifting import drift
from treefold_migrations._commands.running import migrate, rollback, sqlmigrate

LENGTH = 499


def chain(length: int) -> list[str]:
    fields = ['"id": fields.BigAutoField(primary_key=True)']
    made: list[str] = []
    for number in range(length):
        made.append(f'CreateTable("t{number}", {{{", ".join(fields)}}}, model="T{number}")')
        fields[1:] = [f'"before": fields.ForeignKey("t{number}", "CASCADE")']
    return made


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_chain_of_keys_is_made_compared_and_dropped(place: Place, files: Files) -> None:
    files.write("0001_chain", *chain(LENGTH))
    migrate(files.folder)
    assert len(place.tables() - {"treefold_migrations", "treefold_migrations_journal"}) == LENGTH
    assert drift(files.folder) == []
    rollback(files.folder)
    assert not [name for name in place.tables() if name.startswith("t0")]


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_key_at_the_end_of_a_chain_changes_its_type(files: Files, dialect: str) -> None:
    files.write("0001_chain", *chain(LENGTH))
    key = "fields.IntegerField(primary_key=True)"
    files.write("0002_key", f'AlterField("t0", "id", {key})')
    sql = sqlmigrate(files.folder, "0002", dialect="sqlite" if dialect == "sqlite" else "postgres")
    # both of SQLite's integers have one type, so its children stay as they are
    assert {"sqlite": 'INSERT INTO "treefold_rebuilt"', "postgres": '"before_id"'}[dialect] in sql


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_key_that_is_a_foreign_key_has_the_type_of_its_target(files: Files, dialect: str) -> None:
    one = '"part": fields.OneToOneField("{}", "CASCADE", primary_key=True)'
    files.write(
        "0001_parts",
        'CreateTable("a", {"id": fields.UUIDField(primary_key=True)}, model="A")',
        f'CreateTable("b", {{{one.format("a")}}}, model="B")',
        f'CreateTable("c", {{{one.format("b")}}}, model="C")',
        'CreateTable("d", {"id": fields.BigAutoField(), "c": fields.ForeignKey("c", "CASCADE")}, '
        'model="D")',
    )
    sql = sqlmigrate(files.folder, "0001", dialect="sqlite" if dialect == "sqlite" else "postgres")
    kind = {"sqlite": "TEXT", "postgres": "uuid"}[dialect]
    for column in ("part_id", "c_id"):
        assert f'"{column}" {kind}' in sql
