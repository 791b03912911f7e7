"""Values at JSON paths in expressions: each as the type that the expression needs."""

from __future__ import annotations

from typing import Any

import pytest
from orm_models import Everything

from treefold_orm import (
    Avg,
    Case,
    Coalesce,
    Exists,
    F,
    FieldError,
    OuterRef,
    Sum,
    Value,
    When,
)

DOCUMENTS: list[Any] = [
    {"k": 5, "s": "Five", "b": True},
    {"k": 2.5, "s": 'a"b', "b": False},
    {"k": "5", "s": 5, "b": "true"},
    {"k": True, "s": None, "b": 1},
    {"k": 2**53 + 1, "s": "", "b": None},
    {"k": None, "s": ["x"]},
    {},
    None,
]


def seed() -> None:
    Everything.objects.bulk_create(
        [
            Everything(
                integer=place, small=5, big=2**53 + 1, real=2.5, char="Five", flag=True, data=data
            )
            for place, data in enumerate(DOCUMENTS)
        ]
    )


def values(expression: Any) -> list[Any]:
    query: Any = Everything.objects.annotate(x=expression).order_by("integer")
    return [row.x for row in query]


def numbers(*conditions: Any, **lookups: Any) -> list[int | None]:
    found = Everything.objects.filter(*conditions, **lookups).order_by("integer")
    return [row.integer for row in found]


COMPARED: list[tuple[dict[str, Any], list[int]]] = [
    ({"small": F("data__k")}, [0]),
    ({"small__gt": F("data__k")}, [1]),
    ({"small__lt": F("data__k")}, [4]),
    ({"big": F("data__k")}, [4]),
    ({"big__gt": F("data__k")}, [0, 1]),
    ({"real": F("data__k")}, [1]),
    ({"char": F("data__s")}, [0]),
    ({"char__startswith": F("data__s")}, [0, 4]),
    ({"flag": F("data__b")}, [0]),
    ({"data__k": F("small")}, [0]),
    ({"data__k__gte": F("small")}, [0, 4]),
    ({"data__k__lt": F("real") + 1}, [1]),
    ({"data__s": F("char")}, [0]),
    ({"data__s__in": Everything.objects.values("char")}, [0]),
    ({"data__k__in": Everything.objects.values("small")}, [0]),
    ({"small__in": Everything.objects.values("data__k")}, [0, 1, 2, 3, 4, 5, 6, 7]),
    ({"data__k": F("data__k")}, [0, 1, 2, 3, 4, 5]),
    ({"data__k": F("data__b")}, []),
]


@pytest.mark.parametrize(("lookups", "wanted"), COMPARED, ids=range(len(COMPARED)))
def test_a_value_at_a_path_compares_as_the_other_side(
    db: Any, lookups: dict[str, Any], wanted: list[int]
) -> None:
    seed()
    assert numbers(**lookups) == wanted


def test_numbers_compare_exactly_with_integers(db: Any) -> None:
    Everything.objects.create(integer=1, big=2**53, data={"k": 2**53 + 1})
    assert numbers(big=F("data__k")) == []
    assert numbers(big__lt=F("data__k")) == [1]
    assert numbers(F("data__k") > F("big") + 0) == [1]


COMPUTED: list[tuple[Any, list[Any]]] = [
    (F("data__k") + 1, [6, 3.5, None, None, float(2**53) + 1, None, None, None]),
    (2 * F("data__k"), [10, 5.0, None, None, float(2**54), None, None, None]),
    (F("data__k") / 2, [2.5, 1.25, None, None, float(2**52), None, None, None]),
    (F("small") - F("data__k"), [0, 2.5, None, None, float(5 - 2**53), None, None, None]),
    (F("data__k") + F("data__k"), [10, 5.0, None, None, float(2**54), None, None, None]),
]


@pytest.mark.parametrize(("expression", "wanted"), COMPUTED, ids=range(len(COMPUTED)))
def test_numbers_at_a_path_are_computed_with_as_floats(
    db: Any, expression: Any, wanted: list[Any]
) -> None:
    seed()
    assert values(expression) == wanted


def test_a_choice_takes_a_value_at_a_path_in_the_type_of_the_others(db: Any) -> None:
    seed()
    whole = 2**53 + 1
    assert values(Coalesce("data__k", F("small"))) == [5, 2.5, 5, 5, whole, 5, 5, 5]
    assert values(Coalesce("data__s", F("char"))) == [
        "Five",
        'a"b',
        *["Five"] * 2,
        "",
        *["Five"] * 3,
    ]
    assert values(Coalesce("data__b", F("flag"))) == [True, False, *[True] * 6]
    assert values(Coalesce("data__k", Value(0.5)))[:4] == [5.0, 2.5, 0.5, 0.5]
    chosen = Case(When(integer=0, then=F("data__k")), default=F("small"))
    assert values(chosen) == [5] * 8
    assert values(Coalesce("data__k", 0))[6:] == [0, 0]


ASSIGNED: list[tuple[str, Any, list[Any]]] = [
    ("small", F("data__k"), [5, 3, None, None]),
    ("big", F("data__k"), [5, 3, None, None, 2**53 + 1]),
    ("real", F("data__k"), [5.0, 2.5, None, None, float(2**53 + 1)]),
    ("char", F("data__s"), ["Five", 'a"b', None, None, ""]),
    ("flag", F("data__b"), [True, False, None, None, None]),
    ("data", F("data__s"), ["Five", 'a"b', 5, None, "", ["x"], None, None]),
]


@pytest.mark.parametrize(("name", "value", "wanted"), ASSIGNED, ids=range(len(ASSIGNED)))
def test_an_update_takes_a_value_at_a_path_as_the_column(
    db: Any, name: str, value: Any, wanted: list[Any]
) -> None:
    seed()
    Everything.objects.filter(integer__lt=len(wanted)).update(**{name: value})
    found = Everything.objects.filter(integer__lt=len(wanted)).order_by("integer")
    assert [getattr(row, name) for row in found] == wanted


def test_an_annotation_compares_by_the_type_of_the_value(db: Any) -> None:
    seed()
    query: Any = Everything.objects.annotate(k=F("data__k"), s=F("data__s")).order_by("integer")
    assert [row.integer for row in query.filter(k=5)] == [0]
    assert [row.integer for row in query.filter(k__gt=2.5)] == [0, 4]
    assert [row.integer for row in query.filter(k__in=[5, 2.5])] == [0, 1]
    assert [row.integer for row in query.filter(k__range=(2, 5))] == [0, 1]
    assert [row.integer for row in query.filter(s__startswith="F")] == [0]
    assert [row.integer for row in query.filter(s__gt="F")] == [0, 1]
    assert [row.integer for row in query.filter(k__gt="4")] == [2]


def test_outer_rows_compare_by_the_type_of_the_other_side(db: Any) -> None:
    seed()
    same = Everything.objects.filter(data__k=OuterRef("small"), integer=0)
    assert len(numbers(Exists(same))) == len(DOCUMENTS)
    named = Everything.objects.filter(char=OuterRef("data__s"))
    with pytest.raises(FieldError, match="must name a column"):
        numbers(Exists(named))


def test_sums_and_means_take_numbers_at_a_path(db: Any) -> None:
    seed()
    few = Everything.objects.filter(integer__lt=4)
    assert few.aggregate(s=Sum(F("data__k")), m=Avg(F("data__k"))) == {"s": 7.5, "m": 3.75}


REFUSED: list[Any] = [
    lambda: Everything.objects.filter(day=F("data__k")),
    lambda: Everything.objects.filter(uid=F("data__k")),
    lambda: Everything.objects.filter(data__k__gt=F("data__s")),
    lambda: Everything.objects.annotate(x=Coalesce("data__k", F("moment"))),
    lambda: Everything.objects.annotate(x=F("data__k") % 2),
    lambda: Everything.objects.annotate(x=F("data__k") + F("char")),
]


@pytest.mark.parametrize("build", REFUSED, ids=range(len(REFUSED)))
def test_a_value_at_a_path_is_no_other_type(build: Any) -> None:
    with pytest.raises(FieldError, match=r"Cast\(\)|Concat\(\)"):
        build()
