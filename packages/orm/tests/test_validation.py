"""full_clean: every value and the model's own rules are checked, and told at once."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
from typing import Any

import pytest
from orm_models import Author, Everything, Post

from treefold_orm import (
    F,
    FieldError,
    FieldValueError,
    Model,
    ValidationError,
    acreate_all,
    create_all,
    fields,
)
from treefold_orm._fields.base import Field
from treefold_orm._framework.extension import Databases
from treefold_orm.testing import sandbox


def not_odd(value: int) -> None:
    """A validator."""
    if value % 2:
        raise ValueError("must be even")


def not_big(value: int) -> None:
    """Another one."""
    if value > 100:
        raise ValidationError("must be small")


def telling(value: str) -> None:
    """A validator that quotes what it is given."""
    raise ValueError(f"{value} is too weak")


class Event(Model):
    """Rules of fields, and one between them."""

    name = fields.CharField(max_length=5)
    seats = fields.IntegerField(default=2, validators=[not_odd, not_big])
    starts = fields.DateField(default=dt.date(2026, 1, 1))
    ends = fields.DateField(default=dt.date(2026, 1, 2))
    token = fields.CharField(max_length=5, null=True, validators=[telling])
    problem: Any = None

    def clean(self) -> None:
        """The end comes after the start."""
        if self.problem is not None:
            raise self.problem
        if self.ends < self.starts:
            raise ValidationError({"ends": "before it starts"})


def test_a_valid_instance_takes_the_checked_values() -> None:
    event: Any = Event(name="x", starts="2026-01-01", seats=4)
    event.full_clean()
    assert event.starts == dt.date(2026, 1, 1)


def test_all_messages_of_all_fields_are_told_at_once() -> None:
    event = Event(name="too long", seats=101)
    event.ends = dt.date(2025, 1, 1)
    with pytest.raises(ValidationError) as caught:
        event.full_clean()
    assert caught.value.message_dict == {
        "name": ["longer than 5 characters (8)"],
        "seats": ["must be even", "must be small"],
        "ends": ["before it starts"],
    }
    assert caught.value.model == "Event"
    assert caught.value.messages[1:] == ["must be even", "must be small", "before it starts"]
    assert str(caught.value) == (
        "Event.name: longer than 5 characters (8); Event.seats: must be even, must be small; "
        "Event.ends: before it starts"
    )


@pytest.mark.parametrize(
    ("problem", "messages"),
    [
        (ValidationError("no"), {"__all__": ["no"]}),
        (ValidationError(["no", "never"]), {"__all__": ["no", "never"]}),
        (ValidationError({"name": ["a", "b"], "ends": "c"}), {"name": ["a", "b"], "ends": ["c"]}),
        (FieldValueError("Event", "name", reason="bad"), {"name": ["bad"]}),
        (ValueError("plain"), {"__all__": ["plain"]}),
    ],
)
def test_clean_may_raise_messages_in_several_forms(problem: Any, messages: Any) -> None:
    event = Event(name="x")
    event.problem = problem
    with pytest.raises(ValidationError) as caught:
        event.full_clean()
    assert caught.value.message_dict == messages


def test_other_errors_of_clean_are_not_messages() -> None:
    event = Event(name="x")
    event.problem = ZeroDivisionError("a fault")
    with pytest.raises(ZeroDivisionError, match="a fault"):
        event.full_clean()


def test_messages_of_a_field_and_of_clean_are_joined() -> None:
    event = Event(name="too long")
    event.problem = ValidationError({"name": "taken"})
    with pytest.raises(ValidationError) as caught:
        event.full_clean()
    assert caught.value.message_dict == {"name": ["longer than 5 characters (8)", "taken"]}


def test_excluded_fields_are_not_checked() -> None:
    Event(name="too long").full_clean(exclude=["name"])
    with pytest.raises(FieldError, match="Event has no field 'nme'"):
        Event(name="x").full_clean(exclude=["nme"])


def test_a_sensitive_value_is_never_told() -> None:
    with pytest.raises(ValidationError) as caught:
        Event(name="x", token="abc").full_clean()
    assert caught.value.message_dict == {"token": ["refused by a validator"]}


def test_a_missing_value_and_a_wrong_type_are_told() -> None:
    with pytest.raises(ValidationError) as caught:
        Everything(integer="5", status="x", color="green").full_clean()
    assert caught.value.message_dict == {
        "integer": ["takes an int, not str"],
        "color": ["not a Color"],
        "status": ["not one of the choices"],
    }
    with pytest.raises(ValidationError, match=r"Author\.name: may not be null"):
        Author().full_clean()


def test_a_relation_to_an_unsaved_instance_is_told() -> None:
    with pytest.raises(ValidationError, match=r"Post\.author: that Author is not saved yet"):
        Post(title="x", author=Author(name="y")).full_clean()


def test_expressions_are_left_to_the_database() -> None:
    event: Any = Event(name="x")
    event.seats = F("seats") + 1
    event.full_clean()
    assert not isinstance(event.seats, int)


async def test_what_was_not_loaded_is_not_checked(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann")
    lean = await half(Author.objects.only("age").annotate(twice=F("age") * 2)).get()
    lean.full_clean()
    assert not lean.is_loaded("name")
    lean.age = "x"
    with pytest.raises(ValidationError, match=r"^Author\.age: takes an int, not str$"):
        lean.full_clean()


async def test_save_does_not_call_clean(db: Any, half: Any) -> None:
    with sandbox():
        await half.call(lambda: create_all(Event), lambda: acreate_all(Event))
        event = Event(name="x")
        event.problem = ValidationError("never")
        await half(event).save()
        assert await half(Event.objects).count() == 1


def test_a_validation_error_is_a_value_error_that_travels() -> None:
    error = ValidationError({"name": "bad"}, model="Event")
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (twin.message_dict, twin.model) == ({"name": ["bad"]}, "Event")
        assert isinstance(twin, ValueError)
    assert str(ValidationError("whole")) == "whole"


LIMITS: list[tuple[Field[Any], Any, dict[str, Any]]] = [
    (fields.CharField(max_length=3), "long", {"max_length": 3}),
    (fields.IntegerField(), 2**40, {"ge": -(2**31), "le": 2**31 - 1}),
    (fields.DecimalField(max_digits=5, decimal_places=2), "1000", {"whole_digits": 3}),
    (fields.DecimalField(max_digits=5, decimal_places=2), "0.001", {"decimal_places": 2}),
    (fields.CharField(max_length=9, choices=["a", "b"]), "c", {"expected": "'a', 'b'"}),
    (fields.ArrayField(fields.CharField(max_length=3)), ["long"], {"max_length": 3}),
    (fields.UUIDField(), "x", {}),
]


@pytest.mark.parametrize(("field", "value", "limits"), LIMITS)
def test_an_error_says_the_limit_that_was_missed(
    field: Field[Any], value: Any, limits: dict[str, Any]
) -> None:
    with pytest.raises(FieldValueError) as refused:
        field.clean(value)
    assert refused.value.limits == limits
    assert pickle.loads(pickle.dumps(refused.value)).limits == limits

    [entry] = Databases().refusals[FieldValueError](refused.value)[2] or []
    assert entry.get("ctx", {}) == limits
