"""`union`, `intersection` and `difference`: which columns of their parts meet."""

from __future__ import annotations

from typing import Any

import pytest
from orm_models import Author, Country, Post, Profile

from treefold_orm import Count, F, FieldError, Upper

RELATED_IN_TWO_ORDERS = [
    (("author", "editor"), ("editor", "author")),
    (("author__country", "editor"), ("editor", "author", "author__country")),
    (
        ("author__country", "editor", "author__profile"),
        ("author__profile", "author__country", "editor"),
    ),
    (("editor__country", "author__country"), ("author__country", "editor__country")),
]


@pytest.mark.parametrize(("first", "second"), RELATED_IN_TWO_ORDERS)
@pytest.mark.parametrize("loaded", ["all", "only", "defer", "annotate", "prefetch"])
async def test_parts_that_load_relations_in_another_order_keep_each_in_its_place(
    db: Any, half: Any, loaded: str, first: tuple[str, ...], second: tuple[str, ...]
) -> None:
    peru = await half(Country.objects).create(name="Peru")
    ann = await half(Author.objects).create(name="Ann", country=peru)
    bob = await half(Author.objects).create(name="Bob")
    await half(Profile.objects).create(author=bob, site="https://b.example")
    await half(Post.objects).create(title="a", author=ann, editor=bob)
    await half(Post.objects).create(title="b", author=bob, editor=ann)
    await half(Post.objects).create(title="c", author=bob)
    own = {
        "all": Post.objects.all(),
        "only": Post.objects.only("title", "author", "editor", "editor__name", "author__name"),
        "defer": Post.objects.defer("body"),
        "annotate": Post.objects.annotate(n=Count("comments"), up=Upper("title")),
        "prefetch": Post.objects.prefetch_related("author__posts", "tags"),
    }[loaded]
    one, other = own.select_related(*first), own.select_related(*second)

    async def names(query: Any) -> list[tuple[str, str, str | None]]:
        posts = await half.rows(query.order_by("title").raiseload())
        assert await half(query).count() == len(posts)
        return [(p.title, p.author.name, p.editor.name if p.editor else None) for p in posts]

    a, b, c = [("a", "Ann", "Bob"), ("b", "Bob", "Ann"), ("c", "Bob", None)]
    assert await names(one.filter(title="a").union(other.exclude(title="a"))) == [a, b, c]
    assert await names(one.filter(title="a").union(other, one, all=True)) == [a, a, a, b, b, c, c]
    assert await names(one.intersection(other)) == [a, b, c]
    assert await names(one.difference(other.filter(title="b"))) == [a, c]
    part = one.filter(title="c").union(other.filter(title="b"))
    assert await names(other.difference(part)) == [a]


@pytest.mark.parametrize(
    "other",
    [
        lambda: Post.objects.select_related("author").annotate(a=F("title"), b=F("body")),
        lambda: Post.objects.select_related("author").annotate(b=F("title")),
        lambda: Post.objects.select_related("editor").annotate(b=F("title"), a=F("body")),
        lambda: Post.objects.annotate(b=F("title"), a=F("body")),
        lambda: (
            Post.objects.select_related("author").annotate(b=F("title"), a=F("body")).defer("views")
        ),
    ],
)
def test_parts_that_load_something_else_are_refused(db: Any, other: Any) -> None:
    query = Post.objects.select_related("author").annotate(b=F("title"), a=F("body"))
    for combined in (query.union(other()), other().intersection(query)):
        with pytest.raises(FieldError, match="needs the same columns on both sides"):
            combined.explain_sql()


async def test_values_of_parts_meet_by_place_under_the_names_of_the_first(
    db: Any, half: Any
) -> None:
    ann = await half(Author.objects).create(name="Ann")
    await half(Post.objects).create(title="t", body="b", author=ann)
    query = Post.objects.values("title", "body").union(Post.objects.values("body", "title"))
    assert await half.rows(query.order_by("title")) == [
        {"title": "b", "body": "t"},
        {"title": "t", "body": "b"},
    ]
