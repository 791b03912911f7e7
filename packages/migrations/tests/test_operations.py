"""Operations: what they refuse, how they are written, what undoes them."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest

import treefold_migrations as m
from treefold_migrations import SchemaState, StateError
from treefold_migrations._state.rendering import render_fill_sql, render_table
from treefold_migrations._state.schema_state import is_same_state
from treefold_orm import CheckConstraint, F, Index, Lower, Model, Now, Q, UniqueConstraint, fields
from treefold_orm.schema import Imports, Postgres, SQLite, namespace_of

HALF = decimal.Decimal("0.5")


class Named(Model):
    """A model, which migrations must not name."""


def start() -> SchemaState:
    """A state with an author and posts."""
    state = m.CreateTable(
        "author", {"id": fields.BigAutoField(), "name": fields.CharField(max_length=9)}, "Author"
    ).apply(SchemaState())
    return m.CreateTable(
        "post",
        {
            "id": fields.BigAutoField(),
            "author": fields.ForeignKey("author", "CASCADE"),
            "title": fields.TextField(),
            "n": fields.IntegerField(null=True),
        },
        model="Post",
        constraints=[
            UniqueConstraint("author", "title"),
            CheckConstraint(Q(n__gte=F("author")) | Q(n=None), name="n_ok"),
        ],
        indexes=[Index("-n"), Index(Lower("title"), name="by_title")],
    ).apply(state)


def nothing(*_: Any) -> None:
    """Do nothing, as a data migration."""


OPERATIONS: list[m.Operation] = [
    m.CreateTable("tag", {"id": fields.BigAutoField(), "post": fields.ForeignKey("post")}, "Tag"),
    m.CreateTable(
        "seat",
        {"row": fields.IntegerField(), "n": fields.IntegerField()},
        "Seat",
        ["row", "n"],
        [UniqueConstraint("n")],
        [Index("n")],
        managed=False,
    ),
    m.DropTable("post"),
    m.RenameTable("author", "writer"),
    m.SetOptions("post", model="Article"),
    m.SetOptions("post", managed=False),
    m.AddField("post", "slug", fields.SlugField(), fill="it's"),
    m.AddField("post", "made", fields.DateTimeField(), fill=Now()),
    m.AddField("post", "editor", fields.ForeignKey("author", null=True)),
    m.AlterField("post", "n", fields.BigIntegerField(), fill=0, when="contract"),
    m.RenameField("post", "title", "headline"),
    m.RenameField("post", "author", "writer"),
    m.RenameField("post", "n", "number"),
    m.AddConstraint("post", UniqueConstraint("n", condition=Q(n__gt=3), name="some")),
    m.DropConstraint("post", "uq_post_author_id_title"),
    m.DropConstraint("post", "n_ok"),
    m.AddIndex("post", Index("title")),
    m.DropIndex("post", "ix_post_n_desc"),
    m.DropIndex("post", "by_title"),
    m.RunSQL("SELECT 1", ""),
    m.RunSQL({"sqlite": "SELECT 1", "postgres": ["SELECT 2", "SELECT 3"]}, ["SELECT 4"]),
    m.RunSQL("SELECT 1", "SELECT 2", tables=["post"], transactional=False, elidable=True),
    m.RunPython(nothing, m.RunPython.noop, tables=["post"], when="contract"),
    m.RunPython(nothing, nothing),
    m.SeparateStateAndDatabase(
        database=[m.RunSQL("SELECT 1", "SELECT 2")],
        state=[m.AddField("post", "x", fields.TextField(null=True))],
    ),
]
BY_TEXT = [pytest.param(operation, id=operation.source(Imports())[:70]) for operation in OPERATIONS]


@pytest.mark.parametrize("operation", BY_TEXT)
def test_an_operation_is_undone_by_its_reverse(operation: m.Operation) -> None:
    before = start()
    reverse = operation.reverse(before)
    assert reverse is not None
    assert is_same_state(reverse.apply(operation.apply(before)), before)


@pytest.mark.parametrize("operation", BY_TEXT)
def test_the_source_of_an_operation_makes_it_again(operation: m.Operation) -> None:
    imports = Imports()
    again = eval(operation.source(imports), namespace_of(imports))
    assert again == operation
    assert again.describe() == operation.describe()
    assert again.phase == operation.phase
    assert hash(again) == hash(operation)


@pytest.mark.parametrize("operation", BY_TEXT)
def test_a_state_is_not_changed_by_an_operation(operation: m.Operation) -> None:
    before = start()
    operation.apply(before)
    assert is_same_state(before, start())


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (m.CreateTable("post", {}), "Table 'post' must not exist yet"),
        (
            m.CreateTable("x", {"a": fields.ForeignKey("none")}),
            "x.a points to the table 'none', which must exist",
        ),
        (
            m.CreateTable("x", {"a": fields.ForeignKey(Named)}),
            "x.a must name its table as text, got Named",
        ),
        (m.CreateTable("x", {"a b": fields.TextField()}), "field 'a b' must be a plain name"),
        (m.CreateTable("x", {"a": 3}), "x.a must be a field, got int"),  # pyright: ignore[reportArgumentType]
        (m.CreateTable("x", {}, model="class"), "model 'class' must be a plain name"),
        (m.CreateTable("x", {}, primary_key=["a", "b"]), "x.a must exist; the table has none"),
        (m.DropTable("none"), "Table 'none' must exist; known tables: author, post"),
        (m.DropTable("author"), "'author' cannot be dropped while post.author points to it"),
        (m.RenameTable("author", "post"), "Table 'post' must not exist yet"),
        (m.RenameTable("none", "x"), "Table 'none' must exist"),
        (m.AddField("none", "x", fields.TextField()), "Table 'none' must exist"),
        (m.AddField("post", "n", fields.TextField()), "post.n must not exist yet"),
        (
            m.AddField("post", "x", fields.TextField(db_column="author_id")),
            "post.x cannot use the column 'author_id', which belongs to post.author",
        ),
        (m.AddField("post", "x-y", fields.TextField()), "field 'x-y' must be a plain name"),
        (m.AddField("post", "x", fields.ForeignKey("none")), "which must exist; create it first"),
        (m.DropField("post", "none"), "post.none must exist; the table has id, author, title, n"),
        (m.DropField("post", "n"), "post.n cannot be dropped while n_ok, ix_post_n_desc uses it"),
        (m.DropField("post", "author"), "cannot be dropped while uq_post_author_id_title, n_ok"),
        (m.AlterField("post", "none", fields.TextField()), "post.none must exist"),
        (
            m.AlterField("post", "n", fields.TextField(db_column="title")),
            "cannot use the column 'title'",
        ),
        (m.RenameField("post", "none", "x"), "post.none must exist"),
        (m.RenameField("post", "n", "title"), "post.title must not exist yet"),
        (m.RenameField("post", "n", "a; b"), "field 'a; b' must be a plain name"),
        (m.AddConstraint("post", UniqueConstraint("none")), "post.none must exist"),
        (
            m.AddConstraint("post", CheckConstraint(Q(n=1), name="n_ok")),
            "has a constraint or index called 'n_ok' already",
        ),
        (m.DropConstraint("post", "none"), "Table 'post' must have the constraint 'none'"),
        (m.AddIndex("post", Index("none")), "post.none must exist"),
        (m.AddIndex("post", Index("-n")), "called 'ix_post_n_desc' already"),
        (m.DropIndex("post", "none"), "Table 'post' must have the index 'none'"),
        (m.SetOptions("post", model="a b"), "model 'a b' must be a plain name"),
        (m.SetOptions("post", primary_key=["none", "n"]), "post.none must exist"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_an_operation_that_does_not_fit_says_why(operation: m.Operation, message: str) -> None:
    with pytest.raises(StateError) as raised:
        operation.apply(start())
    assert message in str(raised.value)


def test_sql_that_cannot_be_undone_has_no_reverse() -> None:
    assert m.RunSQL("SELECT 1").reverse(start()) is None
    assert m.RunPython(nothing).reverse(start()) is None
    split = m.SeparateStateAndDatabase(database=[m.RunSQL("SELECT 1")])
    assert split.reverse(start()) is None


def test_statements_are_those_of_one_database() -> None:
    operation = m.RunSQL({"sqlite": "SELECT 1", "postgres": ["SELECT 2", " "]})
    assert operation.statements("sqlite") == ["SELECT 1"]
    assert operation.statements("postgres") == ["SELECT 2"]
    with pytest.raises(StateError, match="knows 'sqlite' and 'postgres', got 'mysql'"):
        m.RunSQL({"mysql": "SELECT 1"})
    with pytest.raises(StateError, match="RunSQL must be given text, got 3"):
        m.RunSQL([3])  # pyright: ignore[reportArgumentType]


def test_a_phase_must_be_one_of_two() -> None:
    with pytest.raises(StateError, match="phase must be 'expand' or 'contract', got 'later'"):
        m.RunSQL("SELECT 1", when="later")  # pyright: ignore[reportArgumentType]


def test_what_loses_data_is_destructive_and_waits() -> None:
    for operation in (m.DropTable("post"), m.DropField("post", "n")):
        assert operation.destructive
        assert operation.phase == "contract"
    assert m.SeparateStateAndDatabase(database=[m.DropTable("post")]).destructive
    assert not m.SeparateStateAndDatabase(state=[m.DropTable("post")]).destructive


def test_a_renamed_table_takes_its_references_with_it() -> None:
    state = m.RenameTable("author", "writer").apply(start())
    assert [t.name for t, _ in state.references_to("writer")] == ["post"]
    assert list(state.references_to("author")) == []
    keys = render_table(state, "post", SQLite()).foreign_keys
    assert [key.target for key in keys] == ["writer"]


def test_a_renamed_field_is_renamed_everywhere() -> None:
    state = m.RenameField("post", "author", "writer").apply(start())
    table = state.table("post")
    assert [table.constraint_name(c) for c in table.options.constraints] == [
        "uq_post_writer_id_title",
        "n_ok",
    ]
    assert render_table(state, "post", SQLite()).checks[0].sql.count('"writer_id"') == 1


@pytest.mark.parametrize(
    ("field", "value", "sqlite", "postgres"),
    [
        (fields.TextField(), "it's", "'it''s'", "'it''s'"),
        (fields.IntegerField(), -3, "-3", "-3"),
        (fields.BooleanField(), True, "1", "TRUE"),
        (fields.DecimalField(max_digits=5, decimal_places=2), 1, "100", "'1.00'"),
        (fields.ForeignKey("author"), 7, "7", "7"),
        (fields.JSONField(), {"a": 1}, "'{\"a\":1}'", "'{\"a\":1}'"),
        (fields.TextField(null=True), None, "NULL", "NULL"),
        (
            fields.DateTimeField(zone=None),
            dt.datetime(2020, 1, 2, 3),
            "'2020-01-02 03:00:00'",
            "'2020-01-02 03:00:00'",
        ),
        (fields.DecimalField(max_digits=5, decimal_places=2, storage="real"), HALF, "0.5", "0.5"),
        (
            fields.DecimalField(max_digits=5, decimal_places=2, storage="text"),
            1,
            "'1.00'",
            "'1.00'",
        ),
    ],
)
def test_a_fill_is_sql_of_the_database(
    field: Any, value: object, sqlite: str, postgres: str
) -> None:
    state = m.AddField("post", "x", field).apply(start())
    assert render_fill_sql(state, "post", "x", value, SQLite()) == sqlite
    assert render_fill_sql(state, "post", "x", value, Postgres()) == postgres


def test_a_fill_that_does_not_fit_is_an_error_with_its_value() -> None:
    state = m.AddField("post", "x", fields.IntegerField()).apply(start())
    with pytest.raises(StateError, match=r"post\.x cannot be filled with 'many': .*takes an int"):
        render_fill_sql(state, "post", "x", "many", SQLite())
