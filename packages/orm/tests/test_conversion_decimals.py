"""Decimals beside other numbers: computed exactly, compared and chosen in one type, on both
databases.
"""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from orm_amounts import Amount, D, Part, names, one_row, values

from treefold_orm import (
    Case,
    Coalesce,
    Count,
    DataError,
    Expression,
    F,
    FieldError,
    Greatest,
    Least,
    NullIf,
    OuterRef,
    Subquery,
    Value,
    When,
    fields,
)

ARITHMETIC: list[tuple[Expression, list[str]]] = [
    (F("price") + F("n"), ["6.50", "14.00", "-2.05"]),
    (F("n") + F("price"), ["6.50", "14.00", "-2.05"]),
    (F("price") - F("fine"), ["0.0000", "-0.0001", "0.0000"]),
    (F("price") + 2, ["5.50", "9.00", "1.95"]),
    (10 - F("price"), ["6.50", "3.00", "10.05"]),
    (F("price") + D("0.005"), ["3.505", "7.005", "-0.045"]),
    (F("price") + 10**9, ["1000000003.50", "1000000007.00", "999999999.95"]),
    (F("price") * D("1.19"), ["4.1650", "8.3300", "-0.0595"]),
    (F("price") * F("rate"), ["0.66500", "7.03500", "-0.12500"]),
    (F("price") * F("fine"), ["12.250000", "49.000700", "0.002500"]),
    (F("price") * 3, ["10.50", "21.00", "-0.15"]),
    (F("n") * F("rate"), ["0.570", "7.035", "-5.000"]),
    (F("price") / 3, ["1.166667", "2.333333", "-0.016667"]),
    (F("price") / F("n"), ["1.166667", "1.000000", "0.025000"]),
    (F("n") / F("rate"), ["15.789474", "6.965174", "-0.800000"]),
    (F("price") / F("fine"), ["1.000000", "0.999986", "1.000000"]),
    (1 / F("price"), ["0.285714", "0.142857", "-20.000000"]),
    (F("price") % 2, ["1.50", "1.00", "-0.05"]),
    (F("price") % F("n"), ["0.50", "0.00", "-0.05"]),
    (F("n") % F("price"), ["3.00", "0.00", "0.00"]),
    ((F("price") + F("n")) * F("rate") - 1, ["0.23500", "13.07000", "-6.12500"]),
    ((F("price") - F("fine")) / 3, ["0.000000", "-0.000033", "0.000000"]),
]


@pytest.mark.parametrize(("expression", "wanted"), ARITHMETIC, ids=range(len(ARITHMETIC)))
def test_arithmetic_is_exact(rows: None, expression: Expression, wanted: list[str]) -> None:
    assert values(expression) == [*map(D, wanted), None]
    assert all(type(value) is D for value in values(expression)[:3])


def test_a_quotient_is_rounded_half_away_from_zero(rows: None) -> None:
    for price, divisor, wanted in (
        ("0.01", 20000, "0.000001"),
        ("-0.01", 20000, "-0.000001"),
        ("0.01", 20001, "0.000000"),
        ("99999999.99", 7, "14285714.284286"),
        ("99999999.99", 3 * 10**12, "0.000033"),
    ):
        with one_row(price=D(price), big=divisor):
            assert values(F("price") / F("big"), name="z") == [D(wanted)]


COMPARED: list[tuple[dict[str, Any], str]] = [
    ({"price__gt": F("n")}, "ac"),
    ({"price": F("n")}, "b"),
    ({"n": F("price")}, "b"),
    ({"n__lt": F("price")}, "ac"),
    ({"price": F("fine")}, "ac"),
    ({"fine__gt": F("price")}, "b"),
    ({"price": F("real")}, "ac"),
    ({"real__gt": F("price")}, "b"),
    ({"price__lt": F("big")}, "a"),
    ({"price__lt": F("wide")}, "ac"),
    ({"wide__gte": F("price")}, "abc"),
    ({"price__gte": F("tiny")}, "ab"),
    ({"price__lt": F("price") * D("1.19")}, "ab"),
    ({"price__lt": F("fine") + F("n")}, "ab"),
    ({"fine__lte": F("n") + D("0.001")}, "b"),
]


@pytest.mark.parametrize(("lookups", "wanted"), COMPARED, ids=range(len(COMPARED)))
def test_a_lookup_compares_in_one_type(rows: None, lookups: dict[str, Any], wanted: str) -> None:
    assert names(**lookups) == wanted
    kept = "".join(sorted(set("abc") - set(wanted)))
    found = Amount.objects.exclude(**lookups).order_by("name")
    assert "".join(row.name for row in found) == kept + "d"


CONDITIONS: list[tuple[Any, str]] = [
    (F("price") > F("n"), "ac"),
    (F("n") + 1 > F("price"), "ab"),
    (F("price") * 2 > F("fine"), "ab"),
    (F("price") / 3 < F("tiny"), "abc"),
    (F("price") > D("3.495"), "ab"),
    (F("price") + 0 > 3, "ab"),
    (Coalesce("price", "n") <= F("fine"), "abc"),
]


@pytest.mark.parametrize(("condition", "wanted"), CONDITIONS, ids=range(len(CONDITIONS)))
def test_a_condition_compares_in_one_type(rows: None, condition: Any, wanted: str) -> None:
    assert names(condition) == wanted


IN: list[tuple[str, Any, str]] = [
    ("price__in", lambda: Amount.objects.values("n"), "b"),
    ("n__in", lambda: Amount.objects.values("price"), "b"),
    ("fine__in", lambda: Amount.objects.values("price"), "ac"),
    ("price__in", lambda: Amount.objects.values("fine"), "ac"),
    ("price__in", lambda: Amount.objects.values("real"), "ac"),
    ("price__in", lambda: Amount.objects.order_by("name").values("n")[:2], "b"),
    ("price__in", lambda: Amount.objects.filter(n=7).values("n").distinct(), "b"),
    (
        "price__in",
        lambda: Amount.objects.values("n").union(Amount.objects.values("tiny")),
        "b",
    ),
    ("n__in", lambda: Amount.objects.values("n").annotate(c=Count("id")).values("c"), ""),
    ("price__in", lambda: Amount.objects.filter(price=F("n")).values("n"), "b"),
]


@pytest.mark.parametrize(("name", "query", "wanted"), IN, ids=range(len(IN)))
def test_in_a_subquery_compares_in_one_type(rows: None, name: str, query: Any, wanted: str) -> None:
    assert names(**{name: query()}) == wanted


def test_a_query_compares_with_the_row_around_it_in_one_type(rows: None) -> None:
    inner = Amount.objects.filter(price=OuterRef("n")).values("name")
    assert values(Subquery(inner)) == [None, "b", None, None]
    dearer = Amount.objects.filter(price__gt=OuterRef("n") + 0).order_by("name").values("price")[:1]
    assert values(Subquery(dearer)) == [D("3.50"), None, D("3.50"), None]
    chosen = Amount.objects.filter(name="a").values(x=Coalesce(OuterRef("n"), F("price")))
    assert values(Subquery(chosen)) == [D(3), D(7), D(-2), D("3.50")]
    assert names(price=Subquery(Amount.objects.filter(name="b").values("n"))) == "b"


ONE_PLACE = fields.DecimalField(max_digits=4, decimal_places=1)
CHOSEN: list[tuple[Expression, list[Any]]] = [
    (Coalesce("price", F("n")), ["3.50", "7.00", "-0.05", None]),
    (Coalesce("price", 0), ["3.50", "7.00", "-0.05", "0"]),
    (Coalesce("price", D("0.005")), ["3.50", "7.00", "-0.05", "0.005"]),
    (Coalesce("price", Value(1)), ["3.50", "7.00", "-0.05", "1"]),
    (Coalesce("n", Value(D("0.5"))), ["3", "7", "-2", "0.5"]),
    (Coalesce(NullIf("price", "n"), "fine"), ["3.50", "7.0001", "-0.05", None]),
    (NullIf("price", Value(7)), ["3.50", None, "-0.05", None]),
    (NullIf("n", "price"), ["3", None, "-2", None]),
    (Case(When(n=3, then=F("n")), default=F("price")), ["3", "7.00", "-0.05", None]),
    (Case(When(n=3, then=F("price")), default=Value(0)), ["3.50", "0", "0", "0"]),
    (Case(When(n=3, then=0), default=F("fine")), ["0", "7.0001", "-0.05", None]),
    (Case(When(n=3, then=F("price"))), ["3.50", None, None, None]),
    (Case(When(n=3, then=D("1.5")), default=1), ["1.5", "1", "1", "1"]),
    (Case(When(n=3, then=None), default=F("price")), [None, "7.00", "-0.05", None]),
    (
        Case(
            When(n=3, then=1),
            default=2,
            output_field=fields.DecimalField(max_digits=4, decimal_places=1),
        ),
        ["1", "2", "2", "2"],
    ),
]


@pytest.mark.parametrize(("expression", "wanted"), CHOSEN, ids=range(len(CHOSEN)))
def test_a_choice_has_one_type(rows: None, expression: Expression, wanted: list[Any]) -> None:
    assert values(expression) == [value if value is None else D(value) for value in wanted]
    assert {type(value) for value in values(expression)} <= {D, type(None)}


def test_the_largest_and_the_smallest_have_one_type(rows: None) -> None:
    assert values(Greatest("price", "n"), n__isnull=False) == [D("3.50"), D(7), D("-0.05")]
    assert values(Least("fine", "n"), n__isnull=False) == [D(3), D(7), D(-2)]
    assert values(Greatest("price", "fine"), n=7) == [D("7.0001")]
    assert values(Greatest("price", "real"), n__isnull=False) == [3.5, 7.25, -0.05]


ASSIGNED: list[tuple[str, Any, list[Any]]] = [
    ("price", Value(7), ["7.00"] * 4),
    ("price", F("n"), ["3", "7", "-2", None]),
    ("price", F("fine"), ["3.50", "7.00", "-0.05", None]),
    ("price", F("rate"), ["0.19", "1.01", "2.50", None]),
    ("price", F("real"), ["3.50", "7.25", "-0.05", None]),
    ("price", Value(1.005), ["1.01"] * 4),
    ("price", Value(D("-0.005")), ["-0.01"] * 4),
    ("price", F("price") / 3, ["1.17", "2.33", "-0.02", None]),
    ("price", F("price") * D("1.19"), ["4.17", "8.33", "-0.06", None]),
    ("price", Coalesce("price", 0), ["3.50", "7.00", "-0.05", "0"]),
    ("fine", F("price"), ["3.50", "7.00", "-0.05", None]),
    ("n", F("price"), [4, 7, 0, None]),
    ("n", F("price") * 10, [35, 70, -1, None]),
    ("n", F("fine"), [4, 7, 0, None]),
    ("n", F("real"), [4, 7, 0, None]),
    ("n", Value(2.5), [3] * 4),
    ("n", Value(-2.5), [-3] * 4),
    ("n", Value(D("0.5")), [1] * 4),
    ("n", F("tiny"), [2, 7, 0, None]),
    ("real", F("price"), [3.5, 7.0, -0.05, None]),
    ("real", F("n"), [3.0, 7.0, -2.0, None]),
    ("price", Value(None), [None] * 4),
    ("price", Subquery(Amount.objects.filter(name="b").values("n")), ["7"] * 4),
]


@pytest.mark.parametrize(("name", "value", "wanted"), ASSIGNED, ids=range(len(ASSIGNED)))
def test_an_update_stores_what_the_column_keeps(
    rows: None, name: str, value: Any, wanted: list[Any]
) -> None:
    Amount.objects.update(**{name: value})
    found = Amount.objects.order_by("name").values_list(name, flat=True)
    assert list(found) == [D(w) if isinstance(w, str) else w for w in wanted]


def test_an_update_takes_a_value_of_the_rows_around_it(rows: None) -> None:
    for amount in Amount.objects.filter(n__gt=0):
        Part.objects.create(amount=amount, price=amount.price or 0, n=amount.n or 0)
    mine = Part.objects.filter(amount=OuterRef("pk"), price__gte=OuterRef("n")).values("n")
    Amount.objects.update(price=Subquery(mine), rate=F("price") / 3)
    found = Amount.objects.order_by("name").values_list("price", "rate")
    assert list(found) == [
        (D(3), D("1.167")),
        (D(7), D("2.333")),
        (None, D("-0.017")),
        (None, None),
    ]


BEYOND: list[tuple[str, Any]] = [
    ("price", Value(10**8)),
    ("price", Value(D("99999999.995"))),
    ("price", Value(1e8)),
    ("price", F("wide")),
    ("price", (F("price") + 1) * 10**9),
    ("rate", F("price") * 100),
    ("tiny", Value(2**15)),
    ("tiny", F("big")),
    ("n", Value(2**31)),
    ("n", F("big") + 0),
    ("n", Value(D(2**31))),
    ("n", Value(2.0**31)),
    ("big", Value(2.0**63)),
    ("big", Value(D(2**63))),
]


@pytest.mark.parametrize(("name", "value"), BEYOND, ids=range(len(BEYOND)))
def test_what_does_not_fit_the_column_is_an_error(rows: None, name: str, value: Any) -> None:
    before = list(Amount.objects.order_by("name").values_list(name, flat=True))
    with pytest.raises(DataError, match=r"number must fit|numeric|out of range|64 bits"):
        Amount.objects.filter(name="a").update(**{name: value})
    assert list(Amount.objects.order_by("name").values_list(name, flat=True)) == before


def _one(query: Any) -> Any:
    return query.get().x


def test_a_decimal_above_18_digits_is_an_error_on_sqlite(rows: None, engine: str) -> None:
    for expression in (F("wide") * 10, F("wide") * F("fine"), (F("wide") + F("n")) * 1000):
        query = Amount.objects.filter(name="a").annotate(x=expression)
        if engine == "sqlite":
            with pytest.raises(DataError, match="A number must fit the range of its type"):
                list(query)
        else:
            assert _one(query) > 10**17
    with one_row(fine=D("1.0000"), wide=D(10**17)):
        query = Amount.objects.filter(name="z").annotate(x=Coalesce(F("wide"), F("fine")))
        if engine == "sqlite":
            with pytest.raises(DataError, match="A number must fit the range of its type"):
                list(query)
        else:
            assert _one(query) == 10**17


def test_decimals_of_18_digits_compare_exactly(rows: None) -> None:
    wide = D(10**18 - 1)
    with one_row(wide=wide, fine=D("1.0000"), big=10**18 - 1, real=1e18):
        assert names(wide=F("big"), name="z") == "z"
        assert names(wide__gt=F("fine"), name="z") == "z"
        assert names(fine__lt=F("wide"), name="z") == "z"
        assert names(fine=F("wide"), name="z") == ""


REFUSED: list[tuple[Any, str]] = [
    (lambda: F("price") % F("real"), "% has no exact result for floats"),
    (lambda: F("price") + F("text"), r"Amount\.text \(text\) cannot be computed with \+"),
    (lambda: Coalesce("price", "text"), "have no type in common"),
    (lambda: Case(When(n=3, then=F("price")), default=F("text")), "have no type in common"),
    (lambda: Greatest("n", "text"), "have no type in common"),
]


@pytest.mark.parametrize(("make", "words"), REFUSED, ids=range(len(REFUSED)))
def test_what_has_no_type_in_common_is_refused(make: Any, words: str) -> None:
    with pytest.raises(FieldError, match=words):
        Amount.objects.values("name").annotate(x=make())


@pytest.mark.parametrize("given", [{"price": F("text")}, {"text": F("price")}, {"text": F("n")}])
def test_an_update_of_another_type_is_refused(empty: Any, given: dict[str, Any]) -> None:
    with pytest.raises(FieldError, match=r"cannot be set to .*: convert it with Cast\(\)"):
        Amount.objects.update(**given)


def test_the_context_of_decimal_does_not_matter(rows: None) -> None:
    with decimal.localcontext(decimal.Context(prec=2)):
        assert values(F("price") * F("fine"), n=7) == [D("49.000700")]
        assert values(F("price") / 3, n=7)[0].as_tuple().exponent == -6
