"""`OuterRef(OuterRef("x"))`: a field of the query around the enclosing one."""

from __future__ import annotations

from typing import Any, cast

import pytest
from orm_composite import Line, Tenant
from orm_models import Author, Comment, Country, Post

from treefold_orm import (
    Coalesce,
    Count,
    Exists,
    F,
    FieldError,
    OuterRef,
    Q,
    Subquery,
    TaintedInput,
    Value,
    acreate_all,
    create_all,
    taint,
)


async def filled(half: Any) -> None:
    """Ann is 5 and in Peru, Bob is 7; each has two posts, and comments on the first one."""
    peru = await half(Country.objects).create(name="Peru")
    for name, age, country in (("Ann", 5, peru), ("Bob", 7, None)):
        author = await half(Author.objects).create(name=name, age=age, country=country)
        for number in range(2):
            title = f"{name}{number}"
            post = await half(Post.objects).create(title=title, author=author, views=number)
            for likes in range(2 - 2 * number):
                text = "Ann" if likes else "Peru"
                await half(Comment.objects).create(post=post, text=text, likes=likes + 5)


def posts_with(**lookups: Any) -> Any:
    comments = Comment.objects.filter(post=OuterRef("pk"), **lookups)
    return Post.objects.filter(Exists(comments), author=OuterRef("pk"))


def names_by(*inner: Any, **lookups: Any) -> Any:
    """Authors who have a post that has a comment of these conditions."""
    comments = Comment.objects.filter(*inner, post=OuterRef("pk"), **lookups)
    posts = Post.objects.filter(Exists(comments), author=OuterRef("pk"))
    return Author.objects.filter(Exists(posts)).order_by("name").values_list("name", flat=True)


CASES = [
    (lambda: names_by(text=OuterRef(OuterRef("name"))), ["Ann"]),
    (lambda: names_by(likes=OuterRef(OuterRef("age"))), ["Ann"]),
    (lambda: names_by(likes__lt=OuterRef(OuterRef("age"))), ["Bob"]),
    (lambda: names_by(likes=OuterRef(OuterRef("age")) - 1), ["Bob"]),
    (lambda: names_by(likes__in=[OuterRef(OuterRef("age")), 100]), ["Ann"]),
    (lambda: names_by(text=OuterRef(OuterRef("country__name"))), ["Ann"]),
    (lambda: names_by(~Q(likes=OuterRef(OuterRef("age")))), ["Ann", "Bob"]),
    (lambda: names_by(Q(likes=OuterRef(OuterRef("age"))) | Q(text="nothing")), ["Ann"]),
    (lambda: names_by(likes__gt=F("post__views") + OuterRef(OuterRef("age"))), ["Ann"]),
    (
        lambda: (
            Author.objects.annotate(next=F("age") + 1)
            .filter(Exists(posts_with(likes=OuterRef(OuterRef("next")))))
            .values_list("name", flat=True)
        ),
        ["Ann"],
    ),
    (
        lambda: Author.objects.exclude(
            pk__in=Post.objects.filter(
                pk__in=Comment.objects.filter(text=OuterRef(OuterRef("name"))).values("post")
            ).values("author")
        ).values_list("name", flat=True),
        ["Bob"],
    ),
]


@pytest.mark.parametrize(("build", "expected"), CASES, ids=range(len(CASES)))
async def test_inner_queries_look_two_levels_out(
    db: Any, half: Any, build: Any, expected: list[str]
) -> None:
    await filled(half)
    assert await half.rows(build()) == expected
    assert await half(build()).count() == len(expected)


def likes_of_first(value: Any) -> Any:
    """Authors with a value that a query two levels further in computes of them."""
    comments = Comment.objects.filter(post=OuterRef("pk")).order_by("likes")
    inner = Subquery(comments.annotate(found=value).values("found")[:1])
    posts = Post.objects.filter(author=OuterRef("pk")).order_by("title")
    return Subquery(posts.annotate(found=inner).values("found")[:1])


VALUES = [
    (OuterRef(OuterRef("age")), [5, 7]),
    (OuterRef(OuterRef("age")) * 2 + F("likes"), [15, 19]),
    (Coalesce(OuterRef(OuterRef("country__name")), Value("none")), ["Peru", "none"]),
    (OuterRef(OuterRef("name")), ["Ann", "Bob"]),
    (OuterRef("views") + OuterRef(OuterRef("age")), [5, 7]),
]


@pytest.mark.parametrize(("value", "expected"), VALUES, ids=range(len(VALUES)))
async def test_values_have_the_type_of_the_outer_field(
    db: Any, half: Any, value: Any, expected: list[Any]
) -> None:
    await filled(half)
    authors = Author.objects.order_by("name")
    plain = await half.rows(authors.annotate(n=likes_of_first(value)))
    assert [author.n for author in plain] == expected
    if isinstance(expected[0], int):
        more = await half.rows(authors.annotate(n=Coalesce(likes_of_first(value), 0) + F("age")))
        assert [author.n for author in more] == [expected[0] + 5, expected[1] + 7]
        chosen = await half.rows(authors.filter(age__lte=likes_of_first(value)))
        assert [author.name for author in chosen] == ["Ann", "Bob"]


async def test_three_levels_and_unions(db: Any, half: Any) -> None:
    await filled(half)
    texts = Comment.objects.filter(post=OuterRef("pk"), text=OuterRef(OuterRef(OuterRef("name"))))
    posts = Post.objects.filter(Exists(texts), author=OuterRef("pk"))
    authors = Author.objects.filter(Exists(posts), country=OuterRef("pk"))
    countries = Country.objects.filter(Exists(authors))
    assert [c.name for c in await half.rows(countries)] == ["Peru"]
    one = Comment.objects.filter(text=OuterRef(OuterRef("name"))).values("post")
    other = Comment.objects.filter(likes=OuterRef(OuterRef("age"))).values("post")
    wanted = Post.objects.filter(pk__in=one.union(other), author=OuterRef("pk"))
    assert [a.name for a in await half.rows(Author.objects.filter(Exists(wanted)))] == ["Ann"]


async def test_one_inner_query_enters_several(db: Any, half: Any) -> None:
    await filled(half)
    comments = Comment.objects.filter(post=OuterRef("pk"), text=OuterRef(OuterRef("name")))
    posts = Post.objects.filter(Exists(comments))
    for _ in range(2):
        mine = posts.filter(author=OuterRef("pk"))
        assert [a.name for a in await half.rows(Author.objects.filter(Exists(mine)))] == ["Ann"]
        theirs = posts.filter(author__country=OuterRef("pk"))
        assert [c.name for c in await half.rows(Country.objects.filter(Exists(theirs)))] == ["Peru"]


async def test_rows_are_changed_by_outer_fields(db: Any, half: Any) -> None:
    await filled(half)
    comments = Comment.objects.filter(post=OuterRef("pk"), text=OuterRef(OuterRef("name")))
    found = Exists(Post.objects.filter(Exists(comments), author=OuterRef("pk")))
    assert await half(Author.objects.filter(found)).update(age=F("age") + 10) == 1
    value = likes_of_first(OuterRef(OuterRef("age")) + F("likes"))
    assert await half(Author.objects.filter(name="Ann")).update(age=value) == 1
    assert await half(Author.objects.filter(age=20)).count() == 1
    assert await half(Post.objects.filter(author__name="Ann")).delete() == 2
    assert await half(Author.objects.filter(found)).delete() == 0


async def test_keys_of_several_columns_are_compared(empty: Any, half: Any) -> None:
    await half.call(lambda: create_all(Tenant, Line), lambda: acreate_all(Tenant, Line))
    tenant = await half(Tenant.objects).create(name="t")
    await half(Line.objects).create(tenant=tenant, number=1)
    inner = Line.objects.filter(pk=OuterRef(OuterRef("pk")))
    middle = Tenant.objects.filter(Exists(inner), pk=OuterRef("tenant"))
    assert await half(Line.objects.filter(Exists(middle))).count() == 1


def entered(value: Any) -> Any:
    comments = Comment.objects.filter(post=OuterRef("pk"), text=value)
    return Author.objects.filter(Exists(Post.objects.filter(Exists(comments))))


def grouped(value: Any) -> Any:
    comments = Comment.objects.filter(post=OuterRef("pk")).annotate(found=value)
    posts = Post.objects.annotate(found=Subquery(comments.values("found")[:1]))
    authors = Author.objects.values("name").annotate(n=Count("posts"))
    return authors.order_by(Subquery(posts.values("found")[:1]))


def misplaced() -> Any:
    return Author.objects.filter(Exists(Post.objects.filter(title=OuterRef(OuterRef("name")))))


REFUSED = [
    (lambda: OuterRef(cast("Any", 3)), "OuterRef takes a name or an OuterRef, got int"),
    (lambda: OuterRef(cast("Any", F("x"))), "OuterRef takes a name or an OuterRef, got F"),
    (lambda: OuterRef(cast("Any", None)), "OuterRef takes a name or an OuterRef, got NoneType"),
    (lambda: entered(OuterRef(OuterRef("nothing"))), "Author has no field 'nothing'"),
    (lambda: entered(OuterRef(OuterRef("password"))), "password"),
    (
        lambda: entered(OuterRef(OuterRef("age__gt"))).explain_sql(),
        r"OuterRef\(OuterRef\('age__gt'\)\) must name",
    ),
    (lambda: entered(OuterRef(OuterRef("posts__title"))).explain_sql(), "leads to many rows"),
    (
        lambda: misplaced().explain_sql(),
        r"OuterRef\(OuterRef\('name'\)\) stands outside of Subquery and Exists",
    ),
    (lambda: grouped(OuterRef(OuterRef("age"))).explain_sql(), "'age'"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_no_query_has_is_refused(db: Any, build: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        build()


def test_names_of_a_request_are_refused(db: Any) -> None:
    name: Any = next(iter(taint({"name": 1})))
    with pytest.raises(TaintedInput):
        OuterRef(OuterRef(name))
