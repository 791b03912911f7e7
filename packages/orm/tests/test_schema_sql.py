"""SchemaSQL: SQL of one database in constraints, indexes and defaults, and nowhere else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from treefold_orm import (
    CheckConstraint,
    CheckViolation,
    FieldError,
    Index,
    Model,
    ModelError,
    SchemaSQL,
    UniqueConstraint,
    close_all,
    configure,
    create_all,
    fields,
)
from treefold_orm.schema import Postgres, SQLite, namespace_of, source_of, table_of


class Parcel(Model):
    """A row whose constraints are SQL."""

    _space = "schema_sql"
    code = fields.CharField(max_length=10, db_column="Code of parcel")
    sent = fields.DateTimeField(zone=None, db_default=SchemaSQL("CURRENT_TIMESTAMP"))
    weight = fields.IntegerField(db_default=SchemaSQL("abs(-7)"))
    owner = fields.ForeignKey("self", null=True, constraint_name="parcel_owner_key")

    class Meta:
        constraints = (
            CheckConstraint(SchemaSQL("length({}) > 2 AND {} <> ';--'", "code", "code"), name="c"),
            UniqueConstraint(SchemaSQL("{} % 10", "weight"), name="u"),
        )
        indexes = (Index("weight", condition=SchemaSQL("{} <> '{{}}'", "code"), name="i"),)


def test_the_text_stands_in_the_schema_with_its_columns() -> None:
    table = table_of(Parcel._meta, SQLite())
    checks = [check.sql for check in table.checks]
    assert checks == ['length("Code of parcel") > 2 AND "Code of parcel" <> \';--\'']
    assert table.uniques[0].terms == ('("weight" % 10)',)
    assert table.indexes[-1].where == "\"Code of parcel\" <> '{}'"
    assert {c.name: c.default for c in table.columns}["weight"] == "(abs(-7))"
    assert table_of(Parcel._meta, Postgres()).foreign_keys[0].name == "parcel_owner_key"


def test_the_source_of_it_makes_it_again() -> None:
    for part in (*Parcel._meta.constraints, *Parcel._meta.indexes, Parcel._meta.fields["owner"]):
        text, imports = source_of(part)
        again = eval(text, namespace_of(imports))
        assert source_of(again)[0] == text


def test_rows_are_held_to_it(tmp_path: Path) -> None:
    configure("sqlite", str(tmp_path / "parcels.sqlite3"))
    try:
        create_all(Parcel)
        parcel = Parcel.objects.create(code="abc")
        parcel.refresh_from_db()
        assert parcel.weight == 7
        assert parcel.sent.tzinfo is None
        with pytest.raises(CheckViolation, match="The check constraint 'c' is not met"):
            Parcel.objects.create(code="a", weight=1)
    finally:
        close_all()


@pytest.mark.parametrize(
    "text",
    [
        "1; DROP TABLE parcel",
        "1 -- none",
        "1 /* none */",
        "1) OR (1",
        "(1",
        "",
        "'open",
        '"open',
        "`a`",
        "a\nb",
        "{name}",
        "{0}",
        "{} > 1",
        "{",
    ],
)
def test_text_that_is_no_expression_is_refused(text: str) -> None:
    with pytest.raises(ModelError, match=r"^SchemaSQL"):
        SchemaSQL(text)


def test_no_query_takes_it(tmp_path: Path) -> None:
    configure("sqlite", str(tmp_path / "parcels.sqlite3"))
    sql: Any = SchemaSQL("1")
    try:
        for query in (
            Parcel.objects.filter(sql),
            Parcel.objects.filter(~sql),
            Parcel.objects.order_by(sql.asc()),
        ):
            with pytest.raises(FieldError, match="SchemaSQL cannot stand in a query"):
                list(query)
    finally:
        close_all()
