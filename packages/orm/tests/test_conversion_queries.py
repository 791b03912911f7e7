"""Columns of several queries in one type: set operations, joins of CTEs, carried values, groups."""

from __future__ import annotations

from typing import Any

import pytest
from orm_amounts import Amount, D, Part
from orm_models import Color, Person

from treefold_orm import (
    CTE,
    Coalesce,
    Count,
    F,
    FieldError,
    Model,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    create_all,
    fields,
)


class Step(Model):
    """One step of a tree, with values of several types."""

    color = fields.EnumField(Color)
    char = fields.CharField(max_length=9)
    small = fields.SmallIntegerField()
    big = fields.BigIntegerField()
    up = fields.ForeignKey("self", null=True, related_name="down")


def flat(name: str, **lookups: Any) -> Any:
    return Amount.objects.filter(**lookups).values_list(name, flat=True)


def test_a_union_has_one_type_for_each_column(rows: None) -> None:
    found = list(flat("n", n=7).union(flat("fine", n=7)))
    assert sorted(found) == [D(7), D("7.0001")]
    assert {type(value) for value in found} == {D}
    assert list(flat("price", n=7).union(flat("n", n=7))) == [D(7)]
    assert len(list(flat("price", n=7).union(flat("n", n=7), all=True))) == 2
    assert sorted(flat("price", n=3).union(flat("n", n=7), flat("real", n=7))) == [3.5, 7.0, 7.25]


def test_an_intersection_and_a_difference_compare_in_one_type(rows: None) -> None:
    whole = flat("price", price__isnull=False)
    assert list(whole.intersection(flat("n"))) == [D(7)]
    assert sorted(whole.difference(flat("n"))) == [D("-0.05"), D("3.50")]
    assert sorted(whole.difference(flat("fine"))) == [D("7.00")]


def test_combined_queries_are_ordered_counted_and_nested(rows: None) -> None:
    both = Amount.objects.values("price", "name").union(Amount.objects.values("n", "text"))
    assert both.count() == 8
    ordered = [row["price"] for row in both.order_by("price")]
    assert ordered[:6] == [D(-2), D("-0.05"), D(3), D("3.50"), D(7), D(7)]
    inner = flat("price").union(flat("n").union(flat("fine")))
    assert sorted(v for v in inner if v is not None)[-2:] == [D(7), D("7.0001")]
    assert Amount.objects.filter(fine__in=flat("price").union(flat("n"))).count() == 2


def test_annotations_of_combined_instances_have_one_type(rows: None) -> None:
    first = Amount.objects.filter(n=3).annotate(x=F("n"))
    second = Amount.objects.filter(n=7).annotate(x=F("fine"))
    query: Any = first.union(second).order_by("name")
    assert [row.x for row in query] == [D(3), D("7.0001")]


def test_groups_of_one_part_are_converted_as_a_whole(rows: None) -> None:
    Part.objects.create(amount=Amount.objects.get(n=3), price=D("1.25"), n=2)
    sums = Part.objects.values("n").annotate(s=Sum("price")).values_list("s", flat=True)
    assert sorted(sums.union(flat("n", n=3))) == [D("1.25"), D(3)]


def test_columns_without_a_type_in_common_are_refused_at_once(rows: None) -> None:
    with pytest.raises(FieldError, match="have no type in common"):
        flat("price").union(flat("text"))


def test_a_cte_is_joined_in_one_type(rows: None) -> None:
    prices = CTE(Amount.objects.filter(n__isnull=False).values("price", label=F("name")))
    joined: Any = Amount.objects.join(prices, price="n").order_by("name")
    assert [(row.name, row.label) for row in joined] == [("b", "b")]
    fine = CTE(Amount.objects.values("fine", label=F("name")))
    joined = Amount.objects.join(fine, fine="price").order_by("name")
    assert [(row.name, row.label) for row in joined] == [("a", "a"), ("c", "c")]
    left: Any = Amount.objects.left_join(fine, fine=F("n") + Value(D("0.0001"))).order_by("name")
    assert [row.label for row in left] == [None, "b", None, None]


def test_a_cte_of_a_union_has_the_type_of_the_union(rows: None) -> None:
    both = CTE(Amount.objects.values("n", "name").union(Amount.objects.values("fine", "name")))
    found = both.objects.filter(n__gt=D("3.2")).order_by("n")
    assert [row["n"] for row in found] == [D("3.5"), D(7), D("7.0001")]
    wanted = Amount.objects.filter(n__in=both.objects.values("n")).order_by("name")
    assert [row.name for row in wanted] == ["a", "b", "c"]


def test_a_carried_value_starts_and_goes_on_in_one_type(empty: Any) -> None:
    create_all(Person)
    top = Person.objects.create(name="top")
    middle = Person.objects.create(name="middle", boss=top)
    Person.objects.create(name="low", boss=middle)
    tree = CTE.recursive(
        Person.objects.filter(name="top"),
        "staff",
        carry={"share": (Value(1), F("share") / Value(D("3"))), "n": (Value(0), F("n") + 1)},
    )
    query: Any = tree.objects.order_by("n")
    assert [(row.name, row.n, row.share) for row in query] == [
        ("top", 0, D(1)),
        ("middle", 1, D("0.333333")),
        ("low", 2, D("0.111111")),
    ]
    with pytest.raises(FieldError, match="goes on as another type at each step"):
        CTE.recursive(
            Person.objects.all(), "staff", carry={"p": (Value(D("1.1")), F("p") * Value(D("1.1")))}
        )


def test_a_carried_value_takes_the_wider_type_of_start_and_step(empty: Any) -> None:
    create_all(Step)
    first = Step.objects.create(color=Color.RED, char="x", small=1, big=2**40)
    Step.objects.create(color=Color.BLUE, char="y", small=2, big=2**41, up=first)
    tree = CTE.recursive(
        Step.objects.filter(pk=first.pk),
        "down",
        carry={"a": ("color", "char"), "b": ("small", F("big") + F("b"))},
    )
    query: Any = tree.objects.order_by("small")
    assert [(row.a, row.b) for row in query] == [("red", 1), ("y", 2**41 + 1)]


def test_a_group_compares_its_results_in_one_type(rows: None) -> None:
    a, b = Amount.objects.filter(n__gt=0).order_by("name")
    for amount, price in ((a, "1.50"), (a, "2.00"), (b, "7.00")):
        Part.objects.create(amount=amount, price=D(price), n=1)
    groups = Part.objects.values("amount__name", "amount__n").annotate(
        total=Sum("price"), rows=Count("id")
    )
    assert list(groups.filter(total=F("amount__n")).values_list("amount__name", flat=True)) == ["b"]
    dear = groups.filter(total__gt=F("rows")).order_by("amount__name")
    assert [row["rows"] for row in dear] == [2, 1]
    assert groups.filter(Q(total__gt=D("3.4999"))).count() == 2
    owner = Amount.objects.filter(fine=OuterRef("price")).values("name")
    assert Part.objects.annotate(x=Subquery(owner)).filter(x__isnull=False).count() == 0


def test_a_subquery_of_a_choice_knows_its_type(rows: None) -> None:
    inner = Amount.objects.filter(n=7).values(x=Coalesce("n", OuterRef("price")))
    query: Any = Amount.objects.annotate(x=Subquery(inner)).order_by("name")
    assert [row.x for row in query] == [D(7)] * 4
    assert [row.name for row in query.filter(x=F("price"))] == ["b"]
    assert [row.name for row in query.filter(x__gt=D("6.999"))] == ["a", "b", "c", "d"]
