"""CTEs: queries with a name, joined to others and selected from, and what they refuse."""

from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st
from orm_library import library
from orm_models import Author, Country, Post

from treefold_orm import (
    CTE,
    Avg,
    BaseQuery,
    Count,
    Exists,
    F,
    FieldError,
    Max,
    OuterRef,
    Q,
    Rank,
    Subquery,
    Sum,
    TaintedInput,
    Value,
    Window,
    any_of,
    taint,
    transaction,
)


def totals(**conditions: Any) -> CTE[Post, dict[str, Any]]:
    """Posts and views by author."""
    posts = Post.objects.filter(**conditions)
    return CTE(posts.values("author").annotate(n=Count("id"), seen=Sum("views")))


async def test_a_joined_cte_adds_its_columns(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.join(totals(), author="pk").order_by("-n")
    assert [(a.name, a.n, a.seen) for a in await half.rows(query)] == [
        ("Ann", 3, 21),
        ("Bob", 1, 5),
    ]
    assert await half(query).count() == 2
    assert await half(query).exists()
    assert await half(query).aggregate(most=Max("n"), all=Sum("seen")) == {"most": 3, "all": 26}
    assert (await half(query).first()).name == "Ann"
    assert (await half(query).get(n=1)).name == "Bob"
    assert [a.name for a in await half.rows(query[1:2])] == ["Bob"]
    assert [a.name for a in await half.iterate(query, 1)] == ["Ann", "Bob"]
    assert await half.rows(query.values_list("name", "seen")) == [("Ann", 21), ("Bob", 5)]
    assert await half.rows(query.values("n", twice=F("n") * 2)) == [
        {"n": 3, "twice": 6},
        {"n": 1, "twice": 2},
    ]


async def test_the_columns_of_a_joined_cte_filter_and_order(db: Any, half: Any) -> None:
    await library(half)
    joined = Author.objects.join(totals(), author="pk")
    assert [a.name for a in await half.rows(joined.filter(n__gt=1))] == ["Ann"]
    assert [a.name for a in await half.rows(joined.exclude(n__gt=1))] == ["Bob"]
    assert [a.name for a in await half.rows(joined.filter(Q(seen=5) | Q(n__in=[7, 8])))] == ["Bob"]
    assert [a.name for a in await half.rows(joined.order_by("seen"))] == ["Bob", "Ann"]
    ranked = joined.annotate(place=Window(Rank(), order_by=["-seen"])).filter(place=1)
    assert [a.name for a in await half.rows(ranked)] == ["Ann"]
    grouped = joined.values("age").annotate(s=Sum("seen")).order_by("age")
    assert await half.rows(grouped) == [{"age": 30, "s": 21}, {"age": 50, "s": 5}]
    distinct = joined.values("age").annotate(
        tags=Count("posts__tags", distinct=True), s=Sum("seen")
    )
    assert await half.rows(distinct.order_by("age")) == [
        {"age": 30, "tags": 2, "s": 21},
        {"age": 50, "tags": 0, "s": 5},
    ]


async def test_a_left_join_keeps_rows_without_a_partner(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.left_join(totals(), author="pk")
    assert [(a.name, a.n) for a in await half.rows(query)] == [
        ("Ann", 3),
        ("Bob", 1),
        ("Cid", None),
    ]
    assert [a.name for a in await half.rows(query.filter(n__isnull=True))] == ["Cid"]
    assert [a.name for a in await half.rows(query.filter(n=None))] == ["Cid"]
    assert await half(query).count() == 3


async def test_parameters_stand_where_they_belong(db: Any, half: Any) -> None:
    await library(half)
    query = (
        Author.objects.filter(name__startswith="A")
        .annotate(word=Value("w"))
        .join(totals(views__gte=5, title__contains="a"), author="pk")
        .filter(n=2, age__lt=40)
        .annotate(other=Value("o"))
    )
    found = [(a.name, a.word, a.n, a.seen, a.other) for a in await half.rows(query[0:5])]
    assert found == [("Ann", "w", 2, 20, "o")]


async def test_ctes_of_one_shape_keep_their_own_values(db: Any, half: Any) -> None:
    await library(half)
    few = Post.objects.filter(views__lt=10).values("author").annotate(few=Count("id"))
    many = Post.objects.filter(views__gte=10).values("author").annotate(many=Count("id"))
    query = Author.objects.left_join(CTE(few), author="pk").left_join(CTE(many), author="pk")
    found = [(a.name, a.few, a.many) for a in await half.rows(query)]
    assert found == [("Ann", 1, 2), ("Bob", 1, None), ("Cid", None, None)]
    for lowest, wanted in ((0, 3), (5, 2), (50, None)):
        again = Author.objects.left_join(totals(views__gte=lowest), author="pk")
        assert (await half(again).get(name="Ann")).n == wanted


def test_the_plan_of_a_cte_belongs_to_its_shape(db: Any) -> None:
    def plan(query: BaseQuery[Any, Any]) -> Any:
        return query._compile_plan("rows")[0]

    first = plan(Author.objects.join(totals(views__gt=1), author="pk"))
    assert plan(Author.objects.join(totals(views__gt=2), author="pk")) is first
    assert plan(Author.objects.join(totals(views__lt=2), author="pk")) is not first
    assert plan(Author.objects.left_join(totals(views__gt=1), author="pk")) is not first
    rows = plan(totals(views__gt=1).objects.filter(n=1))
    assert plan(totals(views__gt=3).objects.filter(n=4)) is rows
    assert plan(totals(title="x").objects.filter(n=4)) is not rows


async def test_rows_of_a_cte_are_a_query_like_any_other(db: Any, half: Any) -> None:
    await library(half)
    rows = totals().objects.order_by("-n")
    ann, bob = [(await half(Author.objects).get(name=name)).pk for name in ("Ann", "Bob")]
    assert await half.rows(rows) == [
        {"author": ann, "n": 3, "seen": 21},
        {"author": bob, "n": 1, "seen": 5},
    ]
    assert await half(rows).count() == 2
    assert await half(rows.filter(n__gt=5)).exists() is False
    assert await half(rows).first() == {"author": ann, "n": 3, "seen": 21}
    assert await half(rows).get(author=bob) == {"author": bob, "n": 1, "seen": 5}
    assert await half.rows(rows.values_list("seen", flat=True)) == [21, 5]
    assert await half.rows(rows[1:]) == [{"author": bob, "n": 1, "seen": 5}]
    assert await half.iterate(rows.values("n"), 1) == [{"n": 3}, {"n": 1}]
    assert await half(rows).aggregate(mean=Avg("n")) == {"mean": 2.0}
    assert (await half.rows(rows.annotate(each=F("seen") / F("n"))))[0]["each"] == 7
    assert await half.rows(rows.exclude(n=1).values_list("n")) == [(3,)]
    with pytest.raises(Author.DoesNotExist.__mro__[1], match="No CTE matches the query"):
        await half(rows).get(n=9)


async def test_a_cte_of_groups_can_be_grouped_again(db: Any, half: Any) -> None:
    await library(half)
    sizes = CTE(Author.objects.annotate(n=Count("posts")).values("n", "age"))
    rows = sizes.objects.values("n").annotate(authors=Count("*"), oldest=Max("age")).order_by("n")
    assert await half.rows(rows) == [
        {"n": 0, "authors": 1, "oldest": None},
        {"n": 1, "authors": 1, "oldest": 50},
        {"n": 3, "authors": 1, "oldest": 30},
    ]


async def test_rows_keep_the_form_of_the_query(db: Any, half: Any) -> None:
    await library(half)
    flat = CTE(Post.objects.filter(views=10).values_list("title", flat=True)).objects
    assert await half.rows(flat.order_by("title")) == ["a2", "a3"]
    named = CTE(Post.objects.filter(views=5).values_list("title", "views", named=True)).objects
    assert [(row.title, row.views) for row in await half.rows(named)] == [("b1", 5)]


async def test_a_cte_used_twice_is_written_once(db: Any, half: Any) -> None:
    await library(half)
    made = totals(views__gte=1)
    above = made.objects.filter(
        n__gte=Subquery(made.objects.order_by("-n").values("n")[:1])
    ).filter(Exists(made.objects.filter(author=OuterRef("author"), n__gt=1)))
    assert above.explain_sql().count("GROUP BY") == 1
    assert [row["n"] for row in await half.rows(above)] == [3]
    joined = Author.objects.filter(name="Ann").join(made, author="pk")
    inside = joined.filter(pk__in=made.objects.filter(seen__gt=5).values("author"))
    assert inside.explain_sql().count("GROUP BY") == 1
    assert [a.name for a in await half.rows(inside)] == ["Ann"]
    apart = Author.objects.filter(pk__in=made.objects.filter(n=3).values("author")).exclude(
        pk__in=totals(views__gte=6).objects.values("author")
    )
    assert apart.explain_sql().count("GROUP BY") == 2
    assert await half.rows(apart) == []


async def test_a_cte_of_instances_gives_instances(db: Any, half: Any) -> None:
    await library(half)
    best = CTE(
        Post.objects.annotate(
            place=Window(Rank(), partition_by=["author"], order_by=["-views", "title"])
        )
    )
    query = best.objects.filter(place=1).select_related("author").order_by("title")
    found = await half.rows(query)
    assert [(p.title, p.place, p.author.name) for p in found] == [
        ("a2", 1, "Ann"),
        ("b1", 1, "Bob"),
    ]
    tagged = await half.rows(best.objects.prefetch_related("tags").filter(title="a1"))
    assert sorted(tag.name for tag in tagged[0].tags) == ["blue", "red"]
    assert await half(best.objects.filter(author__name="Ann")).count() == 3
    assert await half(best.objects.filter(tags__name="red")).count() == 2
    page = await half(best.objects.order_by("title")).keyset(3)
    assert [p.title for p in page.items] == ["a1", "a2", "a3"]
    assert page.next is not None
    rest = await half(best.objects.order_by("title")).keyset(3, after=page.next)
    assert [p.title for p in rest.items] == ["b1"]


async def test_the_slice_of_a_cte_is_its_own(db: Any, half: Any) -> None:
    await library(half)
    top = CTE(Post.objects.order_by("-views", "title")[:2])
    query = top.objects.order_by("title")
    assert [p.title for p in await half.rows(query)] == ["a2", "a3"]
    assert [p.title for p in await half.rows(query[1:])] == ["a3"]
    assert await half(top.objects).aggregate(n=Count("id")) == {"n": 2}


async def test_a_cte_may_use_another(db: Any, half: Any) -> None:
    await library(half)
    inner = totals(views__gte=5)
    outer = CTE(Author.objects.join(inner, author="pk").values("name", "n").filter(n__gt=0))
    assert await half.rows(outer.objects.filter(n__lt=5).order_by("name")) == [
        {"name": "Ann", "n": 2},
        {"name": "Bob", "n": 1},
    ]
    unioned = outer.objects.filter(n=1).union(outer.objects.filter(n=2))
    assert sorted(row["name"] for row in await half.rows(unioned)) == ["Ann", "Bob"]


async def test_columns_are_matched_by_expressions_and_over_relations(db: Any, half: Any) -> None:
    await library(half)
    made = totals()
    posts = Post.objects.join(made, author=F("author"), n=F("views") - 2).order_by("title")
    assert await half.rows(posts.values_list("title", "seen")) == []
    posts = Post.objects.join(made, author="author__pk").order_by("title")
    assert await half.rows(posts.values_list("title", "n")) == [
        ("a1", 3),
        ("a2", 3),
        ("a3", 3),
        ("b1", 1),
    ]
    names = CTE(Author.objects.values("name", "country__name"))
    assert await half(names.objects.filter(country__name=None)).count() == 3
    assert await half(names.objects.filter(country__name__isnull=False)).count() == 0


async def test_rows_that_a_join_repeats_are_counted_as_they_come(db: Any, half: Any) -> None:
    await library(half)
    seen = CTE(Post.objects.values("author", seen=F("views")))
    query = Author.objects.join(seen, author="pk").order_by("name", "seen")
    assert await half.rows(query.values_list("name", "seen")) == [
        ("Ann", 1),
        ("Ann", 10),
        ("Ann", 10),
        ("Bob", 5),
    ]
    assert await half(query).count() == 4
    assert await half(query.distinct()).count() == len(await half.rows(query.distinct())) == 3
    assert await half(query.distinct()).exists()


async def test_update_and_delete_change_exactly_the_rows(db: Any, half: Any) -> None:
    await library(half)
    busy = Author.objects.join(totals(), author="pk").filter(n__gt=1)
    assert await half(busy).update(age=31) == 1
    assert (await half(Author.objects).get(name="Ann")).age == 31
    assert (await half(Author.objects).get(name="Bob")).age == 50
    first = CTE(Post.objects.order_by("title")[:2])
    assert await half(Post.objects.filter(pk__in=first.objects.values("pk"))).update(views=0) == 2
    assert await half(first.objects.filter(title="a2")).delete() == 1
    assert await half(Post.objects).count() == 3
    with pytest.raises(FieldError, match="known only to the query that joins it"):
        await half(busy).update(age=F("n"))
    with pytest.raises(FieldError, match="rows of a CTE of values cannot be changed"):
        await half(totals().objects).update(n=1)
    with pytest.raises(FieldError, match="rows of a CTE of values cannot be changed"):
        await half(totals().objects).delete()


async def test_rows_of_the_model_can_be_locked_while_a_cte_is_joined(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.join(totals(), author="pk").select_for_update()

    async def locked() -> list[Any]:
        async with transaction():
            return await query

    def locked_now() -> list[Any]:
        with transaction():
            return list(query)

    assert len(await half.call(locked_now, locked)) == 2
    with pytest.raises(FieldError, match="cannot lock the rows of a CTE"):
        totals().objects.select_for_update().explain_sql()


def test_plans_show_tables_and_not_ctes(db: Any) -> None:
    plan = Author.objects.join(totals(), author="pk").explain(plan=True)
    assert not [name for name in plan.full_scans if name not in {"author", "post"}]


REFUSED: list[tuple[str, Any]] = [
    ("takes a query, not str", lambda: CTE(cast("Any", "post"))),
    ("cannot keep only", lambda: CTE(Post.objects.only("title"))),
    ("cannot keep only", lambda: CTE(Post.objects.select_related("author"))),
    ("cannot keep only", lambda: CTE(Post.objects.prefetch_related("tags"))),
    ("cannot keep only", lambda: CTE(Post.objects.limit_rows(3))),
    ("cannot keep only", lambda: CTE(Post.objects.select_for_update())),
    ("instances of a union", lambda: CTE(Post.objects.union(Post.objects.all()))),
    (
        "'password' cannot|cannot hold 'password'",
        lambda: CTE(Author.objects.values(Author.password)),
    ),
    ("'title' is there twice", lambda: CTE(Post.objects.values_list("title", "title"))),
    ("no column 'sen': did you mean 'seen'", lambda: totals().objects.filter(sen=1)),
    ("no column 'views'", lambda: totals().objects.order_by("views")),
    ("'n' is a column of the CTE, not of a model", lambda: totals().objects.only("n")),
    ("have no 'pk': name author, n, seen", lambda: totals().objects.reverse()),
    ("have no 'pk': name author", lambda: totals().objects.filter(pk=1)),
    ("no column 'views'", lambda: totals().objects.values("views")),
    ("no column 'x'", lambda: Author.objects.join(totals(), x="pk")),
    ("no field 'x'", lambda: Author.objects.join(totals(), author="x")),
    ("needs at least one column", lambda: Author.objects.join(totals())),
    (
        "takes a CTE, not ManagerFromPostQuery",
        lambda: Author.objects.join(cast("Any", Post.objects), id="pk"),
    ),
    (
        "the model has that name already: name the column",
        lambda: Author.objects.join(
            CTE(Post.objects.values("author", age=F("views"))), author="pk"
        ),
    ),
    (
        "'save' cannot name an annotation",
        lambda: Author.objects.join(
            CTE(Post.objects.values("author", save=F("views"))), author="pk"
        ),
    ),
    (
        "'author__name' cannot name an annotation: .*: name the column of the CTE",
        lambda: Author.objects.join(CTE(Post.objects.values("id", "author__name")), id="pk"),
    ),
    (
        "'n' cannot name an annotation",
        lambda: Author.objects.join(totals(), author="pk").join(totals(), author="pk"),
    ),
    ("cannot follow a slice", lambda: Author.objects.all()[:3].join(totals(), author="pk")),
    (
        "cannot compare with a window",
        lambda: Author.objects.join(totals(), author=Window(Rank(), order_by=["id"])),
    ),
    (
        "database 'other' and the query of 'default'",
        lambda: Author.objects.join(CTE(Post.objects.using("other").values("author")), author="pk"),
    ),
    (
        "database 'other' and the query of 'default'",
        lambda: Author.objects.filter(
            pk__in=CTE(Post.objects.using("other").values("author")).objects
        ),
    ),
    (
        "OuterRef\\('name'\\) stands outside",
        lambda: Author.objects.filter(
            Exists(CTE(Post.objects.filter(title=OuterRef("name"))).objects)
        ).explain_sql(),
    ),
    ("joined CTE may repeat", lambda: Author.objects.join(totals(), author="pk").keyset(3)),
    ("leads to many rows", lambda: Author.objects.join(totals(), author="posts__id").explain_sql()),
]


@pytest.mark.parametrize(("message", "build"), REFUSED)
def test_what_makes_no_sense_is_refused(db: Any, message: str, build: Any) -> None:
    with pytest.raises(FieldError, match=message):
        build()


def test_names_of_a_request_are_refused(db: Any) -> None:
    name = next(iter(taint({"author": "x"})))
    with pytest.raises(TaintedInput, match="comes from a request"):
        Author.objects.join(totals(), **{name: "pk"})
    with pytest.raises(TaintedInput, match="comes from a request"):
        totals().objects.filter(**{name: 1})


async def test_a_cte_works_on_another_database_as_a_whole(db: Any, half: Any, place: Any) -> None:
    place.configure(alias="other")
    await half(Country.objects.using("other")).create(name="X")
    made = CTE(Country.objects.using("other").filter(name="X"))
    assert [c.name for c in await half.rows(made.objects)] == ["X"]
    outer = Author.objects.using("other").filter(any_of("country", Q(pk__in=made.objects)))
    assert await half(outer).count() == 0


# queries over the posts of `numbered`, each with what it must find, by the number of views
Pair = tuple[Any, frozenset[int]]
EVERY = frozenset(range(8))


def from_number(low: int) -> Pair:
    return Post.objects.filter(views__gte=low), frozenset(n for n in EVERY if n >= low)


def named(pair: Pair) -> Pair:
    return CTE(pair[0]).objects, pair[1]


def below(pair: Pair, high: int) -> Pair:
    return pair[0].filter(views__lt=high), frozenset(n for n in pair[1] if n < high)


def inside(pair: Pair, other: Pair) -> Pair:
    return pair[0].filter(pk__in=other[0]), pair[1] & other[1]


def outside(pair: Pair, other: Pair) -> Pair:
    return pair[0].exclude(Exists(other[0].filter(pk=OuterRef("pk")))), pair[1] - other[1]


def partnered(pair: Pair, other: Pair) -> Pair:
    partner = CTE(other[0].values("pk"))
    return pair[0].join(partner, pk="pk"), pair[1] & other[1]


def twice(pair: Pair) -> Pair:
    made = CTE(pair[0])
    return made.objects.filter(pk__in=made.objects.values("pk")), pair[1]


def grown(children: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    numbers = st.integers(0, 8)
    return st.one_of(
        st.builds(named, children),
        st.builds(below, children, numbers),
        st.builds(inside, children, children),
        st.builds(outside, children, children),
        st.builds(partnered, children, children),
        st.builds(twice, children),
    )


def test_any_nesting_finds_what_it_says(db: Any) -> None:
    author = Author.objects.create(name="Ann")
    Post.objects.bulk_create([Post(title=str(n), views=n, author=author) for n in EVERY])

    @settings(max_examples=150, deadline=None)
    @given(st.recursive(st.builds(from_number, st.integers(0, 8)), grown, max_leaves=6))
    def check(pair: Pair) -> None:
        query, wanted = pair
        assert sorted(post.views for post in query) == sorted(wanted)
        assert query.count() == len(wanted)
        assert query.exists() == bool(wanted)

    check()
