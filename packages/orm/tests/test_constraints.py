"""Constraints and indexes: what they keep out, what an error tells, what cannot be declared."""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

import pytest

from treefold_orm import (
    CheckConstraint,
    CheckViolation,
    ExclusionConstraint,
    ExclusionViolation,
    F,
    Index,
    IntegrityError,
    Lower,
    Model,
    ModelError,
    Q,
    Range,
    RangeOperators,
    UniqueConstraint,
    UniqueViolation,
    UnsupportedFeature,
    Upper,
    acreate_all,
    create_all,
    fields,
    transaction,
)
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._schema.create import plan_tables
from treefold_orm._schema.describe import table_of


async def create(half: Any, *models: type[Model]) -> None:
    await half.call(lambda: create_all(*models), lambda: acreate_all(*models))


class Guest(Model):
    """Unique over an expression, over columns with NULL, and over some rows only."""

    email = fields.CharField(max_length=40)
    room = fields.IntegerField(null=True)
    seat = fields.IntegerField(null=True)
    age = fields.PositiveIntegerField(default=1)
    state = fields.CharField(max_length=10, default="here")

    class Meta:
        constraints = (
            UniqueConstraint(Lower("email"), name="one_email"),
            UniqueConstraint("room", "seat", nulls_distinct=False),
            UniqueConstraint("age", name="one_chief", condition=Q(state="chief")),
            CheckConstraint(~Q(state="gone") | Q(room=None), name="gone_has_no_room"),
        )


@pytest.mark.parametrize(
    ("second", "error", "names", "constraint"),
    [
        ({"email": "ANN@X"}, UniqueViolation, ("email",), "one_email"),
        ({"room": 1}, UniqueViolation, ("room", "seat"), "uq_guest_room_seat"),
        ({"age": 5, "state": "chief"}, UniqueViolation, ("age",), "one_chief"),
        ({"state": "gone", "room": 2}, CheckViolation, ("state", "room"), "gone_has_no_room"),
    ],
    ids=["expression", "null equals null", "partial", "check"],
)
async def test_violations_name_model_fields_and_constraint(
    empty: Any,
    half: Any,
    second: dict[str, Any],
    error: type[IntegrityError],
    names: tuple[str, ...],
    constraint: str,
) -> None:
    await create(half, Guest)
    await half(Guest.objects).create(email="ann@x", room=1, age=5, state="chief")
    with pytest.raises(error, match=r"Guest\.|gone_has_no_room") as caught:
        await half(Guest.objects).create(**{"email": "bob@x", **second})
    found = caught.value
    assert (found.model, found.fields, found.constraint) == ("Guest", names, constraint)


async def test_null_equals_null_only_where_it_is_said(empty: Any, half: Any) -> None:
    class Slot(Model):
        first = fields.IntegerField(null=True)
        second = fields.IntegerField()
        third = fields.IntegerField(null=True)

        class Meta:
            constraints = (
                UniqueConstraint("first", "second", nulls_distinct=False),
                UniqueConstraint("second", "third"),
            )

    await create(half, Slot)
    for first in (None, 0, 1):  # a NULL is not the 0 that stands for it inside of the index
        await half(Slot.objects).create(first=first, second=1)
    with pytest.raises(UniqueViolation, match=r"Slot\.first, second exists already"):
        await half(Slot.objects).create(second=1)


async def test_checks_of_types_have_a_name_and_a_field(empty: Any, half: Any) -> None:
    await create(half, Guest)
    await half(Guest.objects).create(email="x")
    with pytest.raises(CheckViolation, match="The check constraint 'ck_guest_age' is not met") as e:
        await half(Guest.objects).update(age=F("age") - 9)
    assert (e.value.model, e.value.fields) == ("Guest", ("age",))


async def test_a_faulty_model_does_not_hide_a_violation(empty: Any, half: Any) -> None:
    body = {
        "__module__": __name__,
        "_space": "faulty",
        "Meta": type("Meta", (), {"constraints": [UniqueConstraint("nothing")]}),
    }
    with pytest.raises(ModelError, match=r"Faulty\.Meta: UniqueConstraint must name fields"):
        type("Faulty", (Model,), body)
    await create(half, Guest)
    await half(Guest.objects).create(email="a", room=1)
    with pytest.raises(UniqueViolation, match=r"Guest\.email exists already"):
        await half(Guest.objects).create(email="A", room=2)


async def test_upserts_go_by_unique_columns(empty: Any, half: Any) -> None:
    class Counter(Model):
        shop = fields.CharField(max_length=10)
        number = fields.IntegerField()
        value = fields.IntegerField()

        class Meta:
            constraints = (UniqueConstraint("shop", "number"),)

    await create(half, Counter)
    for value in (1, 2):
        await half(Counter.objects).bulk_create(
            [Counter(shop="a", number=1, value=value)],
            update_conflicts=["value"],
            unique_fields=["shop", "number"],
        )
    assert [row.value for row in await half.rows(Counter.objects.all())] == [2]


# -- PostgreSQL alone -----------------------------------------------------------------------------


class Place(Model):
    """Positions that may be exchanged within a transaction."""

    _space = "postgres"  # create_all() of another test's application passes over it
    position = fields.IntegerField()
    label = fields.CharField(max_length=10)

    class Meta:
        constraints = (
            UniqueConstraint("position", name="one_position", deferrable="deferred"),
            UniqueConstraint("label", name="one_label", deferrable="immediate"),
        )


class Booking(Model):
    """No room is booked twice at a time."""

    _space = "postgres"
    room = fields.IntegerField()
    begins = fields.DateTimeField()
    ends = fields.DateTimeField()
    cancelled = fields.BooleanField(default=False)

    class Meta:
        constraints = (
            ExclusionConstraint(
                [("room", RangeOperators.EQUAL), (Range("begins", "ends"), "&&")],
                name="one_booking",
                condition=Q(cancelled=False),
            ),
        )


def day(number: int) -> dt.datetime:
    return dt.datetime(2026, 1, number, tzinfo=dt.UTC)


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_deferred_constraints_are_checked_at_the_end(empty: Any, half: Any) -> None:
    await create(half, Place)
    one, two = await half(Place.objects).bulk_create(
        [Place(position=1, label="a"), Place(position=2, label="b")]
    )

    async def exchange() -> None:
        async with transaction():
            await Place.objects.filter(pk=one.pk).aupdate(position=2)
            await Place.objects.filter(pk=two.pk).aupdate(position=1)

    await exchange()
    stored = {row.pk: row.position for row in await half.rows(Place.objects.all())}
    assert stored == {one.pk: 2, two.pk: 1}
    with pytest.raises(UniqueViolation, match=r"Place\.label exists already"):
        await half(Place.objects.filter(pk=one.pk)).update(label="b")


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_a_commit_that_breaks_a_deferred_constraint_names_it(empty: Any, half: Any) -> None:
    await create(half, Place)
    await half(Place.objects).create(position=1, label="a")

    def blocking() -> None:
        with transaction():
            Place.objects.create(position=1, label="b")

    async def awaiting() -> None:
        async with transaction():
            await Place.objects.acreate(position=1, label="b")

    with pytest.raises(UniqueViolation, match=r"Place\.position exists already") as caught:
        await half.call(blocking, awaiting)
    assert (caught.value.fields, caught.value.constraint) == (("position",), "one_position")
    assert await half(Place.objects).count() == 1


@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
async def test_exclusion_constraints_keep_rows_apart(empty: Any, half: Any) -> None:
    await create(half, Booking)
    await half(Booking.objects).create(room=1, begins=day(1), ends=day(5))
    for values in (
        {"room": 2, "begins": day(2), "ends": day(3)},
        {"room": 1, "begins": day(5), "ends": day(6)},
        {"room": 1, "begins": day(2), "ends": day(3), "cancelled": True},
    ):
        await half(Booking.objects).create(**values)
    with pytest.raises(ExclusionViolation, match="The exclusion constraint 'one_booking'") as e:
        await half(Booking.objects).create(room=1, begins=day(4), ends=day(9))
    assert (e.value.model, e.value.fields) == ("Booking", ("room", "begins", "ends"))
    assert e.value.constraint == "one_booking"


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Place, "Place: UniqueConstraint 'one_position' is deferrable, which needs PostgreSQL"),
        (Booking, "Booking: ExclusionConstraint 'one_booking' needs PostgreSQL"),
    ],
)
def test_sqlite_refuses_what_it_cannot_keep(model: type[Model], message: str) -> None:
    with pytest.raises(UnsupportedFeature, match=message):
        plan_tables([model._meta], SQLite())


# -- declarations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: UniqueConstraint(), "UniqueConstraint needs at least one field or expression"),
        (lambda: UniqueConstraint(Lower("a")), "UniqueConstraint over expressions needs a name"),
        (lambda: UniqueConstraint("-a"), "takes names without '-'"),
        (lambda: UniqueConstraint("a", fields=["b"]), "by position or as fields=, not both"),
        (lambda: UniqueConstraint(fields="ab"), "must be a list of names, got 'ab'"),
        (
            lambda: UniqueConstraint("a", deferrable=cast("Any", "later")),
            "'deferred' or 'immediate', got",
        ),
        (
            lambda: UniqueConstraint("a", deferrable="deferred", condition=Q(a=1)),
            "takes names of fields alone",
        ),
        (lambda: UniqueConstraint("a", opclasses=["x", "y"]), "one name for each of the 1 terms"),
        (lambda: Index("a", opclasses=["text_ops) --"]), "must be plain names"),
        (lambda: Index(cast("Any", 5)), "takes names of fields and expressions, got 5"),
        (lambda: CheckConstraint(cast("Any", "a > 1"), name="x"), "takes a condition such as"),
        (lambda: ExclusionConstraint([("a", "&&")], name=""), "needs a name"),
        (lambda: ExclusionConstraint([], name="x"), "needs at least one"),
        (lambda: ExclusionConstraint([("a", "OR")], name="x"), "cannot use the operator 'OR'"),
    ],
)
def test_constraints_that_cannot_work_say_so(declare: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        declare()


def with_meta(**options: Any) -> type[Model]:
    body = {
        "__module__": __name__,
        "_space": "faulty",
        "name": fields.CharField(max_length=10, db_index=True),
        "other": fields.CharField(max_length=10, unique=True),
        "Meta": type("Meta", (), options),
    }
    return type("Named", (Model,), body)


@pytest.mark.parametrize(
    ("options", "twice"),
    [
        ({"indexes": [Index("name")]}, "ix_named_name"),
        ({"constraints": [UniqueConstraint("other")]}, "uq_named_other"),
        (
            {
                "constraints": [UniqueConstraint("name", name="x")],
                "indexes": [Index("other", name="x")],
            },
            "x",
        ),
    ],
)
def test_two_parts_of_a_table_cannot_share_a_name(options: dict[str, Any], twice: str) -> None:
    with pytest.raises(ModelError, match=f"Named has two constraints or indexes called '{twice}'"):
        table_of(with_meta(**options)._meta, SQLite())


WRONG_NAMES: list[tuple[dict[str, Any], str]] = [
    (
        {"constraints": [UniqueConstraint("nam")]},
        "UniqueConstraint must name fields; Named has no field 'nam': did you mean 'name'?",
    ),
    (
        {"constraints": [UniqueConstraint("name", "othr", name="u")]},
        "UniqueConstraint 'u' .*'othr'",
    ),
    ({"constraints": [UniqueConstraint("name", include=["othr"])]}, "UniqueConstraint .*'othr'"),
    ({"constraints": [UniqueConstraint(Lower("nam"), name="u")]}, "UniqueConstraint 'u' .*'nam'"),
    (
        {"constraints": [UniqueConstraint("name", name="u", condition=Q(othr="x"))]},
        "UniqueConstraint 'u' .*'othr'",
    ),
    ({"constraints": [CheckConstraint(Q(nam="x"), name="c")]}, "CheckConstraint 'c' .*'nam'"),
    (
        {"constraints": [CheckConstraint(Q(name=F("othr")), name="c")]},
        "CheckConstraint 'c' .*'othr'",
    ),
    (
        {"constraints": [ExclusionConstraint([("nam", "=")], name="e")]},
        "ExclusionConstraint 'e' .*'nam'",
    ),
    ({"indexes": [Index("-nam")]}, "Index must name fields; Named has no field 'nam'"),
    ({"indexes": [Index("name", include=["othr"])]}, "Index .*'othr'"),
    ({"indexes": [Index(Lower("nam").desc(), name="i")]}, "Index 'i' .*'nam'"),
    ({"indexes": [Index("name", condition=Q(othr="x"), name="i")]}, "Index 'i' .*'othr'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_NAMES, ids=range(len(WRONG_NAMES)))
def test_names_are_checked_when_the_model_is_defined(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=rf"Named\.Meta: {message}".replace("?", r"\?")):
        with_meta(**options)


def test_names_may_stand_beside_a_key_whose_target_comes_later() -> None:
    early = type(
        "Early",
        (Model,),
        {
            "__module__": __name__,
            "_space": "faulty",
            "owner": fields.ForeignKey("LateOwner", related_name="+"),
            "Meta": type(
                "Meta",
                (),
                {
                    "constraints": [CheckConstraint(~Q(owner=5), name="not_five")],
                    "indexes": [Index("-owner")],
                },
            ),
        },
    )
    owner = {"__module__": __name__, "_space": "faulty"}
    type("LateOwner", (Model,), owner)
    assert table_of(early._meta, SQLite()).checks[0].name == "not_five"


def test_two_tables_cannot_share_the_name_of_an_index() -> None:
    one = with_meta(indexes=[Index("other", name="x")], table="one")
    two = with_meta(indexes=[Index("other", name="x")], table="two")
    with pytest.raises(ModelError, match="'one' and 'two' both have an index called 'x'"):
        plan_tables([one._meta, two._meta], SQLite())


def test_indexes_keep_their_order() -> None:
    model = with_meta(
        indexes=[
            Index("-name"),
            Index("other", "-name"),
            Index(fields=["-other", "name"]),
            Index(Upper("name").desc(), F("other"), name="shouted"),
        ]
    )
    found = {index.name: index.terms for index in table_of(model._meta, SQLite()).indexes}
    assert found == {
        "ix_named_name": ('"name"',),
        "ix_named_name_desc": ('"name" DESC',),
        "ix_named_other_name_desc": ('"other"', '"name" DESC'),
        "ix_named_other_desc_name": ('"other" DESC', '"name"'),
        "shouted": ('(treefold_upper("name")) DESC', '("other")'),
    }
