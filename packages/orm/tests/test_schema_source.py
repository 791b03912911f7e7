"""Fields, constraints and expressions as Python source that makes them again."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import uuid
import zoneinfo
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from orm_own_fields import Dashed, MoneyField

import treefold_orm as orm
from treefold_orm import F, ModelError, Q, Value, fields
from treefold_orm.schema import (
    Imports,
    Postgres,
    SourceWriter,
    SQLite,
    TableShape,
    meta_of,
    namespace_of,
    quoted,
    source_of,
    table_of,
    unbound_copy,
)


class Status(orm.TextChoices):
    DRAFT = "d", "A draft"
    DONE = "x"


class Size(enum.Enum):
    SMALL = 1
    LARGE = 2


FIELDS: list[tuple[Any, str]] = [
    (fields.BigAutoField(), "fields.BigAutoField()"),
    (fields.BigAutoField(primary_key=True), "fields.BigAutoField()"),
    (fields.AutoField(db_column="key"), 'fields.AutoField(db_column="key")'),
    (fields.IntegerField(primary_key=True, unique=True), "fields.IntegerField(primary_key=True)"),
    (fields.SmallIntegerField(default=3), "fields.SmallIntegerField(default=3)"),
    (fields.BigIntegerField(null=False), "fields.BigIntegerField()"),
    (fields.PositiveIntegerField(unique=True), "fields.PositiveIntegerField(unique=True)"),
    (fields.PositiveSmallIntegerField(), "fields.PositiveSmallIntegerField()"),
    (fields.PositiveBigIntegerField(), "fields.PositiveBigIntegerField()"),
    (fields.BooleanField(default=False), "fields.BooleanField(default=False)"),
    (fields.FloatField(db_default=0.5), "fields.FloatField(db_default=0.5)"),
    (
        fields.DecimalField(max_digits=5, decimal_places=2, default=decimal.Decimal("1.50")),
        'fields.DecimalField(max_digits=5, decimal_places=2, default=Decimal("1.50"))',
    ),
    (
        fields.DecimalField(max_digits=5, decimal_places=2, storage="real"),
        'fields.DecimalField(max_digits=5, decimal_places=2, storage="real")',
    ),
    (fields.CharField(max_length=9, null=True), "fields.CharField(max_length=9, null=True)"),
    (fields.CharField(max_length=9, validators=[print]), "fields.CharField(max_length=9)"),
    (fields.CharField(max_length=9, help_text="x"), "fields.CharField(max_length=9)"),
    (fields.CharField(max_length=9, default=str), "fields.CharField(max_length=9)"),
    (fields.TextField(db_index=True), "fields.TextField(db_index=True)"),
    (fields.TextField(default="\"'\\"), 'fields.TextField(default="\\"\'\\\\")'),
    (fields.TextField(sensitive=True), "fields.TextField(sensitive=True)"),
    (fields.EmailField(), "fields.EmailField()"),
    (fields.SlugField(), "fields.SlugField()"),
    (fields.URLField(), "fields.URLField()"),
    (
        fields.GenericIPAddressField(protocol="IPv4"),
        'fields.GenericIPAddressField(protocol="IPv4")',
    ),
    (fields.DateField(default=dt.date.today), "fields.DateField()"),
    (
        fields.DateField(default=dt.date(2020, 1, 2)),
        "fields.DateField(default=datetime.date(2020, 1, 2))",
    ),
    (fields.TimeField(db_default=dt.time(7)), "fields.TimeField(db_default=datetime.time(7, 0))"),
    (fields.DateTimeField(auto_now_add=True), "fields.DateTimeField(auto_now_add=True)"),
    (fields.DateTimeField(zone=dt.UTC), "fields.DateTimeField()"),
    (fields.DateTimeField(zone=None), "fields.DateTimeField(zone=None)"),
    (fields.DateTimeField(db_default=orm.Now()), "fields.DateTimeField(db_default=Now())"),
    (
        fields.DateTimeField(default=dt.datetime(2020, 1, 2, tzinfo=dt.UTC)),
        "fields.DateTimeField("
        "default=datetime.datetime(2020, 1, 2, 0, 0, tzinfo=datetime.timezone.utc))",
    ),
    (
        fields.DurationField(default=dt.timedelta(days=1)),
        "fields.DurationField(default=datetime.timedelta(days=1))",
    ),
    (fields.UUIDField(default=uuid.uuid4), "fields.UUIDField()"),
    (
        fields.UUIDField(default=uuid.UUID(int=1)),
        'fields.UUIDField(default=UUID("00000000-0000-0000-0000-000000000001"))',
    ),
    (fields.BinaryField(default=b"\x00"), 'fields.BinaryField(default=b"\\x00")'),
    (fields.JSONField(default={"a": [1]}), 'fields.JSONField(default={"a": [1]})'),
    (fields.JSONField(default=dict), "fields.JSONField()"),
    (
        fields.CharField(max_length=1, choices=Status.choices, default=Status.DRAFT),
        'fields.CharField(max_length=1, default="d", choices=[("d", "A draft"), ("x", "Done")])',
    ),
    (
        fields.CharField(max_length=1, choices=["a", "b"]),
        'fields.CharField(max_length=1, choices=[("a", "a"), ("b", "b")])',
    ),
    (
        fields.EnumField(Status, default=Status.DONE),
        'fields.EnumField(Enum("Status", {"DRAFT": "d", "DONE": "x"}), default="x")',
    ),
    (fields.EnumField(Size), 'fields.EnumField(Enum("Size", {"SMALL": 1, "LARGE": 2}))'),
    (
        fields.ArrayField(fields.CharField(max_length=3), null=True),
        "fields.ArrayField(fields.CharField(max_length=3), null=True)",
    ),
    (fields.ForeignKey("author"), 'fields.ForeignKey("author")'),
    (
        fields.ForeignKey("author", "CASCADE", related_name="posts"),
        'fields.ForeignKey("author", "CASCADE")',
    ),
    (
        fields.ForeignKey("author", on_delete="SET_NULL", null=True, db_index=False),
        'fields.ForeignKey("author", "SET_NULL", null=True, db_index=False)',
    ),
    (
        fields.ForeignKey("author", on_delete="SET_DEFAULT", default=1),
        'fields.ForeignKey("author", "SET_DEFAULT", default=1)',
    ),
    (fields.OneToOneField("author", unique=True), 'fields.OneToOneField("author")'),
    (MoneyField(), "orm_own_fields.MoneyField()"),
    (MoneyField("USD", null=True), 'orm_own_fields.MoneyField("USD", null=True)'),
]


def made_again(part: Any) -> Any:
    text, imports = source_of(part)
    return eval(text, namespace_of(imports))


@pytest.mark.parametrize(("field", "text"), FIELDS, ids=[text[:60] for _, text in FIELDS])
def test_a_field_is_written_as_its_constructor(field: Any, text: str) -> None:
    assert source_of(field)[0] == text


@pytest.mark.parametrize("field", [f for f, _ in FIELDS], ids=[text[:60] for _, text in FIELDS])
def test_source_makes_an_equal_field_again(field: Any) -> None:
    again = made_again(field)
    assert type(again) is type(field)
    assert source_of(again) == source_of(field)
    assert source_of(unbound_copy(field)) == source_of(field)


@pytest.mark.parametrize("dialect", [SQLite(), Postgres()], ids=["sqlite", "postgres"])
@pytest.mark.parametrize("field", [f for f, _ in FIELDS], ids=[text[:60] for _, text in FIELDS])
def test_source_makes_an_equal_column_again(field: Any, dialect: Any) -> None:
    assert column(made_again(field), dialect) == column(field, dialect)


def column(field: Any, dialect: Any) -> object:
    author = TableShape("author", "Author", {"id": fields.BigAutoField()})
    own: dict[str, Any] = {} if field.primary_key else {"id": fields.BigAutoField()}
    shape = TableShape("t", "T", {**own, "f": field})
    try:
        return table_of(meta_of("t", {"t": shape, "author": author}), dialect)
    except orm.UnsupportedFeature as error:
        return str(error)


long: orm.Condition = Q(a=0)
for number in range(1, 40):
    long = long | Q(a=number)
LONG_TEXT = "".join(
    [
        "CheckConstraint(" + "(" * 15 + "Q(a=0)",
        *(f" | Q(a={number})" + (")" if number < 16 else "") for number in range(1, 40)),
        ', name="n")',
    ]
)
"""Nested up to 16 levels, and flat from there on."""

PARTS: list[tuple[Any, str]] = [
    (orm.Index("a", "-b"), 'Index("a", "-b")'),
    (orm.Index(fields=["a"], name="n"), 'Index("a", name="n")'),
    (orm.Index(orm.Lower("t"), name="n"), 'Index(Lower("t"), name="n")'),
    (
        orm.Index(F("a").desc(nulls="last"), name="n"),
        'Index(F("a").desc(nulls="last"), name="n")',
    ),
    (orm.Index("a", condition=Q(b__gt=1)), 'Index("a", condition=Q(b__gt=1))'),
    (
        orm.Index("t", name="n", include=["a"], opclasses=["text_pattern_ops"]),
        'Index("t", name="n", include=["a"], opclasses=["text_pattern_ops"])',
    ),
    (orm.UniqueConstraint("a", "b"), 'UniqueConstraint("a", "b")'),
    (orm.UniqueConstraint(["a", "b"]), 'UniqueConstraint("a", "b")'),
    (
        orm.UniqueConstraint("a", nulls_distinct=False, name="n"),
        'UniqueConstraint("a", name="n", nulls_distinct=False)',
    ),
    (
        orm.UniqueConstraint("a", deferrable="deferred"),
        'UniqueConstraint("a", deferrable="deferred")',
    ),
    (
        orm.UniqueConstraint(orm.Upper("t"), name="n", condition=~Q(a=None)),
        'UniqueConstraint(Upper("t"), name="n", condition=~Q(a=None))',
    ),
    (orm.CheckConstraint(Q(a__gte=1), name="n"), 'CheckConstraint(Q(a__gte=1), name="n")'),
    (
        orm.CheckConstraint(Q(a=1) | Q(b=2) & ~Q(t="x"), name="n"),
        'CheckConstraint(Q(a=1) | (Q(b=2) & ~Q(t="x")), name="n")',
    ),
    (orm.CheckConstraint(Q(Q(a=1), b=2), name="n"), 'CheckConstraint(Q(Q(a=1), b=2), name="n")'),
    (  # nested as it was written: so it is stored in databases
        orm.CheckConstraint(Q(a=1) | Q(a=2) | Q(a=3), name="n"),
        'CheckConstraint((Q(a=1) | Q(a=2)) | Q(a=3), name="n")',
    ),
    (orm.CheckConstraint(long, name="n"), LONG_TEXT),
    (orm.CheckConstraint(F("a") > F("b"), name="n"), 'CheckConstraint(F("a") > F("b"), name="n")'),
    (
        orm.CheckConstraint(~(F("a") + 1 > F("b") * 2), name="n"),
        'CheckConstraint(~((F("a") + 1) > (F("b") * 2)), name="n")',
    ),
    (
        orm.CheckConstraint(Q(a__in=[1, F("b")]), name="n"),
        'CheckConstraint(Q(a__in=[1, F("b")]), name="n")',
    ),
    (
        orm.CheckConstraint(Q(d__gte=dt.date(2020, 1, 1)), name="n"),
        'CheckConstraint(Q(d__gte=datetime.date(2020, 1, 1)), name="n")',
    ),
    (
        orm.ExclusionConstraint([("a", "="), (orm.Range("a", "b"), "&&")], name="n"),
        'ExclusionConstraint([("a", "="), (Range("a", "b", bounds="[)"), "&&")], name="n")',
    ),
    (
        orm.SearchIndex(["t"], config="english", weights="A", name="n"),
        'SearchIndex(["t"], config="english", weights="A", name="n")',
    ),
    (orm.SearchIndex(["t"]), 'SearchIndex(["t"])'),
]

EXPRESSIONS: list[tuple[Any, str]] = [
    (orm.Coalesce("a", Value(0)), 'Coalesce("a", Value(0))'),
    (orm.Greatest("a", "b"), 'Greatest("a", "b")'),
    (orm.NullIf("a", 3), 'NullIf("a", 3)'),
    (orm.Cast("a", str), 'Cast("a", fields.TextField())'),
    (orm.Extract("d", "year"), 'Extract("d", "year")'),
    (
        orm.Extract("m", "hour", tzinfo=zoneinfo.ZoneInfo("Europe/Paris")),
        'Extract("m", "hour", tzinfo=ZoneInfo("Europe/Paris"))',
    ),
    (orm.Extract("d", "iso_year"), 'Extract("d", "iso_year")'),
    (orm.Trunc("d", "month"), 'Trunc("d", "month")'),
    (
        orm.Trunc("m", "day", tzinfo=zoneinfo.ZoneInfo("Europe/Paris")),
        'Trunc("m", "day", tzinfo=ZoneInfo("Europe/Paris"))',
    ),
    (
        orm.Case(orm.When(a__gt=1, then=Value("x")), default=Value("y")),
        'Case(When(Q(a__gt=1), then=Value("x")), default=Value("y"))',
    ),
    (orm.Concat("t", Value("!")), 'Concat("t", Value("!"))'),
    (orm.Left("t", 3), 'Left("t", 3)'),
    (orm.LPad("t", 3), 'LPad("t", 3, " ")'),
    (orm.Substr("t", 2, 3), 'Substr("t", 2, 3)'),
    (orm.Substr("t", Value(2)), 'Substr("t", Value(2))'),
    (orm.Replace("t", "a", "b"), 'Replace("t", "a", "b")'),
    (orm.Position("t", "x"), 'Position("t", "x")'),
    (orm.Round("a", 2), 'Round("a", 2)'),
    (orm.Reverse("t"), 'Reverse("t")'),
    (orm.SHA256("t"), 'SHA256("t")'),
    (-F("a") % 2, '(F("a") * -1) % 2'),
    (F("a") ** 2, 'Power(F("a"), 2)'),
    (orm.JSONObject(x="a"), 'JSONObject(x="a")'),
    (Dashed("t"), 'orm_own_fields.Dashed("t")'),
    (F("j__deep__key"), 'F("j__deep__key")'),
]
SEAT = {
    "id": fields.BigAutoField(),
    "a": fields.IntegerField(),
    "b": fields.IntegerField(null=True),
    "t": fields.TextField(),
    "d": fields.DateField(),
    "m": fields.DateTimeField(),
    "j": fields.JSONField(null=True),
}
ALL_PARTS = [*PARTS, *((orm.Index(e, name="n"), f'Index({t}, name="n")') for e, t in EXPRESSIONS)]


@pytest.mark.parametrize(("part", "text"), ALL_PARTS, ids=[text[:60] for _, text in ALL_PARTS])
def test_a_constraint_or_index_is_written_and_made_again(part: Any, text: str) -> None:
    assert source_of(part)[0] == text
    assert source_of(made_again(part))[0] == text


@pytest.mark.parametrize("dialect", [SQLite(), Postgres()], ids=["sqlite", "postgres"])
@pytest.mark.parametrize("part", [p for p, _ in ALL_PARTS], ids=[t[:60] for _, t in ALL_PARTS])
def test_source_gives_the_same_sql_again(part: Any, dialect: Any) -> None:
    assert table_with(made_again(part), dialect) == table_with(part, dialect)


def table_with(part: Any, dialect: Any) -> object:
    index = isinstance(part, (orm.Index, orm.SearchIndex))
    shape = TableShape("seat", "Seat", SEAT, (), () if index else (part,), (part,) if index else ())
    try:
        return table_of(meta_of("seat", {"seat": shape}), dialect)
    except (orm.UnsupportedFeature, orm.FieldError) as error:
        return str(error)


@pytest.mark.parametrize(
    "part",
    [
        orm.Index(orm.Sum("a"), name="n"),
        orm.Index(orm.RowNumber(), name="n"),
        orm.CheckConstraint(orm.any_of("posts"), name="n"),
    ],
    ids=["aggregate", "window", "related"],
)
def test_what_needs_a_query_is_refused(part: Any) -> None:
    with pytest.raises(ModelError, match="cannot stand in a migration"):
        source_of(part)


def test_values_without_a_certain_spelling_are_refused() -> None:
    with pytest.raises(ModelError, match="of type object cannot be written"):
        source_of(fields.JSONField(db_default=object()))


def test_a_class_without_a_module_to_import_from_is_refused() -> None:
    class Local(fields.TextField[str]):
        pass

    with pytest.raises(ModelError, match="cannot be imported by a migration; define it at the"):
        source_of(Local())


def test_hostile_names_of_fields_stay_text() -> None:
    hostile = 'a"); import os #'
    text, _ = source_of(orm.Index(hostile, name='"\n'))
    assert text == "Index('a\"); import os #', name='\"\\n')"
    text, _ = source_of(orm.CheckConstraint(Q(**{hostile: 1}), name="n"))
    assert text == 'CheckConstraint(Q(**{\'a"); import os #\': 1}), name="n")'


@pytest.mark.parametrize(
    ("key", "text"),
    [("\ufb01", 'Q(**{"j__\ufb01": 1})'), ("gr\u00f6\u00dfe", "Q(j__gr\u00f6\u00dfe=1)")],
    ids=["ligature", "umlaut"],
)
def test_a_name_that_python_would_change_stays_text(key: str, text: str) -> None:
    part = orm.CheckConstraint(Q(**{f"j__{key}": 1}), name="n")
    assert source_of(part)[0] == f'CheckConstraint({text}, name="n")'
    assert source_of(made_again(part)) == source_of(part)


@given(st.binary() | st.text().map(lambda text: text.encode(errors="replace")))
def test_bytes_are_the_same_bytes_again(value: bytes) -> None:
    assert eval(SourceWriter().value(value)) == value


@given(st.text())
def test_quoted_text_is_the_same_text_again(text: str) -> None:
    assert eval(quoted(text)) == text
    assert "\n" not in quoted(text)


OFFSETS = st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))
ZONES = st.builds(dt.timezone, OFFSETS) | st.builds(dt.timezone, OFFSETS, st.text())


def value_again(value: Any) -> Any:
    writer = SourceWriter()
    text = writer.value(value)
    assert "\n" not in text
    return eval(text, namespace_of(writer.imports))


@given(ZONES)
@example(dt.timezone(dt.timedelta(hours=1), "O'Clock"))
@example(dt.timezone(dt.timedelta(hours=1), "'+spoken()+'"))
@example(dt.timezone(dt.timedelta(hours=1), "\"+spoken()+'"))
@example(dt.timezone(dt.timedelta(0), "Zulu"))
def test_a_zone_is_the_same_zone_again(zone: dt.timezone) -> None:
    again = value_again(zone)
    assert (again.utcoffset(None), again.tzname(None)) == (zone.utcoffset(None), zone.tzname(None))


@given(
    st.datetimes(timezones=st.none() | ZONES | st.timezones())
    | st.times(timezones=st.none() | ZONES | st.timezones())
    | st.dates()
    | st.timedeltas(),
    st.sampled_from([0, 1]),
)
@example(dt.time(1, tzinfo=dt.timezone(dt.timedelta(hours=1), "O'Clock")), 0)
def test_dates_and_times_are_the_same_again(value: Any, fold: int) -> None:
    if isinstance(value, (dt.time, dt.datetime)):
        value = value.replace(fold=fold)
    again = value_again(value)
    assert repr(again) == repr(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dt.UTC, "datetime.timezone.utc"),
        (dt.timezone(dt.timedelta(hours=-1)), "datetime.timedelta(days=-1, seconds=82800)"),
        (dt.timezone(dt.timedelta(hours=1), "CET"), 'datetime.timedelta(seconds=3600), "CET"'),
        (dt.timezone(dt.timedelta(0), "UTC"), 'datetime.timedelta(0), "UTC"'),
    ],
)
def test_a_zone_is_written_as_its_constructor(value: Any, text: str) -> None:
    whole = text if value is dt.UTC else f"datetime.timezone({text})"
    assert SourceWriter().value(value) == whole


class Spoken(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "spoken()"


def test_text_of_another_class_is_quoted_as_text() -> None:
    text, _ = source_of(orm.Index("a", name=Spoken("n"), condition=Q(a=Status.DONE)))
    assert text == 'Index("a", name="n", condition=Q(a="x"))'
    zone = dt.timezone(dt.timedelta(hours=1), Spoken("n"))
    assert SourceWriter().value(zone).endswith(', "n")')


def test_renames_reach_every_name() -> None:
    writer = SourceWriter({"a": "z"})
    part = orm.UniqueConstraint(
        "a", "b", condition=Q(a__gt=F("a") + 1) | ~Q(b=Value(2)), include=["a"]
    )
    assert writer.write(part) == (
        'UniqueConstraint("z", "b", condition=Q(z__gt=F("z") + 1) | ~Q(b=Value(2)), include=["z"])'
    )
    assert writer.names == {"a", "b"}


def test_imports_come_in_a_certain_order() -> None:
    imports = Imports()
    imports.name("treefold_orm", "Q")
    imports.module("datetime")
    assert list(imports) == [("datetime", ""), ("treefold_orm", "Q")]
