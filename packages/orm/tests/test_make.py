"""`make`: rows for tests, of fields of every kind, and of fields that leave hardly a value."""

from __future__ import annotations

import datetime as dt
import enum
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from treefold_orm import (
    CheckConstraint,
    F,
    FieldError,
    FieldValueError,
    Model,
    ModelError,
    Q,
    UniqueConstraint,
    UniqueViolation,
    acreate_all,
    create_all,
    fields,
    transaction,
)
from treefold_orm.testing import amake, make, sandbox


class Genre(enum.Enum):
    """Two members."""

    NOVEL = "novel"
    POEM = "poem"


class MakeWriter(Model):
    """The target of foreign keys."""

    name = fields.CharField(max_length=40, unique=True)
    born = fields.DateField(null=True)


class MakeBook(Model):
    """Every kind of field, each needing a value."""

    title = fields.CharField(max_length=40)
    code = fields.CharField(max_length=2, unique=True)
    text = fields.TextField()
    slug = fields.SlugField(unique=True)
    email = fields.EmailField(max_length=9, unique=True)
    url = fields.URLField(max_length=12)
    ip4 = fields.GenericIPAddressField(protocol="IPv4", unique=True)
    ip6 = fields.GenericIPAddressField(protocol="IPv6")
    kind = fields.CharField(max_length=1, choices=["a", "b"])
    rank = fields.IntegerField(choices={3: "three", 4: "four"})
    genre = fields.EnumField(Genre)
    pages = fields.PositiveSmallIntegerField(unique=True)
    price = fields.DecimalField(max_digits=2, decimal_places=2, unique=True)
    weight = fields.FloatField()
    sold = fields.BooleanField()
    even = fields.IntegerField(validators=[lambda n: n % 2 == 0 or _refuse()])
    key = fields.UUIDField(unique=True)
    data = fields.JSONField()
    cover = fields.BinaryField()
    day = fields.DateField(unique=True)
    moment = fields.DateTimeField()
    naive = fields.DateTimeField(zone=None)
    hour = fields.TimeField()
    length = fields.DurationField()
    writer = fields.ForeignKey(MakeWriter, related_name="books")
    # kept as they are
    note = fields.TextField(null=True)
    made = fields.DateTimeField(auto_now_add=True)
    stock = fields.IntegerField(default=7)
    token = fields.UUIDField(default=uuid.uuid4, unique=True)
    filled = fields.IntegerField(db_default=5)
    editor = fields.ForeignKey(MakeWriter, null=True, related_name="edited")
    # a constant default would be that of every row
    label = fields.CharField(max_length=20, default="", unique=True)


class MakeBadge(Model):
    """A key that is the row of another model, and a key of text."""

    writer = fields.OneToOneField(MakeWriter, primary_key=True)
    level = fields.SmallIntegerField()


class MakeStep(Model):
    """A tree, whose root needs no parent; unique in pairs."""

    parent = fields.ForeignKey("self", null=True, related_name="steps")
    place = fields.IntegerField()
    kind = fields.CharField(max_length=1, choices=["a", "b"])

    class Meta:
        constraints = (UniqueConstraint("place", "kind"),)


class MakeCode(Model):
    """A primary key of text with room for few."""

    code = fields.CharField(max_length=1, primary_key=True)


class MakeSwitch(Model):
    """Unique, and of two values."""

    on = fields.BooleanField(unique=True)


class MakeLoop(Model):
    """Needs itself."""

    other = fields.ForeignKey("self", related_name="others")


class MakeEgg(Model):
    """Needs what needs it."""

    hen = fields.ForeignKey("MakeHen", related_name="eggs")


class MakeHen(Model):
    """The other half of the circle."""

    egg = fields.ForeignKey(MakeEgg, related_name="hens")


class MakeSpan(Model):
    """Values that belong together."""

    begin = fields.DateField()
    end = fields.DateField()

    class Meta:
        constraints = (CheckConstraint(condition=Q(end__gt=F("begin")), name="in_order"),)


class MakePicky(Model):
    """A form that no generated text has."""

    plate = fields.CharField(max_length=9, validators=[lambda text: _refuse()])


class MakeCount(Model):
    """A field whose name is that of the number of rows."""

    n = fields.IntegerField(unique=True)


MODELS = (
    *(MakeWriter, MakeBook, MakeBadge, MakeStep, MakeCode, MakeSwitch),
    *(MakeLoop, MakeEgg, MakeHen, MakeSpan, MakePicky, MakeCount),
)


def _refuse() -> None:
    raise ValueError("must be a plate of Bern")


@pytest.fixture(autouse=True)
def undone(db: Any) -> Iterator[None]:
    with sandbox():
        yield


make_any: Any = make
amake_any: Any = amake


async def made(half: Any, model: type[Model], **values: Any) -> Any:
    return await half.call(lambda: make_any(model, **values), lambda: amake_any(model, **values))


async def count(half: Any, model: type[Model]) -> int:
    return await half(model.objects).count()


async def make_tables(half: Any) -> None:
    await half.call(lambda: create_all(*MODELS), lambda: acreate_all(*MODELS))


async def test_every_field_gets_a_value_of_its_own(half: Any) -> None:
    await make_tables(half)
    books: list[Any] = await made(half, MakeBook, n=40)
    assert len(books) == 40
    assert await count(half, MakeBook) == 40
    for field in MakeBook._meta.columns:
        values = [getattr(book, field.attname) for book in books]
        if field.unique:
            assert len({str(value) for value in values}) == 40, field.name
        if not field.null and not field.db_fills:
            assert None not in values, field.name
    first = books[0]
    assert (first.note, first.stock, first.editor_id, first.kind) == (None, 7, None, "a")
    assert (first.genre, first.rank, first.sold in (True, False)) == (Genre.NOVEL, 3, True)
    assert type(first.price) is Decimal
    assert first.moment.tzinfo is dt.UTC
    assert len({book.writer_id for book in books}) == 40
    fresh: MakeBook = await half(MakeBook.objects).get(pk=first.pk)
    assert (fresh.filled, fresh.title, fresh.email) == (5, first.title, first.email)


async def test_values_of_the_call_win(half: Any) -> None:
    await make_tables(half)
    ada: MakeWriter = await made(half, MakeWriter, name="Ada", born=dt.date(1815, 12, 10))
    assert (ada.name, ada.born) == ("Ada", dt.date(1815, 12, 10))
    books: list[Any] = await made(half, MakeBook, n=2, writer=ada, kind="b", note="x")
    assert [(book.writer_id, book.kind, book.note) for book in books] == [(ada.pk, "b", "x")] * 2
    book: Any = await made(half, MakeBook, writer_id=ada.pk, label="")
    assert (book.writer_id, book.label) == (ada.pk, "")
    assert await count(half, MakeWriter) == 1
    assert await made(half, MakeBook, n=0) == []
    badge: MakeBadge = await made(half, MakeBadge)
    assert badge.pk != ada.pk
    other: MakeBadge = await made(half, MakeBadge, pk=ada.pk)
    assert other.pk == ada.pk
    assert (await made(half, MakeCount)).n > 0
    steps: list[Any] = await made(half, MakeStep, n=3)
    assert [step.parent_id for step in steps] == [None] * 3


async def test_small_fields_are_filled_to_the_last_value(half: Any) -> None:
    await make_tables(half)
    codes = await made(half, MakeCode, n=16)
    assert {code.pk for code in codes} == set("0123456789abcdef")
    switches = await made(half, MakeSwitch, n=2)
    assert {switch.on for switch in switches} == {True, False}
    for model, name in ((MakeCode, "code"), (MakeSwitch, "on")):
        with pytest.raises(ModelError, match=f"'{name}' .*rows have all values .*pass {name}="):
            await made(half, model)


@pytest.mark.parametrize(
    ("model", "values", "error", "text"),
    [
        (MakeLoop, {}, ModelError, r"MakeLoop\.other -> MakeLoop\.other; pass other="),
        (MakeHen, {}, ModelError, r"MakeHen\.egg -> MakeEgg\.hen -> MakeHen\.egg; pass egg="),
        (MakeSpan, {}, ModelError, "chose begin, end, and the database refuses .*in_order.*; pass"),
        (MakePicky, {}, ModelError, r"'plate' \(CharField\): must be a plate of Bern; pass plate="),
        (MakeWriter, {"nam": "x"}, FieldError, "nam"),
        (MakeWriter, {"name": "x" * 41}, FieldValueError, "longer than 40"),
        (MakeWriter, {"name": None}, FieldValueError, "may not be null"),
        (MakeCount, {"n": 2}, ModelError, r"no value of MakeCount\.n; use objects.create"),
        (MakeWriter, {"n": -1}, ValueError, "n must be a number of rows from 0, got -1"),
        (MakeWriter, {"n": True}, ValueError, "got True"),
        (MakeWriter, {"n": "3"}, ValueError, "got '3'"),
        (MakeSwitch, {"on": True, "n": 2}, UniqueViolation, "MakeSwitch.on exists already"),
        (Model, {}, ModelError, "must have a model with a table"),
        (int, {}, ModelError, "must have a model with a table, got <class 'int'>"),
    ],
)
async def test_what_cannot_be_made_is_named_and_leaves_nothing(
    half: Any, model: Any, values: dict[str, Any], error: type[Exception], text: str
) -> None:
    await make_tables(half)
    with pytest.raises(error, match=text):
        await made(half, model, **values)
    for each in (MakeSwitch, MakeLoop, MakeHen, MakeEgg, MakeSpan, MakePicky, MakeWriter):
        assert await count(half, each) == 0


async def test_a_failure_at_a_later_row_leaves_none(half: Any) -> None:
    await make_tables(half)
    with pytest.raises(ModelError, match="rows have all values"):
        await made(half, MakeSwitch, n=3)
    assert await count(half, MakeSwitch) == 0
    # the transaction of the test goes on
    assert len(await made(half, MakeSwitch, n=2)) == 2


async def test_rows_belong_to_the_transaction_of_the_test() -> None:
    await acreate_all(*MODELS)
    async with transaction(rollback=True):
        await amake(MakeBook, n=2)
        assert await MakeBook.objects.acount() == 2
    assert await MakeBook.objects.acount() == 0
    assert await MakeWriter.objects.acount() == 0
