"""Features together: where joins, annotations, slices, groups and inner queries meet."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Comment, Country, Everything, Person, Post, Stamped, Tag

from treefold_orm import (
    Case,
    Count,
    Exists,
    F,
    Max,
    Model,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Trunc,
    Value,
    When,
    acreate_all,
    create_all,
    fields,
    record_queries,
)


async def library(half: Any) -> dict[str, Any]:
    peru = await half(Country.objects).create(name="Peru")
    ann = await half(Author.objects).create(name="Ann", age=30, country=peru)
    bob = await half(Author.objects).create(name="Bob", age=40)
    posts = await half(Post.objects).bulk_create(
        [Post(title=f"p{i}", views=i, author=ann if i < 4 else bob) for i in range(6)]
    )
    red, blue = await half(Tag.objects).bulk_create([Tag(name="red"), Tag(name="blue")])
    await half(posts[0].tags).add(red, blue)
    await half(posts[5].tags).add(red)
    await half(Comment.objects).bulk_create(
        [Comment(text=f"c{i}", likes=i, post=posts[i % 3]) for i in range(6)]
    )
    return {"ann": ann, "bob": bob, "posts": posts, "red": red, "blue": blue, "peru": peru}


async def test_a_foreign_key_to_a_uuid_key(empty: Any, half: Any) -> None:
    class Box(Model):
        code = fields.UUIDField(primary_key=True, default=uuid.uuid4)

    class Item(Model):
        box = fields.ForeignKey(Box, related_name="items")
        labels = fields.ManyToManyField(Box, related_name="+")

    await half.call(lambda: create_all(Box, Item), lambda: acreate_all(Box, Item))
    box, other = await half(Box.objects).bulk_create([Box(), Box()])
    items = await half(Item.objects).bulk_create([Item(box=box), Item(box=box), Item(box=other)])
    assert await half(Item.objects.filter(box=box)).count() == 2
    assert await half(Item.objects.filter(box__in=[box.code, other.code])).count() == 3
    assert (await half(Item.objects.select_related("box")).get(pk=items[2].pk)).box == other
    boxes = await half.rows(Box.objects.annotate(n=Count("items")).prefetch_related("items"))
    assert {b.code: (b.n, len(list(b.items.all()))) for b in boxes} == {
        box.code: (2, 2),
        other.code: (1, 1),
    }
    await half(items[0].labels).add(box, other)
    assert {b.code for b in await half.rows(items[0].labels.all())} == {box.code, other.code}
    assert await half(Item.objects.filter(labels=box)).count() == 1
    loaded = await half(Item.objects.prefetch_related("labels")).get(pk=items[0].pk)
    assert len(list(loaded.labels.all())) == 2


QUERIES: list[tuple[Callable[[dict[str, Any]], Any], list[Any]]] = [
    (
        lambda f: Post.objects.filter(author_id=f["bob"].pk).values_list("title", flat=True),
        ["p4", "p5"],
    ),
    (
        lambda f: Post.objects.filter(author__id=f["bob"].pk).values_list("title", flat=True),
        ["p4", "p5"],
    ),
    (lambda f: Post.objects.filter(tags=f["red"]).values_list("title", flat=True), ["p0", "p5"]),
    (
        lambda f: Post.objects.filter(tags__in=[f["red"], f["blue"]]).values_list(
            "title", flat=True
        ),
        ["p0", "p5"],
    ),
    (lambda f: Post.objects.filter(tags__id=f["blue"].pk).values_list("title", flat=True), ["p0"]),
    (
        lambda f: Post.objects.exclude(tags=f["red"]).values_list("title", flat=True),
        ["p1", "p2", "p3", "p4"],
    ),
    (
        lambda f: Post.objects.filter(comments__post__author__country=f["peru"]).values_list(
            "title", flat=True
        ),
        ["p0", "p1", "p2"],
    ),
    (
        lambda f: Post.objects.filter(author__country__authors__name="Ann").values_list(
            "title", flat=True
        ),
        ["p0", "p1", "p2", "p3"],
    ),
    (
        lambda f: Post.objects.filter(
            pk__in=Comment.objects.filter(likes__gte=5).values("post")
        ).values_list("title", flat=True),
        ["p2"],
    ),
    (
        lambda f: Post.objects.filter(author__in=Author.objects.filter(age__gt=30)[:1]).values_list(
            "title", flat=True
        ),
        ["p4", "p5"],
    ),
    (
        lambda f: Post.objects.values_list("author", flat=True).distinct().order_by("author"),
        ["ann", "bob"],
    ),
    (
        lambda f: (
            Post.objects.annotate(n=Count("comments"))
            .filter(Q(n=0) | Q(title="p0"))
            .values_list("title", "n")
        ),
        [("p0", 2), ("p3", 0), ("p4", 0), ("p5", 0)],
    ),
    (
        lambda f: (
            Post.objects.annotate(n=Count("comments"))
            .filter(n__gt=0)
            .exclude(tags=None)
            .values_list("title", flat=True)
        ),
        ["p0"],
    ),
    (
        lambda f: (
            Author.objects.values_list("country__name")
            .annotate(n=Count("id"), v=Sum("posts__views"))
            .order_by("country__name")
        ),
        [("Peru", 1, 6), (None, 1, 9)],
    ),
    (
        lambda f: (
            Post.objects.values_list("author__name")
            .annotate(n=Count("id"), top=Max("views"))
            .filter(Q(n__gt=3) | Q(top=5))
            .order_by("author__name")
        ),
        [("Ann", 4, 3), ("Bob", 2, 5)],
    ),
    (
        lambda f: (
            Post.objects.values_list("author__name")
            .annotate(n=Count("id"))
            .filter(n__gt=3, author__age=30)
        ),
        [("Ann", 4)],
    ),
    (
        lambda f: Post.objects.order_by(
            Case(When(views=3, then=Value(0)), default=Value(1)), "title"
        ).values_list("title", flat=True)[:2],
        ["p3", "p0"],
    ),
    (
        lambda f: (
            Post.objects.annotate(
                last=Subquery(
                    Comment.objects.filter(post=OuterRef("pk"))
                    .order_by("-likes")
                    .values("likes")[:1]
                )
            )
            .filter(last__gte=4)
            .values_list("title", "last")
        ),
        [("p1", 4), ("p2", 5)],
    ),
    (
        lambda f: Author.objects.filter(
            Exists(
                Post.objects.filter(
                    Exists(Comment.objects.filter(post=OuterRef("pk"), likes=5)),
                    author=OuterRef("pk"),
                )
            )
        ).values_list("name", flat=True),
        ["Ann"],
    ),
    (
        lambda f: Post.objects.filter(views__gt=F("author__age") - 36).values_list(
            "title", flat=True
        ),
        ["p0", "p1", "p2", "p3", "p5"],
    ),
    (
        lambda f: Post.objects.filter(~Q(author__country__name="Peru")).values_list(
            "title", flat=True
        ),
        ["p4", "p5"],
    ),
    (
        lambda f: Post.objects.filter(~Q(comments__likes__gt=3)).values_list("title", flat=True),
        ["p0", "p3", "p4", "p5"],
    ),
    (
        lambda f: Post.objects.filter(comments__isnull=False, comments__likes__lt=2).values_list(
            "title", flat=True
        ),
        ["p0", "p1"],
    ),
    (
        lambda f: (
            Post.objects.filter(views__in=[1, 2])
            .values_list("title", flat=True)
            .union(Post.objects.filter(views__gte=5).values_list("title", flat=True))
            .order_by("title")
        ),
        ["p1", "p2", "p5"],
    ),
]


@pytest.mark.parametrize(("build", "wanted"), QUERIES, ids=range(len(QUERIES)))
async def test_queries(db: Any, half: Any, build: Any, wanted: list[Any]) -> None:
    facts = await library(half)
    query = build(facts)
    found = [facts_name(facts, row) for row in await half.rows(query)]
    assert sorted(found, key=str) == sorted(wanted, key=str)
    assert await half(query).count() == len(wanted)
    assert await half(query).exists() is bool(wanted)


def facts_name(facts: dict[str, Any], row: Any) -> Any:
    """Keys of authors as their names in this file; everything else as it is."""
    return (
        {facts["ann"].pk: "ann", facts["bob"].pk: "bob"}.get(row, row)
        if isinstance(row, int)
        else row
    )


async def test_annotations_along_with_joined_instances(db: Any, half: Any) -> None:
    await library(half)
    query = Post.objects.select_related("author__country").annotate(
        n=Count("comments"), t=Count("tags")
    )
    with record_queries() as seen:
        rows = await half.rows(query.order_by("title")[:2])
    assert [(p.title, p.author.name, p.author.country.name, p.n, p.t) for p in rows] == [
        ("p0", "Ann", "Peru", 2, 2),
        ("p1", "Ann", "Peru", 2, 0),
    ]
    assert len(seen) == 1


async def test_only_over_a_joined_relation(db: Any, half: Any) -> None:
    await library(half)
    post = await half(Post.objects.select_related("author").only("title", "author__name")).get(
        title="p0"
    )
    assert post.is_loaded("title")
    assert not post.is_loaded("views")
    assert post.author.name == "Ann"
    assert not post.author.is_loaded("age")


async def test_a_page_with_its_relations(db: Any, half: Any) -> None:
    await library(half)
    page = Post.objects.order_by("-views").prefetch_related("comments", "tags", "author")[1:4]
    rows = await half.rows(page)
    assert [(p.title, len(list(p.comments.all())), p.author.name) for p in rows] == [
        ("p4", 0, "Bob"),
        ("p3", 0, "Ann"),
        ("p2", 2, "Ann"),
    ]


async def test_trees_in_one_table(db: Any, half: Any) -> None:
    top = await half(Person.objects).create(name="Top")
    middle = await half(Person.objects).create(name="Middle", boss=top)
    await half(Person.objects).create(name="Low", boss=middle)
    names = Person.objects.filter(boss__boss__name="Top").values_list("name", flat=True)
    assert await half.rows(names) == ["Low"]
    assert await half.rows(
        Person.objects.filter(staff__staff__name="Low").values_list("name", flat=True)
    ) == ["Top"]
    low = await half(Person.objects.select_related("boss__boss")).get(name="Low")
    assert low.boss.boss.name == "Top"
    assert await half(Person.objects.filter(boss__name="Top")).update(name="Changed") == 1


async def test_groups_by_a_truncated_date(db: Any, half: Any) -> None:
    moments = [
        dt.datetime(2026, month, day, tzinfo=dt.UTC) for month, day in ((1, 5), (1, 9), (2, 1))
    ]
    await half(Everything.objects).bulk_create(
        [Everything(moment=moment, integer=3) for moment in moments]
    )
    query = (
        Everything.objects.values(month=Trunc("moment", "month"))
        .annotate(n=Count("id"))
        .order_by("month")
    )
    rows = await half.rows(query)
    assert [(row["month"].month, row["n"]) for row in rows] == [(1, 2), (2, 1)]


async def test_a_random_mix_of_writes_keeps_loaded_rows_in_step(db: Any, half: Any) -> None:
    made = await half(Stamped.objects).create(name="a")
    for name in ("b", "b", "c"):
        made.name = name
        await half(made).save()
        assert (await half(Stamped.objects).get()).name == name
    made.name = "d"
    await half(made).refresh()
    assert made.name == "c"
    made.name = "e"
    await half(made).save(update_fields=["name"])
    assert (await half(Stamped.objects).get()).name == "e"
