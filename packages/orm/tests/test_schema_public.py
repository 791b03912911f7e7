"""`treefold_orm.schema`: tables described without model classes equal those of the models."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from orm_amounts import ALL as AMOUNTS
from orm_models import ALL

import treefold_orm.schema as schema
from treefold_orm import CheckConstraint, Index, Lower, ModelError, Q, fields, registry
from treefold_orm.schema import Field, Meta, TableShape, is_foreign_key, meta_of, table_of


def unbound(meta: Meta, field: Field[Any]) -> Field[Any]:
    """A copy of a model's field that names the table it points to."""
    made = field.copy()
    if is_foreign_key(field) and is_foreign_key(made):
        made.to = field.known_target.table_name
        made.target = None
    return made


def shape_of(meta: Meta) -> TableShape:
    return TableShape(
        meta.table_name,
        meta.name,
        {name: unbound(meta, field) for name, field in meta.fields.items()},
        tuple(key.name for key in meta.keys) if len(meta.keys) > 1 else (),
        meta.constraints,
        meta.indexes,
    )


def made(meta: Meta, dialect: schema.Dialect) -> object:
    """The record of a table, or the reason why a database cannot have it."""
    try:
        return table_of(meta, dialect)
    except schema.UnsupportedFeature as error:
        return str(error)


def metas() -> list[Meta]:
    registry.resolve_pending_targets()
    models = {model._meta.model.__module__ for model in (*ALL, *AMOUNTS)}
    return [meta for meta in registry if meta.model.__module__ in models]


SHAPES = {meta.table_name: shape_of(meta) for meta in metas()}


@pytest.mark.parametrize("dialect", [schema.SQLite(), schema.Postgres()], ids=["sqlite", "pg"])
@pytest.mark.parametrize("meta", metas(), ids=lambda meta: meta.name)
def test_a_shape_gives_the_table_of_its_model(meta: Meta, dialect: schema.Dialect) -> None:
    assert made(meta_of(meta.table_name, SHAPES), dialect) == made(meta, dialect)


def test_a_shape_is_not_registered() -> None:
    before = list(registry)
    meta_of("author", SHAPES)
    assert list(registry) == before


def test_the_fields_of_a_shape_stay_unbound() -> None:
    shape = TableShape("note", "Note", {"id": fields.BigAutoField(), "text": fields.TextField()})
    meta_of("note", {"note": shape})
    assert shape.fields["text"].meta is schema.MISSING


def test_constraints_and_indexes_of_a_shape_speak_of_its_fields() -> None:
    shape = TableShape(
        "seat",
        "Seat",
        {"id": fields.BigAutoField(), "row": fields.TextField(), "n": fields.IntegerField()},
        constraints=(CheckConstraint(Q(n__gte=1), name="from_one"),),
        indexes=(Index(Lower("row"), name="by_row"),),
    )
    table = table_of(meta_of("seat", {"seat": shape}), schema.SQLite())
    assert [check.sql for check in table.checks] == ['"n" >= 1']
    assert [index.name for index in table.indexes] == ["by_row"]


def test_tables_may_point_to_each_other() -> None:
    shapes = {
        name: TableShape(
            name,
            name.title(),
            {"id": fields.BigAutoField(), "other": fields.ForeignKey(other, null=True)},
        )
        for name, other in (("hen", "egg"), ("egg", "hen"))
    }
    table = table_of(meta_of("hen", shapes), schema.Postgres())
    assert [(key.target, key.target_column) for key in table.foreign_keys] == [("egg", "id")]
    assert table.columns[1].type == "bigint"


def test_a_target_that_is_not_among_the_shapes_is_an_error() -> None:
    fields_ = {"id": fields.BigAutoField(), "author": fields.ForeignKey("author")}
    with pytest.raises(ModelError, match=r"post\.author points to the table 'author', which is"):
        meta_of("post", {"post": TableShape("post", "Post", fields_)})


def test_a_shape_without_a_key_is_an_error() -> None:
    shape = TableShape("note", "Note", {"text": fields.TextField()})
    with pytest.raises(ModelError, match="Table 'note' must have a primary key, got none"):
        meta_of("note", {"note": shape})


def test_every_name_of_the_module_is_there() -> None:
    assert [name for name in vars(schema)["__all__"] if not hasattr(schema, name)] == []


def test_importing_the_module_imports_no_asyncio_and_no_driver() -> None:
    code = "import sys, treefold_orm.schema; print({'asyncio', 'aiosqlite'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(schema, "nothing")  # noqa: B009 - a type checker knows it too
