"""FilterSet, and the limits on what a query may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from orm_models import Author, Everything, Order, Post, Tag

from treefold_orm import (
    F,
    FieldError,
    FieldValueError,
    FilterSet,
    Q,
    TaintedInput,
    Value,
    raw,
    taint,
)


class PostFilter(FilterSet):
    """What a request may ask of posts."""

    model = Post
    fields = {  # noqa: RUF012 - read-only by contract
        "title": ["exact", "icontains"],
        "views": ["exact", "gte", "in", "isnull"],
        "author__name": ["exact"],
    }
    ordering = ("title", "views")
    max_page_size = 20
    max_list = 3


async def test_a_filter_set_applies_what_is_declared(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    await half(Post.objects).bulk_create(
        [Post(title=f"p{i:02}", views=i, author=ann) for i in range(30)]
    )

    async def ask(**data: Any) -> list[str]:
        return [p.title for p in await half.rows(PostFilter(taint(data)).apply())]

    assert await ask(title="p05") == ["p05"]
    assert await ask(views__in="1,2", order="-title") == ["p02", "p01"]
    assert await ask(views__gte="28", author__name="Ann", order="views") == ["p28", "p29"]
    assert await ask(order="title", page="2", page_size="10") == [f"p{i:02}" for i in range(10, 20)]
    assert await ask(views__isnull="true") == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"title__startswith": "a"}, "is not a parameter of PostFilter"),
        ({"views": "x"}, "takes a whole number"),
        ({"views": "9" * 30}, "takes a whole number"),
        ({"views": ["1", "2"]}, "is given more than once"),
        ({"views__in": "1,2,3,4"}, "takes at most 3 values"),
        ({"views__isnull": "perhaps"}, "takes true or false"),
        ({"order": "id"}, "'id' cannot order this: use title, views"),
        ({"order": "--title"}, "cannot order this"),
        ({"page": "0"}, "takes a whole number of at least 1"),
        ({"page": "x"}, "takes a whole number of at least 1"),
        ({"page_size": "21"}, "is at most 20"),
        ({"title": "a\0"}, "contains a NUL"),
    ],
)
def test_a_filter_set_refuses_what_is_not(data: dict[str, Any], message: str) -> None:
    with pytest.raises((FieldError, FieldValueError), match=message):
        PostFilter(taint(data)).apply()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"fields": {"nothing": ["exact"]}}, "Post has no field 'nothing'"),
        ({"fields": {"author__password": ["exact"]}}, "'author__password__exact' leads to a sens"),
        (
            {"fields": {"title": "exact"}},
            r"Wrong.fields\['title'\] takes a list of lookups, not one",
        ),
        ({"ordering": ("nothing",)}, "Post has no field 'nothing'"),
        ({"fields": {"title": ["near"]}}, "Post has no lookup 'near' for 'title'"),
    ],
)
def test_a_filter_set_is_checked_when_it_is_declared(
    attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(FieldError, match=message):
        type("Wrong", (FilterSet,), {"model": Post, **attributes})


# -- limits ---------------------------------------------------------------------------------------


def test_conditions_nest_only_so_deep() -> None:
    condition: Any = Q(name="x")
    for _ in range(70):
        condition = ~(condition | Q(name="y"))
    with pytest.raises(FieldError, match="nested more than 64 levels deep"):
        Author.objects.filter(condition)
    value: Any = F("age")
    for _ in range(70):
        value = value + 1
    with pytest.raises(FieldError, match="nested more than 64 levels deep"):
        Author.objects.annotate(x=value)


def test_lookups_reach_only_so_far() -> None:
    with pytest.raises(FieldError, match="more than 16 relations"):
        Author.objects.filter(**{"posts__author__" * 9 + "name": "x"})


def test_caches_stay_bounded(db: Any) -> None:
    for number in range(3000):
        Everything.objects.filter(**{f"data__k{number}": 1})
    assert len(Everything._meta.lookups) < 2100
    from treefold_orm._decode.plan import MAX_PLANS, Plan, PlanCache

    cache = PlanCache()
    for number in range(MAX_PLANS + 10):
        cache.keep_plan(number, Plan("", None))
    assert len(cache) == MAX_PLANS
    assert 0 not in cache


def test_values_never_stand_in_the_text(db: Any) -> None:
    marker = "hunter2 marker"
    query = (
        Post.objects.filter(title=marker)
        .annotate(x=Value(marker))
        .filter(Q(body__contains=marker) | Q(title__in=[marker]))
    )
    assert marker not in query.explain_sql()
    with pytest.raises(TaintedInput, match="comes from a request"):
        raw(next(iter(taint({"SELECT 1": 1}))))
    assert (
        Order.objects.filter(number=1).explain_sql() == Order.objects.filter(number=2).explain_sql()
    )
    assert (
        Tag.objects.filter(pk__in=[1]).explain_sql()
        == Tag.objects.filter(pk__in=[1, 2, 3]).explain_sql()
    )
