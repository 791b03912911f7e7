"""`values(title=F("body"))`: rows whose columns have the names of fields."""

from __future__ import annotations

from typing import Any, cast

import pytest
from orm_models import Author, Post

from treefold_orm import Count, F, FieldError, Lower, OuterRef, Q, Subquery, Upper, Value


async def filled(half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann", age=5)
    bob = await half(Author.objects).create(name="Bob", age=7)
    for title, body, views, author in (("a", "z", 1, ann), ("b", "y", 2, ann), ("c", "y", 3, bob)):
        await half(Post.objects).create(title=title, body=body, views=views, author=author)


POSTS = Post.objects.order_by("id")
CASES: list[tuple[Any, Any]] = [
    (lambda: POSTS.values(title=F("body")), [{"title": t} for t in "zyy"]),
    (
        lambda: POSTS.values(title=F("body"), body=F("title"))[:1],
        [{"title": "z", "body": "a"}],
    ),
    (
        lambda: POSTS.values("views", author=F("author__name"), title=Upper("title"))[1:2],
        [{"views": 2, "author": "Ann", "title": "B"}],
    ),
    (lambda: POSTS.values(author_id=F("author__age"))[:1], [{"author_id": 5}]),
    (lambda: POSTS.values(views=F("views") + 10, more=F("views"))[:1], [{"views": 11, "more": 1}]),
    (lambda: POSTS.values(more=F("views") + 1, views=F("more") * 2)[:1], [{"more": 2, "views": 4}]),
    (lambda: POSTS.values(views=Value("text"))[:1], [{"views": "text"}]),
    (lambda: POSTS.values(views=Q(views__gt=1))[:2], [{"views": False}, {"views": True}]),
    (
        lambda: Post.objects.values(title=F("body")).order_by("title", "id"),
        [{"title": t} for t in "yyz"],
    ),
    (lambda: POSTS.values(title=F("body")).filter(title="z"), [{"title": "z"}]),
    (lambda: POSTS.values(title=F("body")).filter(title__gt="y"), [{"title": "z"}]),
    (lambda: POSTS.values(title=F("body")).filter(Q(title="a")), []),
    (lambda: POSTS.values(title=F("body")).exclude(title="z"), [{"title": "y"}] * 2),
    (lambda: POSTS.values(title=F("body")).filter(Post.title == "c"), [{"title": "y"}]),
    (
        lambda: Post.objects.values(title=F("body")).distinct().order_by("-title"),
        [{"title": "z"}, {"title": "y"}],
    ),
    (
        lambda: Post.objects.values(title=F("body")).annotate(n=Count("id")).order_by("title"),
        [{"title": "y", "n": 2}, {"title": "z", "n": 1}],
    ),
    (
        lambda: (
            Post.objects.values(title=Lower("author__name"))
            .annotate(views=Count("id"))
            .order_by("title")
        ),
        None,
    ),
    (
        lambda: (
            Author.objects.order_by("name")
            .annotate(
                best=Subquery(
                    Post.objects.filter(author=OuterRef("pk"))
                    .order_by("-views")
                    .values(title=F("body"))[:1]
                )
            )
            .values(name=F("best"))
        ),
        [{"name": "y"}, {"name": "y"}],
    ),
]


@pytest.mark.parametrize(("build", "expected"), CASES, ids=range(len(CASES)))
async def test_values_may_have_the_name_of_a_field(
    db: Any, half: Any, build: Any, expected: Any
) -> None:
    await filled(half)
    if expected is None:  # annotate() refuses what values() may do
        with pytest.raises(FieldError, match="'views' cannot name an annotation: the model has"):
            build()
        return
    assert await half.rows(build()) == expected
    assert await half(build()).count() == len(expected)


async def test_rows_of_unions_and_lists_have_the_names(db: Any, half: Any) -> None:
    await filled(half)
    one = Post.objects.filter(title="a").values(title=F("body"))
    other = Author.objects.filter(name="Bob").values(name=F("age"), title=F("name"))
    assert await half.rows(one.union(Post.objects.filter(title="b").values(title=F("body")))) in (
        [{"title": "z"}, {"title": "y"}],
        [{"title": "y"}, {"title": "z"}],
    )
    assert await half.rows(other) == [{"name": 7, "title": "Bob"}]
    assert await half.rows(one.values_list("title", flat=True)) == ["z"]


REFUSED = [
    (lambda: Post.objects.values("title", title=F("body")), "two columns the name 'title'"),
    (lambda: Post.objects.values(pk=F("views")), "'pk' cannot name an annotation"),
    (lambda: Author.objects.values(posts=Count("posts")), "'posts' cannot name an annotation"),
    (lambda: Post.objects.values(save=F("views")), "'save' cannot name an annotation"),
    (lambda: Author.objects.values(name=F("password")), "password"),
    (lambda: Post.objects.values(title=cast("Any", "body")), "takes an expression: wrap a"),
    (lambda: Post.objects.annotate(title=F("body")), "the model has that name already"),
    (lambda: Post.objects.alias(title=F("body")), "the model has that name already"),
    (lambda: Post.objects.annotate(author=F("author__name")), "the model has that name already"),
    (
        lambda: Post.objects.values(title=F("body")).annotate(title=F("views")),
        "'title' cannot name an annotation",
    ),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_names_that_stay_taken(db: Any, build: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        build()
