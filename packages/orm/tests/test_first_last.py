"""`first()` and `last()` choose the same row whatever was updated meanwhile: there is an order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Country, Post, Tag

from treefold_orm import CTE, Count, F, FieldError

FORMS: dict[str, tuple[Callable[[], Any], Any, Any]] = {
    "values": (lambda: Tag.objects.values("name"), {"name": "c"}, {"name": "b"}),
    "values_list": (lambda: Tag.objects.values_list("name"), ("c",), ("b",)),
    "flat": (lambda: Tag.objects.values_list("name", flat=True), "c", "b"),
    "named": (lambda: Tag.objects.values_list("name", named=True), ("c",), ("b",)),
    "filtered": (lambda: Tag.objects.filter(name__gt="a").values("name"), {"name": "c"}, None),
    "an expression": (lambda: Tag.objects.values(n=F("name")), {"n": "c"}, {"n": "b"}),
    "distinct values": (
        lambda: Tag.objects.values("name").distinct(),
        {"name": "a"},
        {"name": "c"},
    ),
    "distinct rows": (lambda: Tag.objects.distinct().values_list("name", flat=True), "a", "c"),
    "a union": (
        lambda: Tag.objects.values("name").union(Country.objects.values("name")),
        {"name": "a"},
        None,
    ),
    "a cte": (lambda: CTE(Tag.objects.values("name")).objects, {"name": "a"}, {"name": "c"}),
    "an order": (lambda: Tag.objects.values_list("name", flat=True).order_by("name"), "a", "c"),
    "no order": (lambda: Tag.objects.order_by("name").order_by().values_list("name"), ("c",), None),
}


async def fill(half: Any) -> None:
    for name in "cab":
        await half(Tag.objects).create(name=name)


@pytest.mark.parametrize("name", FORMS)
async def test_rows_of_values_come_in_an_order(db: Any, half: Any, name: str) -> None:
    await fill(half)
    build, first, last = FORMS[name]
    for _ in range(3):
        # an update puts the row behind all others on PostgreSQL
        await half(Tag.objects.filter(name="c")).update(name="c")
        assert await half(build()).first() == first
        if last is not None:
            assert await half(build()).last() == last


async def test_the_order_of_the_model_holds_for_values(db: Any, half: Any) -> None:
    for name in ("Cleo", "Ann", "Bob"):
        await half(Author.objects).create(name=name)
    for query in (Author.objects.values("name"), Author.objects.distinct().values("name")):
        assert await half(query).first() == {"name": "Ann"}
        assert await half(query).last() == {"name": "Cleo"}
    assert (await half(Author.objects.distinct()).first()).name == "Ann"


async def test_groups_without_an_order_are_refused(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    await half(Post.objects).create(title="p", author=ann)
    groups = Post.objects.values("author").annotate(n=Count("*"))
    for call in ("first", "last"):
        with pytest.raises(FieldError, match=rf"{call}\(\) cannot choose among groups"):
            await getattr(half(groups), call)()
    assert await half(groups.order_by("author")).first() == {"author": ann.pk, "n": 1}
    assert await half(groups.order_by("-n")).last() == {"author": ann.pk, "n": 1}
