"""Rows in the order of values at JSON paths, which is one on both databases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from orm_models import Everything

from treefold_orm import Count, F, FieldError, RowNumber, TaintedInput, Window, taint

ORDERED: list[Any] = [
    "",
    "10",
    "9",
    "A",
    "Z",
    "a",
    "é",
    "\U0001f600",
    -(2**40),
    -1.5,
    0,
    0.25,
    1,
    1.5,
    9,
    10,
    2**53,
    1e300,
    False,
    True,
]
LAST: list[Any] = [[], {}]
"""Behind these stand lists, then objects, then rows without a value, which have no order."""


async def filled(half: Any, values: list[Any]) -> None:
    rows = [Everything(char=str(place), data={"a": {"b": v}}) for place, v in enumerate(values)]
    await half(Everything.objects).bulk_create(rows[::-1])


async def test_values_are_ordered_by_type_and_then_by_value(db: Any, half: Any) -> None:
    values = [*ORDERED, *LAST]
    await filled(half, values)
    await half(Everything.objects).create(char="none", data={"a": {}})
    await half(Everything.objects).create(char="null", data={"a": {"b": None}})
    await half(Everything.objects).create(char="empty", data=None)
    await half(Everything.objects).create(char="other", data=[1])
    places = [str(place) for place in range(len(values))]
    gone = ["none", "null", "empty", "other"]
    for term, expected in (
        ("data__a__b", [*places, *gone]),
        ("-data__a__b", [*gone, *places[::-1]]),
        (F("data__a__b"), [*places, *gone]),
        (F("data__a__b").desc(nulls_last=True), [*places[::-1], *gone]),
        (F("data__a__b").asc(nulls_first=True), [*gone, *places]),
    ):
        query = Everything.objects.order_by(term, "id").values_list("char", flat=True)
        assert await half.rows(query) == expected
    query = Everything.objects.order_by("data__a__b", "-id").reverse()
    assert [row.char for row in await half.rows(query)][4:] == places[::-1]
    assert (await half(Everything.objects.order_by("data__a__b")).first()).char == "0"
    assert await half(Everything.objects.order_by("data__a__b")[:5]).count() == 5


@given(
    st.lists(
        st.one_of(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
            st.integers(-(2**62), 2**62),
            st.floats(allow_nan=False, allow_infinity=False, width=32),
            st.booleans(),
        ),
        max_size=8,
    )
)
@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_any_values_have_the_order_of_python(db: Any, values: list[Any]) -> None:
    Everything.objects.all().delete()
    Everything.objects.bulk_create([Everything(data={"a": value}) for value in values])
    found = [row.data["a"] for row in Everything.objects.order_by("data__a")]

    def rank(value: Any) -> tuple[int, Any]:
        if isinstance(value, str):
            return 1, value.encode()
        return (3, value) if isinstance(value, bool) else (2, float(value))

    assert [rank(value) for value in found] == sorted(map(rank, values))


async def test_paths_lead_into_lists_and_over_annotations(db: Any, half: Any) -> None:
    for char, items in (("x", [3, "b"]), ("y", [1]), ("z", [2, "a"])):
        await half(Everything.objects).create(char=char, data={"items": items})
    chars = Everything.objects.values_list("char", flat=True)
    assert await half.rows(chars.order_by("data__items__0")) == ["y", "z", "x"]
    assert await half.rows(chars.order_by("data__items__1", "char")) == ["z", "x", "y"]
    named = Everything.objects.annotate(first=F("data__items__0")).order_by("-first")
    assert [row.char for row in await half.rows(named)] == ["x", "z", "y"]
    numbered = Everything.objects.annotate(
        n=Window(RowNumber(), order_by=["-data__items__0"])
    ).order_by("n")
    assert [row.char for row in await half.rows(numbered)] == ["x", "z", "y"]
    groups = Everything.objects.values("data__items__0").annotate(n=Count("id"))
    found = await half.rows(groups.order_by("data__items__0"))
    assert [row["data__items__0"] for row in found] == [1, 2, 3]


async def test_pages_by_a_path_are_refused(db: Any, half: Any) -> None:
    await filled(half, [1, 2])
    for query in (
        Everything.objects.order_by("data__a__b"),
        Everything.objects.annotate(x=F("data__a__b")).order_by("x", "id"),
    ):
        with pytest.raises(FieldError, match=r"keyset\(\) cannot order by a JSON path"):
            await half(query).keyset(1)


HOSTILE = ["data__a'; DROP TABLE everything; --", "data__a b", 'data__a"b', "-", "data__a--"]


@pytest.mark.parametrize("term", HOSTILE)
def test_paths_are_names(db: Any, term: str) -> None:
    with pytest.raises(FieldError):
        Everything.objects.order_by(term)


def test_a_path_of_a_request_is_refused(db: Any) -> None:
    name: Any = next(iter(taint({"data__a": 1})))
    with pytest.raises(TaintedInput):
        Everything.objects.order_by(name)


def test_comparisons_and_distinct_rows_have_no_such_order(db: Any) -> None:
    with pytest.raises(FieldError, match="is a comparison, not a value"):
        Everything.objects.order_by("data__a__has_key")
    with pytest.raises(FieldError, match="add the others to values"):
        Everything.objects.values("data__a").distinct().order_by("data__a").explain_sql()
