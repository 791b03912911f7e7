"""Values of every type through every way of writing and reading, in both halves."""

from __future__ import annotations

import datetime as dt
import enum
import itertools
import uuid
from decimal import Decimal as D
from typing import Any

import pytest

from treefold_orm import (
    Case,
    Coalesce,
    DataError,
    F,
    Max,
    Min,
    Model,
    OuterRef,
    Subquery,
    Value,
    When,
    create_all,
    fields,
    transaction,
)

UTC = dt.UTC


class Tone(enum.Enum):
    """A choice kept as text."""

    LOW = "a"
    MIDDLE = "b"
    HIGH = "c"
    HIGHEST = "d"
    LOWEST = ""


class Step(enum.Enum):
    """A choice kept as an integer."""

    FIRST = -(2**31)
    SECOND = 0
    THIRD = 2**31 - 1
    FOURTH = 7
    FIFTH = 8


class Kept(Model):
    """A unique column of every type."""

    small = fields.SmallIntegerField(null=True, unique=True)
    big = fields.BigIntegerField(null=True, unique=True)
    real = fields.FloatField(null=True, unique=True)
    money = fields.DecimalField(max_digits=18, decimal_places=4, null=True, unique=True)
    text = fields.TextField(null=True, unique=True)
    char = fields.CharField(max_length=12, null=True, unique=True)
    day = fields.DateField(null=True, unique=True)
    moment = fields.DateTimeField(null=True, unique=True)
    naive = fields.DateTimeField(zone=None, null=True, unique=True)
    clock = fields.TimeField(null=True, unique=True)
    span = fields.DurationField(null=True, unique=True)
    uid = fields.UUIDField(null=True, unique=True)
    blob = fields.BinaryField(null=True, unique=True)
    tone = fields.EnumField(Tone, null=True, unique=True)
    step = fields.EnumField(Step, null=True, unique=True)
    doc = fields.JSONField(null=True)
    flag = fields.BooleanField(null=True)
    code = fields.IntegerField(unique=True)


# five values of each type in their order, the edges among them
VALUES: dict[str, list[Any]] = {
    "small": [-(2**15), -1, 0, 7, 2**15 - 1],
    "big": [-(2**63), -1, 2**53, 2**53 + 1, 2**63 - 1],
    "real": [-1.7976931348623157e308, -5e-324, 0.1, 0.1 + 0.2, 1e16],
    "money": [D("-99999999999999.9999"), D("-0.0001"), D("0.3000"), D("0.3001"), D("1E+13")],
    "text": ["", "A", "a ", "a\\'\"%_", "\u200b😀ß"],
    "char": ["", "0", "00", "twelve chars", "ß"],
    "day": [
        dt.date.min, dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date.max,
    ],
    "moment": [
        dt.datetime.min.replace(tzinfo=UTC),
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC),
        dt.datetime(2024, 2, 29, tzinfo=UTC),
        dt.datetime(2024, 2, 29, 0, 0, 0, 1, UTC),
        dt.datetime.max.replace(tzinfo=UTC),
    ],
    "naive": [
        dt.datetime.min,
        dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
        dt.datetime(2024, 3, 31, 2, 30),
        dt.datetime(2024, 3, 31, 2, 30, 0, 1),
        dt.datetime.max,
    ],
    "clock": [
        dt.time(0), dt.time(0, 0, 0, 1), dt.time(11, 30), dt.time(23, 59, 59), dt.time.max,
    ],
    "span": [
        dt.timedelta(days=-36_000_000),
        dt.timedelta(microseconds=-1),
        dt.timedelta(0),
        dt.timedelta(days=400, microseconds=3),
        dt.timedelta(days=36_000_000),
    ],
    "uid": [uuid.UUID(int=n) for n in (0, 1, 2**63, 2**127, 2**128 - 1)],
    "blob": [b"", b"\x00", b"\x00\xff", b"'", b"\xff\xfe"],
    "tone": [Tone.LOWEST, Tone.LOW, Tone.MIDDLE, Tone.HIGH, Tone.HIGHEST],
    "step": [Step.FIRST, Step.SECOND, Step.FOURTH, Step.FIFTH, Step.THIRD],
    "doc": [{}, [], {"a": [1, 2.5, None, True, "ß"]}, 0, "text"],
    "flag": [False, True, False, True, False],
}  # fmt: skip
UNIQUE = [name for name in VALUES if name not in {"doc", "flag"}]


def rows_of(name: str) -> list[Kept]:
    """A row for each value of a type, and one without."""
    return [Kept(code=code, **{name: value}) for code, value in enumerate([*VALUES[name], None])]


@pytest.fixture
def kept(empty: Any) -> None:
    create_all(Kept)


def same(found: Any, wanted: Any) -> bool:
    """Return True if a value came back as it was, of the same type."""
    driver = isinstance(found, uuid.UUID)  # one driver has a class of its own
    return found == wanted and (type(found) is type(wanted) or driver)


async def stored(half: Any, name: str) -> list[Any]:
    """The values of a column in the order of their codes."""
    return await half.rows(Kept.objects.order_by("code").values_list(name, flat=True))


async def test_every_way_of_writing_keeps_the_value(kept: None, half: Any) -> None:
    for name in VALUES:
        await check_writing(half, name)
        await half(Kept.objects).delete()


async def check_writing(half: Any, name: str) -> None:
    """Write the values of a column in every way, and read what is stored."""
    values = VALUES[name]
    turned = [*reversed(values)]
    objects: Any = Kept.objects

    for code, value in enumerate(values):
        made = await half(objects).create(code=code, **{name: value})
        assert same(getattr(made, name), value)
    assert await stored(half, name) == values

    await half(objects).delete()
    await half(objects).bulk_create(rows_of(name)[:-1])
    assert await stored(half, name) == values

    rows = await half.rows(objects.order_by("code"))
    for row in rows:
        setattr(row, name, None)
        await half(row).save()
    assert await stored(half, name) == [None] * 5
    for row, value in zip(rows, turned, strict=True):
        setattr(row, name, value)
        await half(row).save(update_fields=[name])
        await half(row).refresh_from_db()
        assert same(getattr(row, name), value)
    assert await stored(half, name) == turned

    for row in rows:
        setattr(row, name, None)
    assert await half(objects).bulk_update(rows, [name]) == 5
    assert await stored(half, name) == [None] * 5
    for row, value in zip(rows, values, strict=True):
        setattr(row, name, value)
    assert await half(objects).bulk_update(rows, [name]) == 5
    assert await stored(half, name) == values

    await half(objects).update(**{name: None})
    given = rows_of(name)[:-1]
    await half(objects).bulk_create(given, update_conflicts=[name], unique_fields=["code"])
    assert await stored(half, name) == values

    await half(objects).delete()
    for code, value in enumerate(values):
        row, new = await half(objects).get_or_create(code=code, defaults={name: value})
        assert new
        assert same(getattr(row, name), value)
        row, new = await half(objects).get_or_create(code=code, defaults={name: None})
        assert not new
        assert same(getattr(row, name), value)
    assert await stored(half, name) == values
    for code, value in enumerate(turned if name not in UNIQUE else values):
        await half(objects).update_or_create(code=code, defaults={name: None})
        row, new = await half(objects).update_or_create(code=code, defaults={name: value})
        assert not new
        assert same(getattr(row, name), value)
    await half(objects).update(**{name: None})
    for code, value in enumerate(values):
        assert await half(objects.filter(code=code)).update(**{name: value}) == 1
    assert await stored(half, name) == values
    for code, value in enumerate(values):
        copied = Subquery(objects.filter(code=OuterRef("code")).values(name))
        await half(objects.filter(code=code)).update(**{name: copied})
        chosen = Case(When(code=code, then=F(name)))
        await half(objects.filter(code=code)).update(**{name: Coalesce(chosen, F(name))})
        same_value = Value(value, Kept._meta.fields[name])
        await half(objects.filter(code=code)).update(**{name: same_value})
    assert await stored(half, name) == values


async def test_every_way_of_reading_gives_the_value(kept: None, half: Any) -> None:
    for name in VALUES:
        await check_reading(half, name)
        await half(Kept.objects).delete()


async def check_reading(half: Any, name: str) -> None:
    """Read the values of a column in every way."""
    values = VALUES[name]
    objects: Any = Kept.objects
    await half(objects).bulk_create(rows_of(name))
    every = [*values, None]

    def check(found: list[Any]) -> None:
        assert len(found) == len(every)
        assert all(same(one, other) for one, other in zip(found, every, strict=True)), found

    ordered = objects.order_by("code")
    check([getattr(row, name) for row in await half.rows(ordered)])
    check([row[name] for row in await half.rows(ordered.values(name))])
    check([row.copy for row in await half.rows(ordered.annotate(copy=F(name)))])
    check([getattr(row, name) for row in await half.iterate(ordered, 2)])
    check([row[0] for row in await half.rows(ordered.values_list(name, "code"))])
    low, high = objects.filter(code__lt=3), objects.filter(code__gte=3)
    both = low.values_list("code", name).union(high.values_list("code", name), all=True)
    check([row[1] for row in await half.rows(both.order_by("code"))])
    both = low.values("code", name).union(high.values("code", name), all=True).order_by("-code")
    check([row[name] for row in reversed(await half.rows(both))])
    whole = low.union(high, all=True).order_by("code")
    check([getattr(row, name) for row in await half.rows(whole)])
    check([getattr(row, name) for row in (await half(objects).in_bulk(field="code")).values()])

    if name in UNIQUE:
        if name != "blob":  # which has no `in`
            found = await half(objects).in_bulk(values[1:4], field=name)
            assert {key: row.code for key, row in found.items()} == {
                value: code for code, value in enumerate(values) if 1 <= code <= 3
            }
            assert all(same(key, values[row.code]) for key, row in found.items())
        for code, value in enumerate(values):
            assert (await half(objects).get(**{name: value})).code == code
            others = objects.exclude(**{name: value}).order_by("code")
            codes = await half.rows(others.values_list("code", flat=True))
            assert codes == [other for other in range(6) if other != code]
    if name not in {"doc", "flag", "blob", "uid"}:
        ends = await half(objects).aggregate(low=Min(name), high=Max(name))
        assert same(ends["low"], values[0])
        assert same(ends["high"], values[-1])
    if name not in {"doc", "flag", "blob"}:
        many = objects.filter(**{f"{name}__in": values[::2]})
        assert await half(many).count() == 3
        inner = objects.filter(code__lt=2).values(name)
        assert await half(objects.filter(**{f"{name}__in": inner})).count() == 2


async def test_pages_go_through_every_type_in_its_order(kept: None, half: Any) -> None:
    for name in (*UNIQUE, "flag"):
        if name != "blob":  # which no cursor holds
            await check_pages(half, name, descending=False)
            await check_pages(half, name, descending=True)


async def check_pages(half: Any, name: str, *, descending: bool) -> None:
    """Go through pages by a column, forwards and backwards."""
    await half(Kept.objects).delete()
    await half(Kept.objects).bulk_create(rows_of(name))
    for order in ((f"-{name}" if descending else name), F(name).desc() if descending else F(name)):
        query = Kept.objects.order_by(order, "code")
        wanted = await half.rows(query.values_list("code", flat=True))
        if name in UNIQUE and name not in {"uid", "blob"}:
            rising = [0, 1, 2, 3, 4, 5]
            assert wanted == ([5, 4, 3, 2, 1, 0] if descending else rising)
        codes: list[int] = []
        page = await half(query).keyset(2)
        while True:
            codes += [row.code for row in page.items]
            if page.next is None:
                break
            page = await half(query).keyset(2, after=page.next)
        assert codes == wanted
        back: list[int] = []
        while page.previous is not None:
            page = await half(query).keyset(2, before=page.previous)
            back = [*(row.code for row in page.items), *back]
        assert back == wanted[:4]


COMPUTED: list[tuple[str, Any, Any]] = [
    ("small", F("money") / 2, 4),
    ("small", F("real") + 0.5, 3),
    ("big", F("money") * 2, 14),
    ("real", F("money"), 7.0),
    ("money", F("small"), D("3.0000")),
    ("money", F("real") / 3, D("0.8333")),
    ("money", F("money") / 3, D("2.3333")),
    ("day", F("moment"), dt.date(2024, 2, 29)),
    ("moment", F("day"), dt.datetime(2026, 1, 5, tzinfo=UTC)),
    ("moment", F("moment") + F("span"), dt.datetime(2024, 3, 1, 22, 30, tzinfo=UTC)),
    ("span", F("span") / 2, dt.timedelta(hours=11, minutes=45)),
    ("text", F("doc__name"), "seven"),
    ("small", F("doc__n"), 7),
    ("flag", F("doc__yes"), True),
    ("char", F("tone"), "b"),
]


WAYS = ("update", "save", "bulk_update", "update_or_create", "several")


async def test_computed_values_are_converted_in_every_way_of_writing(kept: None, half: Any) -> None:
    for (name, given, wanted), way in itertools.product(COMPUTED, WAYS):
        await check_computed(half, way, name, given=given, wanted=wanted)
        await half(Kept.objects).delete()


async def check_computed(half: Any, way: str, name: str, *, given: Any, wanted: Any) -> None:
    """Write an expression in one way."""
    row = await half(Kept.objects).create(
        code=1,
        small=3,
        real=2.5,
        money=D("7"),
        day=dt.date(2026, 1, 5),
        moment=dt.datetime(2024, 2, 29, 23, tzinfo=UTC),
        span=dt.timedelta(hours=23, minutes=30),
        doc={"name": "seven", "n": 7, "yes": True},
        tone=Tone.MIDDLE,
    )
    match way:
        case "update":
            await half(Kept.objects).update(**{name: given})
        case "save":
            setattr(row, name, given)
            await half(row).save()
            assert same(getattr(row, name), wanted)
        case "bulk_update":
            setattr(row, name, given)
            await half(Kept.objects).bulk_update([row], [name])
            assert same(getattr(row, name), wanted)
        case "several":
            setattr(row, name, given)
            row.code = 2
            await half(Kept.objects).bulk_update([row], [name, "code"])
            assert same(getattr(row, name), wanted)
        case _:
            made, new = await half(Kept.objects).update_or_create(code=1, defaults={name: given})
            assert not new
            assert same(getattr(made, name), wanted)
    found = await half(Kept.objects).get()
    assert same(getattr(found, name), wanted)
    await half(found).save()
    again = await half.rows(Kept.objects.values_list(name, flat=True))
    assert len(again) == 1
    assert same(again[0], wanted)


async def test_a_computed_value_that_does_not_fit_leaves_row_and_instance_as_they_were(
    kept: None, half: Any
) -> None:
    row = await half(Kept.objects).create(code=1, small=2**15 - 1, char="twelve chars")
    for name, given in (("small", F("small") + 1), ("small", F("small") * 2**40)):
        setattr(row, name, given)
        with pytest.raises(DataError, match="must fit the range"):
            await half(row).save()
        await half(row).refresh_from_db()
        assert getattr(row, name) == 2**15 - 1


def test_a_computed_value_that_is_rolled_back_is_written_again(kept: None) -> None:
    row: Any = Kept.objects.create(code=1, small=3, money=D("7"))

    def fail() -> None:
        with transaction():
            row.money = F("small") / 3
            row.save()
            assert row.money == D("1.0000")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert Kept.objects.get().money == D("7")
    row.save()
    assert Kept.objects.get().money == D("1.0000")
