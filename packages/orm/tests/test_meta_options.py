"""Options of `Meta` and of fields that describe tables of others, and things for people."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from treefold_orm import DatabaseError, Model, ModelError, acreate_all, create_all, fields
from treefold_orm._fields.base import Field, Options
from treefold_orm._fields.relations import ForeignKey, OneToOneField

FIELDS: list[Any] = [
    kind
    for kind in vars(fields).values()
    if isinstance(kind, type) and issubclass(kind, Field) and kind is not Field
]


def with_meta(**options: Any) -> type[Model]:
    return type("Thing", (Model,), {"__module__": __name__, "Meta": type("Meta", (), options)})


async def test_tables_of_others_are_not_created(empty: Any, half: Any) -> None:
    class Foreign(Model):
        name = fields.CharField(max_length=10)

        class Meta:
            managed = False

    class Local(Model):
        name = fields.CharField(max_length=10)

    await half.call(lambda: create_all(Foreign, Local), lambda: acreate_all(Foreign, Local))
    assert await half(Local.objects).count() == 0
    with pytest.raises(DatabaseError, match="foreign"):
        await half(Foreign.objects).count()


async def test_connecting_tables_of_tables_of_others_are_not_created(empty: Any, half: Any) -> None:
    class Mark(Model):
        name = fields.CharField(max_length=10)

    class Marked(Model):
        marks = fields.ManyToManyField(Mark, related_name="+")

        class Meta:
            managed = False

    await half.call(lambda: create_all(Mark, Marked), lambda: acreate_all(Mark, Marked))
    through: Any = Marked._meta.relations["marks"].through
    with pytest.raises(DatabaseError, match="marked_marks"):
        await half(through.model.objects).count()


@pytest.mark.parametrize(
    ("option", "hint"),
    [
        ("db_table", "name the table with Meta.table"),
        ("unique_together", r"add UniqueConstraint\(\[...\]\) to Meta.constraints"),
        ("index_together", r"add Index\(\[...\]\) to Meta.indexes"),
        ("app_label", "models are told apart by their module"),
        ("proxy", "share methods with an abstract model or a mixin"),
        ("order_with_respect_to", "name it in Meta.ordering"),
        ("colour", "use one of abstract, constraints, database, default_manager_name"),
    ],
)
def test_other_options_are_refused_and_name_ours(option: str, hint: str) -> None:
    with pytest.raises(ModelError, match=rf"Thing.Meta.{option} is not an option: .*{hint}"):
        with_meta(**{option: "x"})


@pytest.mark.parametrize(
    ("kind", "given", "option", "hint"),
    [
        (fields.CharField, {"max_length": 3}, "blank", "null=True allows None"),
        (fields.JSONField, {}, "editable", r"assign\(data, fields="),
        (ForeignKey, {"to": "self"}, "to_field", "points to the primary key"),
        (OneToOneField, {"to": "self"}, "db_constraint", "the database enforces"),
        (fields.ManyToManyField, {"to": "self"}, "symmetrical", "has a direction"),
        (fields.ManyToManyField, {"to": "self"}, "blank", "no related rows are allowed"),
        (fields.IntegerField, {}, "colour", "use one of choices, db_column, db_default"),
        (fields.ManyToManyField, {"to": "self"}, "colour", "use one of related_name, through, to$"),
    ],
)
def test_other_options_of_fields_are_refused_and_name_ours(
    kind: Any, given: dict[str, Any], option: str, hint: str
) -> None:
    with pytest.raises(ModelError, match=f"{kind.__name__} takes no option '{option}': .*{hint}"):
        kind(**given, **{option: "x"})


def test_managed_is_true_or_false() -> None:
    with pytest.raises(ModelError, match=r"Thing\.Meta\.managed must be True or False, got 'no'"):
        with_meta(managed="no")


def test_models_and_fields_have_names_for_people() -> None:
    class OrderLine(Model):
        unit_price = fields.IntegerField(help_text="In cents, without tax")
        note = fields.TextField(verbose_name="remark")

    meta = OrderLine._meta
    assert (meta.verbose_name, meta.verbose_name_plural) == ("order line", "order lines")
    found = {f.name: (f.verbose_name, f.help_text) for f in meta.columns}
    assert found == {
        "id": ("id", ""),
        "unit_price": ("unit price", "In cents, without tax"),
        "note": ("remark", ""),
    }
    told = with_meta(verbose_name="row of an order", verbose_name_plural="rows")._meta
    assert (told.verbose_name, told.verbose_name_plural) == ("row of an order", "rows")


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_signatures_of_fields_name_every_option(kind: type[Field[Any]]) -> None:
    names = inspect.signature(kind).parameters
    assert set(Options.__annotations__) <= set(names)
    assert all(p.kind is not p.VAR_KEYWORD for p in names.values())


def test_signatures_keep_what_a_field_takes_besides() -> None:
    assert list(inspect.signature(fields.CharField).parameters)[:2] == ["max_length", "null"]
    assert list(inspect.signature(fields.ManyToManyField).parameters) == [
        "to",
        "related_name",
        "through",
    ]
    for kind in (ForeignKey, OneToOneField):
        assert {"to", "on_delete", "related_name"} <= set(inspect.signature(kind).parameters)


def test_help_shows_the_options_of_a_field() -> None:
    code = (
        "import pydoc; from treefold_orm import fields; print(pydoc.render_doc(fields.CharField))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "db_default" in shown.stdout.split("Text of at most")[0]
