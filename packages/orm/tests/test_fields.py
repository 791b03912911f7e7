"""Fields: what they take, what they refuse, and that both databases give back what was stored."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import sys
import uuid
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st
from orm_models import Color, Everything, Stamped

from treefold_orm import (
    DatabaseError,
    FieldError,
    FieldValueError,
    Model,
    ModelError,
    UnsupportedFeature,
    acreate_all,
    create_all,
    fields,
)

NAIVE = dt.datetime(2026, 1, 1)  # noqa: DTZ001, RUF100 - naive on purpose
AWARE = dt.datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=-7)))

GOOD: list[tuple[str, Any]] = [
    ("small", -(2**15)),
    ("small", 2**15 - 1),
    ("integer", 2**31 - 1),
    ("integer", -(2**31)),
    ("integer", 0),
    ("big", 2**63 - 1),
    ("big", -(2**63)),
    ("positive", 0),
    ("flag", True),
    ("flag", False),
    ("real", 0.1),
    ("real", -1e300),
    ("real", 5e-324),
    ("money", decimal.Decimal("123456789.125")),
    ("money", decimal.Decimal("-0.001")),
    ("money", decimal.Decimal(0)),
    ("char", ""),
    ("char", "x" * 20),
    ("char", "näß☃𝄞"),
    ("text", "'; DROP TABLE x; --"),
    ("text", "\x01\t\n"),
    ("slug", "a-b_C9"),
    ("email", "a.b+c@example.org"),
    ("url", "https://example.org:8080/a?b=c#d"),
    ("uid", uuid.UUID(int=5)),
    ("day", dt.date(1, 1, 1)),
    ("day", dt.date(9999, 12, 31)),
    ("time", dt.time(23, 59, 59, 999999)),
    ("time", dt.time(0)),
    ("moment", AWARE),
    ("moment", dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
    ("span", dt.timedelta(days=-3, microseconds=1)),
    ("span", dt.timedelta(0)),
    ("data", {"a": [1, 2.5, None, True, "x"], "b": {}}),
    ("data", []),
    ("data", "text"),
    ("data", 0),
    ("data", False),
    ("data", {"é": "\u2028"}),
    ("blob", b""),
    ("blob", bytes(range(256))),
    ("color", Color.RED),
    ("status", "a"),
]


@pytest.mark.parametrize(("name", "value"), GOOD, ids=range(len(GOOD)))
async def test_values_come_back_as_they_were(db: Any, half: Any, name: str, value: Any) -> None:
    made = await half(Everything.objects).create(**{name: value})
    found = await half(Everything.objects).get(pk=made.pk)
    assert getattr(found, name) == value
    assert isinstance(getattr(found, name), cast("type", value.__class__))
    assert await half(Everything.objects.filter(**{name: value})).count() == 1
    assert await half(found).save() is None
    await half(Everything.objects).update(**{name: None})
    assert getattr(await half(Everything.objects).get(), name) is None


BAD: list[tuple[str, Any, str]] = [
    ("small", 2**15, "outside -32768 to 32767"),
    ("integer", 2**31, "outside"),
    ("big", 2**63, "outside"),
    ("positive", -1, "outside 0 to"),
    ("integer", "5", "takes an int, not str"),
    ("integer", 5.0, "takes an int, not float"),
    ("integer", True, "takes an int, not bool"),
    ("flag", 1, "takes a bool, not int"),
    ("real", "1", "takes a float, not str"),
    ("real", math.nan, "must be finite"),
    ("real", math.inf, "must be finite"),
    ("real", 10**400, "too large"),
    ("money", 0.1, "takes a Decimal, not float"),
    ("money", decimal.Decimal("0.0001"), "more than 3 decimal places"),
    ("money", decimal.Decimal("1234567890"), "more than 9 digits before the point"),
    ("money", "x", "takes a decimal number"),
    ("money", decimal.Decimal("NaN"), "must be finite"),
    ("char", "x" * 21, r"longer than 20 characters \(21\)"),
    ("char", "a\0b", "contains a NUL character"),
    ("char", "\ud800", "contains a lone surrogate"),
    ("char", 5, "takes a str, not int"),
    ("slug", "a b", "letters, digits, hyphens"),
    ("email", "a@b@c", "not an e-mail address"),
    ("email", "a b@example.org", "not an e"),
    ("email", "nobody", "not an e-mail address"),
    ("url", "javascript:alert(1)", "not an absolute http"),
    ("url", "https://exa mple.org", "not an absolute"),
    ("url", "//x", "not an absolute"),
    ("url", "http://[x", "not an address"),
    ("uid", "x", "not a UUID"),
    ("uid", 5, "takes a UUID, not int"),
    ("day", "2026-13-01", "takes a date as YYYY-MM-DD"),
    ("day", dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "takes a date, not datetime"),
    ("time", "25:00", "takes a time as HH:MM:SS"),
    ("time", dt.time(1, tzinfo=dt.UTC), "takes a time without zone"),
    ("time", 5, "takes a time, not int"),
    ("moment", NAIVE, "takes an aware datetime: give it a zone"),
    ("moment", "x", "takes a date and time in ISO form"),
    ("moment", 5, "takes a datetime, not int"),
    ("span", 5, "takes a timedelta, not int"),
    (
        "moment",
        dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))),
        "outside the years 1 to 9999",
    ),
    ("span", dt.timedelta(days=10**8), "longer than 100,000 years"),
    ("data", {1: 2}, "takes text keys only"),
    ("data", {"a": object()}, "takes plain JSON"),
    ("data", [math.nan], "takes plain JSON"),
    ("data", {"a": "\0"}, "contains a NUL"),
    ("data", {"a": "\ud800"}, "takes plain JSON"),
    ("blob", "x", "takes bytes, not str"),
    ("color", "green", "not a Color"),
    ("status", "c", "not one of the choices"),
]


@pytest.mark.parametrize(("name", "value", "reason"), BAD, ids=range(len(BAD)))
async def test_values_that_do_not_fit_are_refused_before_any_sql(
    db: Any, half: Any, name: str, value: Any, reason: str
) -> None:
    with pytest.raises(FieldValueError, match=f"Everything.{name}: .*{reason}") as caught:
        await half(Everything.objects).create(**{name: value})
    assert (caught.value.model, caught.value.field) == ("Everything", name)
    with pytest.raises(FieldValueError, match=f"Everything.{name}: .*{reason}"):
        await half(Everything.objects).bulk_create([Everything(**{name: value})])
    with pytest.raises(FieldValueError, match=f"Everything.{name}: .*{reason}"):
        await half(Everything.objects).update(**{name: value})
    assert await half(Everything.objects).count() == 0


def test_json_that_nests_without_end_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(FieldValueError, match="takes plain JSON"):
        Everything._meta.fields["data"].clean(endless)


async def test_text_forms_of_typed_values_are_accepted(db: Any, half: Any) -> None:
    made = await half(Everything.objects).create(
        uid="12345678123456781234567812345678",
        day="2026-01-02",
        time="03:04",
        moment="2026-01-02T03:04:05+02:00",
        money="1.5",
        color="blue",
    )
    assert (made.uid, made.day, made.time) == (
        uuid.UUID("12345678123456781234567812345678"),
        dt.date(2026, 1, 2),
        dt.time(3, 4),
    )
    assert (made.moment, made.money) == (
        dt.datetime(2026, 1, 2, 1, 4, 5, tzinfo=dt.UTC),
        decimal.Decimal("1.5"),
    )
    assert made.color is Color.BLUE


async def test_order_and_comparison_of_stored_forms_follow_the_values(db: Any, half: Any) -> None:
    values = {
        "money": [decimal.Decimal(v) for v in ("-10", "-9.999", "2", "10", "100.5")],
        "moment": [AWARE + dt.timedelta(microseconds=n) for n in (-(10**12), -1, 0, 1, 10**12)],
        "span": [dt.timedelta(microseconds=n) for n in (-(10**10), -1, 0, 1, 10**10)],
        "time": [
            dt.time(0),
            dt.time(0, 0, 0, 1),
            dt.time(1),
            dt.time(10),
            dt.time(23, 59, 59, 999999),
        ],
        "day": [
            dt.date(1, 1, 1),
            dt.date(999, 1, 1),
            dt.date(1000, 1, 1),
            dt.date(2026, 1, 1),
            dt.date(9999, 1, 1),
        ],
    }
    for place in (3, 1, 4, 0, 2):
        await half(Everything.objects).create(
            integer=place, **{name: v[place] for name, v in values.items()}
        )
    for name, ordered in values.items():
        assert await half.rows(
            Everything.objects.order_by(name).values_list("integer", flat=True)
        ) == [0, 1, 2, 3, 4]
        assert await half(Everything.objects.filter(**{f"{name}__gt": ordered[1]})).count() == 3


async def test_times_that_set_themselves(db: Any, half: Any) -> None:
    made = await half(Stamped.objects).create(name="x")
    created, changed = made.created, made.changed
    made.name = "y"
    await half(made).save()
    found = await half(Stamped.objects).get()
    assert found.created == created
    assert found.changed > changed


async def test_arrays_live_on_postgres_only(empty: Any, engine: str, half: Any) -> None:
    from treefold_orm import acreate_all

    class Lists(Model):
        numbers = fields.ArrayField(fields.IntegerField())
        words = fields.ArrayField(fields.TextField(), null=True)

    if engine == "sqlite":
        with pytest.raises(
            UnsupportedFeature, match=r"Lists.numbers: ArrayField needs PostgreSQL; use a JSONField"
        ):
            await acreate_all(Lists)
        return
    await acreate_all(Lists)
    made = await half(Lists.objects).create(numbers=[1, 2], words=["a", "b"])
    await half(Lists.objects).bulk_create([Lists(numbers=[3], words=None)])
    found = await half(Lists.objects).get(pk=made.pk)
    found.numbers.append(3)
    await half(found).save()
    assert (await half(Lists.objects).get(pk=made.pk)).numbers == [1, 2, 3]
    for lookup, count in (
        ({"numbers__contains": [1]}, 1),
        ({"numbers__overlap": [3, 9]}, 2),
        ({"numbers__contained_by": [3, 4]}, 1),
        ({"numbers": [3]}, 1),
        ({"numbers__length": 3}, 1),
        ({"words": None}, 1),
    ):
        assert await half(Lists.objects.filter(**lookup)).count() == count
    with pytest.raises(FieldValueError, match="an item takes an int, not str"):
        Lists.objects.filter(numbers=["x"])


# -- declarations ---------------------------------------------------------------------------------


def declare(name: str, meta: dict[str, Any] | None = None, **attributes: Any) -> type[Model]:
    """A model class made on the spot."""
    body: dict[str, Any] = {"__module__": __name__, **attributes}
    if meta is not None:
        body["Meta"] = type("Meta", (), meta)
    return type(name, (Model,), body)


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: declare("A", a__b=fields.TextField()), "cannot be a field name"),
        (lambda: declare("A", _a=fields.TextField()), "cannot be a field name"),
        (lambda: declare("A", pk=fields.TextField()), "pk always means the primary key"),
        (lambda: declare("A", None, **{"class": fields.TextField()}), "cannot be a field name"),
        (
            lambda: declare(
                "A", a=fields.TextField(db_column="x"), b=fields.TextField(db_column="x")
            ),
            "share column 'x'",
        ),
        (
            lambda: declare(
                "A", a=fields.TextField(primary_key=True), b=fields.TextField(primary_key=True)
            ),
            "two primary keys",
        ),
        (lambda: declare("A", {"tabel": "x"}), "A.Meta.tabel is not an option"),
        (lambda: declare("A", {"version_field": "v"}), "names 'v', which is not a field"),
        (lambda: declare("A", {"table": "x" * 64}), "more than 63 bytes"),
        (lambda: declare("A", {"table": "a\0b"}), "with control characters"),
        (
            lambda: declare("A", a=fields.TextField(db_column="")) and declare("B", {"table": ""}),
            "cannot name a table",
        ),
        (
            lambda: cast("Any", fields.TextField)(null=True, primary_key=True),
            "A primary key cannot be null",
        ),
        (lambda: fields.DecimalField(max_digits=2, decimal_places=3), "has no room"),
        (lambda: fields.CharField(max_length=0), "leaves no room"),
        (
            lambda: cast("Any", fields.ForeignKey)("X", on_delete="NOTHING"),
            "on_delete cannot be 'NOTHING'; use one of",
        ),
        (lambda: fields.ForeignKey("X", on_delete="SET_NULL"), "needs null=True"),
        (
            lambda: fields.ForeignKey("X", on_delete="SET_DEFAULT"),
            "SET_DEFAULT needs a db_default, or a constant default",
        ),
        (lambda: fields.EnumField(Mixed), "all text or all integers"),
        (lambda: fields.ArrayField(fields.JSONField()), "is not supported: use a JSONField"),
        (
            lambda: declare("A", posts=fields.ForeignKey(Everything, related_name="char")),
            "give A a related_name",
        ),
        (
            lambda: declare("A", a=fields.ForeignKey(Stamped), b=fields.ForeignKey(Stamped)),
            "would mean both",
        ),
    ],
)
def test_declarations_that_cannot_work_say_so(build: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build()


def test_abstract_models_give_their_fields_and_cannot_be_used() -> None:
    class Named(Model):
        name = fields.CharField(max_length=10)

        class Meta:
            abstract = True

    class Dog(Named):
        age = fields.IntegerField()

    assert list(Dog._meta.fields) == ["id", "name", "age"]
    assert Dog._meta.fields["name"] is not Named._meta.fields["name"]
    with pytest.raises(ModelError, match="Named is abstract: query a model that inherits from it"):
        _ = Named.objects
    with pytest.raises(ModelError, match="Named is abstract: make an instance"):
        Named(name="x")
    with pytest.raises(ModelError, match="inherits from Dog, which is not abstract"):
        type("Puppy", (Dog,), {"__module__": __name__})


def test_a_target_that_is_never_defined_is_reported_when_it_is_used() -> None:
    model = declare("Dangling", to=fields.ForeignKey("NowhereToBeFound"))
    with pytest.raises(
        FieldError, match=r"Dangling.to points to 'NowhereToBeFound', which is not defined"
    ):
        model.objects.filter(to=1)


def test_sensitive_fields_are_masked_in_repr_and_others_are_shown() -> None:
    model = declare(
        "Login",
        user=fields.TextField(),
        api_key=fields.TextField(),
        pin=fields.IntegerField(sensitive=False),
    )
    assert (
        repr(model(user="ann", api_key="hunter2", pin=5))
        == "Login(id=None, user='ann', api_key='***', pin=5)"
    )


def test_validators_refuse_with_their_own_words_unless_the_field_is_sensitive() -> None:
    def even(value: int) -> None:
        if value % 2:
            raise ValueError(f"{value} is odd")

    model = declare(
        "Even",
        n=fields.IntegerField(validators=[even]),
        secret=fields.IntegerField(validators=[even]),
    )
    with pytest.raises(FieldValueError, match=r"Even.n: 3 is odd"):
        model._meta.fields["n"].clean(3)
    with pytest.raises(FieldValueError, match=r"Even.secret: refused by a validator"):
        model._meta.fields["secret"].clean(3)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.tuples(
            st.just("money"),
            st.decimals(allow_nan=False, places=3, min_value=-(10**8), max_value=10**8),
        ),
        st.tuples(st.just("moment"), st.datetimes(timezones=st.just(dt.UTC))),
        st.tuples(
            st.just("span"),
            st.timedeltas(min_value=dt.timedelta(days=-9999), max_value=dt.timedelta(days=9999)),
        ),
        st.tuples(st.just("time"), st.times()),
        st.tuples(st.just("day"), st.dates()),
        st.tuples(st.just("uid"), st.uuids()),
        st.tuples(st.just("real"), st.floats(allow_nan=False, allow_infinity=False)),
        st.tuples(
            st.just("data"),
            st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists),
        ),
    )
)
def test_encoding_and_decoding_are_inverse(pair: tuple[str, Any]) -> None:
    name, value = pair
    field = Everything._meta.fields[name]
    try:
        checked = field.coerce(value)
    except FieldValueError:
        return
    for dialect in ("sqlite", "postgres"):
        encode, decode = field.encoder(dialect), field.decoder(dialect)
        stored = checked if encode is None else encode(checked)
        assert (stored if decode is None else decode(stored)) == value


async def test_a_stored_value_that_the_enum_lost_is_named_without_being_quoted(
    empty: Any, half: Any
) -> None:
    class Old(enum.Enum):
        NEW = "new"
        SENT = "sent"
        LOST = "lost"

    class Now(enum.Enum):
        NEW = "new"
        POSTED = "posted"

        @classmethod
        def _missing_(cls, value: object) -> Now | None:
            return cls.POSTED if value == "sent" else None

    class Parcel(Model):
        state = fields.EnumField(Old)

    class Renamed(Model):
        state = fields.EnumField(Now)

        class Meta:
            table = "parcel"

    await half.call(lambda: create_all(Parcel), lambda: acreate_all(Parcel))
    await half(Parcel.objects).bulk_create([Parcel(state=state) for state in Old])
    known = Renamed.objects.order_by("id")[:2]
    assert [parcel.state for parcel in await half.rows(known)] == [Now.NEW, Now.POSTED]
    with pytest.raises(DatabaseError, match=r"Renamed\.state holds a value that Now does not have"):
        await half.rows(Renamed.objects.all())
    lost = await half(Renamed.objects.defer("state")).last()
    await half(Renamed.objects.filter(pk=lost.pk)).update(state=Now.NEW)
    assert len(await half.rows(Renamed.objects.all())) == 3


async def test_bulk_create_takes_floats_whose_sum_is_too_large(db: Any, half: Any) -> None:
    largest = sys.float_info.max
    rows = [Everything(real=value) for value in (largest, largest, -largest, 5e-324, None)]
    await half(Everything.objects).bulk_create(rows)
    found = await half(Everything.objects.filter(real__in=[largest, 5e-324])).count()
    assert found == 3
    for wrong in (float("nan"), float("inf"), -float("inf")):
        with pytest.raises(FieldValueError, match=r"Everything\.real"):
            await half(Everything.objects).bulk_create(
                [Everything(real=1.0), Everything(real=wrong)]
            )
