"""Names of fields and relations: what would hide a method or another attribute is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import treefold_orm
from treefold_orm import (
    CASCADE,
    PROTECT,
    RESTRICT,
    SET_DEFAULT,
    SET_NULL,
    Manager,
    Model,
    ModelError,
    fields,
    registry,
)


@pytest.fixture(autouse=True)
def forget_models() -> Iterator[None]:
    """Take the models of a test out of the registry, also those that were refused."""
    before, waiting = dict(registry._models), list(registry._waiting)
    yield
    registry._models, registry._waiting = before, waiting


def declare(class_name: str, /, *bases: type[Any], **body: Any) -> type[Any]:
    """Make a model class of this module."""
    return type(class_name, bases or (Model,), {"__module__": __name__, **body})


def method(self: object) -> int:
    """A method of a model."""
    return 1


METHODS = sorted(
    name for name in vars(Model) if not name.startswith("_") and name not in {"pk", "id"}
)


@pytest.mark.parametrize("name", METHODS)
def test_a_field_named_like_an_attribute_of_model_is_refused(name: str) -> None:
    with pytest.raises(
        ModelError,
        match=rf"Taken\.{name} cannot be a field name: .*keep the column with db_column='{name}'",
    ):
        declare("Taken", **{name: fields.IntegerField()})


def test_the_methods_users_reach_for_are_among_the_refused_names() -> None:
    assert {"save", "delete", "load", "objects", "refresh", "asave", "assign"} <= set(METHODS)


def test_db_column_keeps_the_column_of_a_refused_name() -> None:
    made = declare("Kept", saved=fields.IntegerField(db_column="save"))
    assert made._meta.fields["saved"].column_name == "save"


@pytest.mark.parametrize("name", ["save", "objects", "pk", "_x", "a__b", "class"])
def test_a_many_to_many_field_needs_a_free_plain_name(name: str) -> None:
    target = declare("Target")
    with pytest.raises(ModelError, match=rf"Taken\.{name} cannot be a field name"):
        declare("Taken", **{name: fields.ManyToManyField(target, related_name="+")})


def test_an_inherited_field_is_checked_as_well() -> None:
    with pytest.raises(ModelError, match="cannot be a field name: every model has"):
        declare("Base", save=fields.IntegerField(), Meta=type("Meta", (), {"abstract": True}))


def test_an_inherited_field_cannot_become_a_method() -> None:
    base = declare("Base", title=fields.TextField(), Meta=type("Meta", (), {"abstract": True}))
    with pytest.raises(
        ModelError, match=r"Child\.title cannot replace the inherited field.*set it to None"
    ):
        declare("Child", base, title=method)
    assert "title" not in declare("Other", base, title=None)._meta.fields


REVERSE: list[tuple[dict[str, Any], str, str]] = [
    ({}, "save", "another attribute of that name; give the relation a related_name"),
    ({}, "objects", "another attribute of that name"),
    ({}, "pk", "another attribute of that name"),
    ({"total": method}, "total", "another attribute of that name"),
    ({"total": property(method)}, "total", "another attribute of that name"),
    ({"lively": Manager[Any]()}, "lively", "another attribute of that name"),
    ({"total": fields.IntegerField()}, "total", "has 'total' already: give Source a related_name"),
    (
        {"boss": fields.ForeignKey("self", null=True, related_name="+")},
        "boss_id",
        "has 'boss_id' already: give Source a related_name",
    ),
]


@pytest.mark.parametrize(("body", "related_name", "message"), REVERSE, ids=range(len(REVERSE)))
@pytest.mark.parametrize("kind", [fields.ForeignKey, fields.OneToOneField, fields.ManyToManyField])
def test_a_way_back_cannot_hide_an_attribute(
    body: dict[str, Any], related_name: str, message: str, kind: Any
) -> None:
    target = declare("Target", **{name: copied(value) for name, value in body.items()})
    with pytest.raises(ModelError, match=message):
        declare("Source", to=kind(target, related_name=related_name))


def copied(value: Any) -> Any:
    """A field of its own for each model."""
    return value.copy() if hasattr(value, "copy") else value


def test_a_default_way_back_cannot_hide_a_method() -> None:
    target = declare("Target")
    with pytest.raises(ModelError, match=r"Target\.save cannot lead to Save"):
        declare("Save", target=fields.OneToOneField(target))


def test_two_fields_cannot_share_an_attribute() -> None:
    with pytest.raises(ModelError, match="share the attribute 'boss_id'"):
        declare(
            "Worker",
            boss=fields.ForeignKey("self", null=True, db_column="chief"),
            boss_id=fields.IntegerField(),
        )


def test_the_key_of_a_foreign_key_cannot_be_a_method() -> None:
    with pytest.raises(ModelError, match=r"Worker\.boss_id is the key of Worker\.boss"):
        declare("Worker", boss=fields.ForeignKey("self", null=True), boss_id=property(method))


def test_a_model_that_is_defined_again_takes_its_ways_back_again() -> None:
    target = declare("Target")
    _, source = [
        declare("Source", target=fields.ForeignKey(target, related_name="sources"))
        for _ in range(2)
    ]
    assert target._meta.relations["sources"].target is source._meta


# -- on_delete ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("CASCADE", CASCADE),
        ("PROTECT", PROTECT),
        ("RESTRICT", RESTRICT),
        ("SET_DEFAULT", SET_DEFAULT),
        ("SET_NULL", SET_NULL),
    ],
)
def test_rules_of_on_delete_are_names_and_plain_text(name: str, constant: str) -> None:
    assert constant == name
    assert getattr(fields, name) is getattr(treefold_orm, name)
    assert name in vars(treefold_orm)["__all__"]


@pytest.mark.parametrize("kind", [fields.ForeignKey, fields.OneToOneField])
def test_on_delete_may_be_given_by_position(kind: Any) -> None:
    target = declare("Target")
    made = declare("Source", to=kind(target, CASCADE, related_name="back"))
    assert made._meta.fields["to"].on_delete == "CASCADE"
    assert kind(target, SET_NULL, null=True).on_delete == "SET_NULL"


@pytest.mark.parametrize(
    ("rule", "hint"),
    [
        ("NO ACTION", "use one of CASCADE, PROTECT, RESTRICT, SET_DEFAULT, SET_NULL"),
        ("DO_NOTHING", "use RESTRICT"),
        ("SET", "use SET_DEFAULT with a default"),
        ("cascade", "use one of CASCADE, PROTECT, RESTRICT, SET_DEFAULT, SET_NULL"),
    ],
)
def test_an_unknown_rule_of_on_delete_names_the_one_to_use(rule: Any, hint: str) -> None:
    with pytest.raises(ModelError, match=f"on_delete cannot be {rule!r}; .*{hint}"):
        fields.ForeignKey("Target", rule)
