"""Aggregates over two relations to many rows, with a filter over both."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Half
from orm_models import Author, Comment, Post, Tag

from treefold_orm import Count, Max, Q, Sum

LIKED = Q(posts__comments__likes__gt=4)
ODD = Q(posts__tags__name__endswith="9") | Q(posts__tags__name__endswith="5")
CASES: list[tuple[str, Any, Any]] = [
    ("count", Count("posts__comments", filter=LIKED), 3),
    ("distinct", Count("posts__comments__likes", filter=LIKED, distinct=True), 3),
    ("sum", Sum("posts__comments__likes", filter=LIKED), 21),
    ("max", Max("posts__comments__likes", filter=~LIKED), 2),
    ("many-to-many", Count("posts__tags", filter=ODD), 2),
    ("nothing", Sum("posts__comments__likes", filter=Q(posts__comments__likes=3)), None),
    ("own row as well", Count("posts__comments", filter=LIKED & Q(age=20, posts__views=1)), 3),
    ("first relation", Count("posts", filter=Q(posts__comments__likes__gt=7)), 1),
    ("other relation", Count("posts__tags", filter=Q(posts__comments__likes__gt=7)), 3),
]


async def fill() -> None:
    author = await Author.objects.acreate(name="Ann", age=20)
    await Author.objects.acreate(name="Bob", age=30)
    for likes in ([1, 5, 9], [7, 2]):
        post = await Post.objects.acreate(title="p", author=author, views=1)
        for n in likes:
            comment = await Comment.objects.acreate(post=post, text="c", likes=n)
            await post.tags.aadd(await Tag.objects.acreate(name=f"t{comment.id}-{n}"))


@pytest.mark.parametrize(("aggregate", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
async def test_a_filter_speaks_of_the_aggregated_rows(
    db: Any, half: Half, aggregate: Any, wanted: Any
) -> None:
    await fill()
    rows = Author.objects.annotate(n=aggregate).order_by("name")
    assert (await half.rows(rows))[0].n == wanted
    assert (await half(rows).get(name="Ann")).n == wanted
    assert (await half.rows(rows[:1]))[0].n == wanted
    assert (await half(Author.objects).aggregate(n=aggregate))["n"] == wanted
    groups = Author.objects.values("age").annotate(n=aggregate).order_by("age")
    assert (await half.rows(groups))[0]["n"] == wanted
