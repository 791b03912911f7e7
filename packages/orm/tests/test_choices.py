"""Choices with labels: TextChoices, IntegerChoices, get_<field>_display, and what is stored."""

from __future__ import annotations

import copy
import enum
import json
import pickle
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from treefold_orm import (
    FieldValueError,
    FilterSet,
    IntegerChoices,
    InvalidParameter,
    Model,
    ModelError,
    TextChoices,
    ValidationError,
    acreate_all,
    create_all,
    fields,
    taint,
)
from treefold_orm.testing import sandbox


class Status(TextChoices):
    """Text with labels."""

    DRAFT = "d", "A draft"
    IN_REVIEW = "r"
    PUBLISHED = "p", "Published"


class Level(IntegerChoices):
    """Integers with labels."""

    LOW = 1, "Low"
    VERY_HIGH = 9


class Answer(TextChoices):
    """Values made of the names, and a label for None."""

    __empty__ = "(none)"
    YES = enum.auto()
    NO = enum.auto()


class Paper(Model):
    """One field for each way to give choices."""

    status = fields.CharField(max_length=1, choices=Status.choices, default=Status.DRAFT)
    level = fields.IntegerField(choices=Level, default=Level.LOW)
    answer = fields.CharField(max_length=3, choices=Answer.choices, null=True)
    medium = fields.CharField(
        max_length=9,
        null=True,
        choices=[("Audio", [("vinyl", "Vinyl"), ("cd", "CD")]), ("unknown", "Unknown")],
    )
    size = fields.CharField(max_length=1, null=True, choices={"s": "Small", "l": "Large"})
    plain = fields.IntegerField(null=True, choices=[1, 2])
    member = fields.EnumField(Status, null=True)


async def make_tables(half: Any) -> None:
    await half.call(lambda: create_all(Paper), lambda: acreate_all(Paper))


@pytest.fixture
def papers(db: Any) -> Iterator[None]:
    with sandbox():
        yield


def test_members_are_plain_values_with_labels() -> None:
    assert Status.DRAFT == "d"
    assert hash(Status.DRAFT) == hash("d")
    assert (str(Status.DRAFT), f"{Status.DRAFT}", json.dumps(Status.DRAFT)) == ("d", "d", '"d"')
    assert (Level.LOW + 1, f"{Level.VERY_HIGH}", json.dumps([Level.LOW])) == (2, "9", "[1]")
    assert Status("p") is Status.PUBLISHED
    assert Level(9) is Level.VERY_HIGH
    assert (Status.DRAFT.label, Status.IN_REVIEW.label) == ("A draft", "In Review")
    assert (Status.DRAFT.value, Status.DRAFT.name) == ("d", "DRAFT")
    for member in (Status.IN_REVIEW, Level.LOW):
        assert copy.deepcopy(member) is member
        assert pickle.loads(pickle.dumps(member)) is member


def test_a_choices_class_lists_its_members() -> None:
    assert Status.choices == [("d", "A draft"), ("r", "In Review"), ("p", "Published")]
    assert Status.values == ["d", "r", "p"]
    assert Status.labels == ["A draft", "In Review", "Published"]
    assert Status.names == ["DRAFT", "IN_REVIEW", "PUBLISHED"]
    assert Answer.choices == [(None, "(none)"), ("YES", "Yes"), ("NO", "No")]
    assert {type(value) for value, _ in Status.choices} == {str}
    assert {type(value) for value in Level.values} == {int}
    assert "d" in Status
    assert Status.DRAFT in Status
    assert "x" not in Status


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TextChoices("X", {"A": "a", "B": "a"}), ValueError, "duplicate values"),
        (lambda: TextChoices("X", {"A": 1}), TypeError, "X takes text, got 1"),
        (lambda: IntegerChoices("X", {"A": "a"}), TypeError, "X takes integers, got 'a'"),
    ],
)
def test_a_wrong_choices_class_says_what_is_wrong(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        (enum.Enum("Color", {"RED": "r"}), "choices cannot be Color; derive it from TextChoices"),
        ("ab", "choices must be values, pairs of value and label, or a mapping, got 'ab'"),
        (5, "choices must be values, pairs"),
        ([{"a": 1}], r"choices must be hashable values, got \{'a': 1\}"),
        ([([1], "one")], r"choices must be hashable values, got \[1\]"),
    ],
)
def test_wrong_choices_of_a_field_say_what_is_wrong(choices: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        fields.TextField(choices=choices)


class Setting(Model):
    """Choices of a field whose values may be lists and objects."""

    data = fields.JSONField(choices=[1, "x"])


@pytest.mark.parametrize("value", [[1], {"x": 1}, [], {}, 2])
async def test_json_that_is_no_choice_is_refused(db: Any, half: Any, value: Any) -> None:
    setting: Any = Setting(data=value)
    with pytest.raises(FieldValueError, match=r"Setting\.data: not one of the choices"):
        await half(setting).save()
    with pytest.raises(FieldValueError, match=r"Setting\.data: not one of the choices"):
        await half(Setting.objects).bulk_create([setting])
    with pytest.raises(ValidationError, match="not one of the choices"):
        setting.full_clean()
    assert setting.get_data_display() == str(value)


async def test_columns_hold_plain_values(papers: None, half: Any) -> None:
    await make_tables(half)
    made = await half(Paper.objects).create(
        status=Status.PUBLISHED, level=Level.VERY_HIGH, answer=Answer.YES, member=Status.DRAFT
    )
    assert (type(made.status), type(made.level)) == (str, int)
    found = await half(Paper.objects).get(status=Status.PUBLISHED, level__in=[Level.VERY_HIGH])
    assert (found.status, found.level, found.answer) == ("p", 9, "YES")
    assert found.status == Status.PUBLISHED
    assert type(found.status) is str
    assert found.member is Status.DRAFT
    assert await half(Paper.objects.filter(status=Status.DRAFT)).count() == 0
    found.status = Status.DRAFT
    await half(found).save()
    assert await half(Paper.objects.filter(status="d")).update(level=Level.LOW) == 1
    fresh = Paper(status=Status.IN_REVIEW)
    await half(Paper.objects).bulk_create([fresh])
    assert (fresh.status, type(fresh.status)) == ("r", str)
    with pytest.raises(FieldValueError, match=r"Paper.status: not one of the choices"):
        await half(Paper.objects).create(status="x")


async def test_defaults_may_be_members(papers: None, half: Any) -> None:
    await make_tables(half)
    made = await half(Paper.objects).create()
    assert (type(made.status), type(made.level)) == (str, int)


LABELS: list[tuple[str, Any, Any]] = [
    ("status", "d", "A draft"),
    ("status", Status.IN_REVIEW, "In Review"),
    ("status", "z", "z"),
    ("level", 9, "Very High"),
    ("answer", "NO", "No"),
    ("answer", None, "(none)"),
    ("medium", "cd", "CD"),
    ("medium", "unknown", "Unknown"),
    ("medium", None, None),
    ("size", "l", "Large"),
    ("plain", 2, "2"),
    ("member", Status.PUBLISHED, "Published"),
    ("member", "p", "Published"),
    ("member", None, None),
]


@pytest.mark.parametrize(("name", "value", "label"), LABELS, ids=range(len(LABELS)))
def test_a_field_with_choices_gives_its_label(name: str, value: Any, label: Any) -> None:
    paper: Any = Paper(**{name: value})
    assert getattr(paper, f"get_{name}_display")() == label


def test_a_display_method_is_documented_and_only_where_there_are_labels() -> None:
    made: Any = Paper
    assert made.get_status_display.__doc__ == "Return the label of the value of `status`."
    assert not hasattr(made, "get_id_display")


class Described(Model):
    """An abstract model with a method of its own."""

    status = fields.CharField(max_length=1, choices=Status)
    level = fields.IntegerField(choices=Level)

    class Meta:
        abstract = True

    def get_level_display(self) -> str:
        """The application's own words."""
        return "own"


def test_inherited_choices_can_be_replaced_and_own_methods_stay() -> None:
    class Note(Described):
        status = fields.CharField(max_length=1, choices={"d": "Done"})

    class Letter(Described):
        pass

    note: Any = Note(status="d", level=1)
    letter: Any = Letter(status="d", level=1)
    assert (note.get_status_display(), letter.get_status_display()) == ("Done", "A draft")
    assert (note.get_level_display(), letter.get_level_display()) == ("own", "own")


async def test_the_label_of_a_row_that_was_read(papers: None, half: Any) -> None:
    await make_tables(half)
    await half(Paper.objects).create(status=Status.PUBLISHED)
    paper: Any = await half(Paper.objects.only("status")).get()
    assert paper.get_status_display() == "Published"


class Balance(enum.Enum):
    """Integers, one of them below zero."""

    OWED = -1
    EVEN = 0
    OWN = 1
    MUCH = 10**18


class Access(enum.IntFlag):
    """Integers that may be added up."""

    READ = 1
    WRITE = 2


class Digits(enum.Enum):
    """Text that looks like numbers."""

    ONE = "1"
    PADDED = "01"
    MINUS = "-1"


@pytest.mark.parametrize(
    ("kind", "text", "member"),
    [
        *((Balance, str(member.value), member) for member in Balance),
        (Access, "3", Access.READ | Access.WRITE),
        (Level, "9", Level.VERY_HIGH),
        (Digits, "1", Digits.ONE),
        (Digits, "01", Digits.PADDED),
        (Digits, "-1", Digits.MINUS),
        (Status, "d", Status.DRAFT),
    ],
)
def test_a_member_is_read_from_the_text_of_its_value(kind: Any, text: str, member: Any) -> None:
    assert fields.EnumField(kind).parse(text) == member


@pytest.mark.parametrize("kind", [Balance, Access, Level, Digits, Status])
@pytest.mark.parametrize(
    "text",
    [
        "", "-", "+1", "001", " 1", "1 ", "1\n", "1_0", "1.0", "-0", "--1", "\u00b2", "\u0661",
        "0x1", "OWED", "9" * 30, "9" * 5000,
    ],
)  # fmt: skip
def test_no_other_text_is_read_as_a_member(kind: Any, text: str) -> None:
    field = fields.EnumField(kind)
    with pytest.raises(FieldValueError, match=f"not a {kind.__name__}"):
        field.parse(text)


async def test_a_filter_set_takes_each_value_of_an_enum(papers: None, half: Any) -> None:
    class Account(Model):
        balance = fields.EnumField(Balance)
        digits = fields.EnumField(Digits)

    class AccountFilter(FilterSet):
        model = Account
        fields: ClassVar = {"balance": ["exact", "in"], "digits": ["exact"]}

    async def count(**data: str) -> int:
        return await half(AccountFilter(taint(data)).apply()).count()

    await half.call(lambda: create_all(Account), lambda: acreate_all(Account))
    for balance, digits in zip(Balance, [*Digits, Digits.ONE], strict=True):
        await half(Account.objects).create(balance=balance, digits=digits)
    assert [await count(balance=str(member.value)) for member in Balance] == [1, 1, 1, 1]
    assert await count(balance__in="-1,1,0") == 3
    assert [await count(digits=text) for text in ("1", "01", "-1")] == [2, 1, 1]
    for data in ({"balance": "+1"}, {"balance": "01"}, {"balance__in": "-1, 1"}, {"digits": "+1"}):
        with pytest.raises(InvalidParameter, match="not a "):
            await count(**data)
