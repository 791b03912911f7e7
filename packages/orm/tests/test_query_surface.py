"""What Django users reach for on a query: alias, order by chance, and other spellings of ours."""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from orm_models import Author, Country, Order, Post, Tag

from treefold_orm import (
    CTE,
    Avg,
    Count,
    F,
    FieldError,
    Lower,
    Prefetch,
    Q,
    record_queries,
)


def untyped(value: Any) -> Any:
    return value


async def authors(half: Any) -> None:
    for name, age in (("Ann", 30), ("Bob", 50), ("Cid", None)):
        await half(Author.objects).create(name=name, age=age)
    ann = await half(Author.objects).get(name="Ann")
    for title in ("a1", "a2", "a3"):
        await half(Post.objects).create(title=title, author=ann, views=len(title))
    bob = await half(Author.objects).get(name="Bob")
    await half(Post.objects).create(title="b1", author=bob)


async def names(half: Any, query: Any) -> list[str]:
    return [author.name for author in await half.rows(query)]


# -- alias ----------------------------------------------------------------------------------------


async def test_an_alias_filters_and_orders_without_being_loaded(db: Any, half: Any) -> None:
    await authors(half)
    query = Author.objects.alias(n=Count("posts"), low=Lower("name"))
    found = await half.rows(query.filter(n__gt=0).order_by("-n", "low"))
    assert [author.name for author in found] == ["Ann", "Bob"]
    assert not hasattr(found[0], "n")
    assert await names(half, query.exclude(Q(n=0)).filter(low__startswith="b")) == ["Bob"]
    doubled = query.annotate(twice=F("n") * 2).order_by("-twice")
    found = await half.rows(doubled)
    assert (found[0].name, untyped(found[0]).twice) == ("Ann", 6)


async def test_an_alias_is_left_out_of_values_and_ctes(db: Any, half: Any) -> None:
    await authors(half)
    query = Author.objects.alias(n=Count("posts")).filter(n=1)
    (row,) = await half.rows(query.values())
    assert sorted(row) == ["age", "country_id", "id", "name"]
    with pytest.raises(FieldError, match=r"values\(\) cannot select 'n', which alias\(\) has made"):
        query.values("name", "n")
    assert await names(half, CTE(query).objects) == ["Bob"]
    with pytest.raises(FieldError, match="has no column 'n'"):
        Author.objects.join(CTE(query), n="age")


async def test_annotate_loads_what_alias_has_named(db: Any, half: Any) -> None:
    await authors(half)
    query = Author.objects.alias(n=Count("posts")).annotate(n=F("n")).filter(n=3)
    assert [untyped(a).n for a in await half.rows(query)] == [3]
    assert await half.rows(query.values("n")) == [{"n": 3}]
    with pytest.raises(FieldError, match="'n' cannot name an annotation"):
        query.alias(n=F("age"))
    with pytest.raises(FieldError, match="'n' cannot name an annotation"):
        Author.objects.alias(n=F("age")).alias(n=F("age"))


async def test_an_alias_groups_as_an_annotation_does(db: Any, half: Any) -> None:
    await authors(half)
    query = Post.objects.values("author__name").alias(n=Count("id")).filter(n__gt=1)
    assert await half.rows(query) == [{"author__name": "Ann"}]


async def test_an_alias_can_be_aggregated_and_written(db: Any, half: Any) -> None:
    await authors(half)
    query = Author.objects.alias(n=Count("posts"))
    assert await half(query).aggregate(mean=Avg("n")) == {"mean": pytest.approx(4 / 3)}
    assert await half(query.filter(n=3)).update(age=F("n")) == 1
    assert (await half(Author.objects).get(name="Ann")).age == 3


async def test_pages_are_not_ordered_by_an_alias(db: Any, half: Any) -> None:
    with pytest.raises(FieldError, match="orders by columns of the model and annotations"):
        await half(Author.objects.alias(low=Lower("name")).order_by("low")).keyset(2)


def test_what_cannot_be_an_alias_is_refused() -> None:
    query = untyped(Author.objects.all())
    with pytest.raises(FieldError, match="'name' cannot name an annotation"):
        query.alias(name=F("age"))
    with pytest.raises(FieldError, match=r"alias\(n=\.\.\.\) takes an expression"):
        query.alias(n=5)
    with pytest.raises(FieldError, match=r"alias\(\) cannot follow a slice"):
        query[:3].alias(n=F("age"))


# -- by chance ------------------------------------------------------------------------------------


async def test_rows_come_in_an_order_of_chance(db: Any, half: Any) -> None:
    await half(Tag.objects).bulk_create([Tag(name=f"{n:03}") for n in range(60)])
    orders = [await half.rows(Tag.objects.order_by("?")) for _ in range(3)]
    first = [tag.name for tag in orders[0]]
    assert sorted(first) == [f"{n:03}" for n in range(60)]
    assert any([tag.name for tag in order] != first for order in orders[1:])
    assert (await half(Tag.objects.order_by("?")).first()).name in first
    assert len(await half.rows(Tag.objects.order_by("?")[:5])) == 5
    assert await half(Tag.objects.order_by("?").filter(name="001")).count() == 1


def test_only_the_sign_itself_means_chance() -> None:
    for term in ("-?", "??", "? ", "?name"):
        with pytest.raises(FieldError, match="cannot order Author"):
            Author.objects.order_by(term)


# -- spellings ------------------------------------------------------------------------------------


async def test_in_bulk_takes_field_name(db: Any, half: Any) -> None:
    await authors(half)
    for name in ("x", "y"):
        await half(Country.objects).create(name=name)
    found = await half(Country.objects).in_bulk(["x"], field_name="name")
    assert list(found) == ["x"]
    assert list(await half(Country.objects).in_bulk(["x"], field=Country.name)) == ["x"]
    with pytest.raises(FieldError, match=r"in_bulk\(field='name'\) needs a unique field"):
        await half(Author.objects).in_bulk(["Ann"], field_name="name")


async def test_prefetch_takes_queryset(db: Any, half: Any) -> None:
    await authors(half)
    chosen = Prefetch("posts", queryset=Post.objects.filter(title="a2"))
    (found,) = await half.rows(Author.objects.prefetch_related(chosen).filter(name="Ann"))
    assert [post.title for post in await half.rows(found.posts)] == ["a2"]
    named = Prefetch("posts", Post.objects.filter(title="a3"), "some")
    (found,) = await half.rows(Author.objects.prefetch_related(named).filter(name="Ann"))
    assert [post.title for post in untyped(found).some] == ["a3"]
    with pytest.raises(FieldError, match="takes query= or queryset=, got both"):
        Prefetch("posts", Post.objects.all(), queryset=Post.objects.all())


async def test_orders_take_nulls_first_and_nulls_last(db: Any, half: Any) -> None:
    await authors(half)
    age = F("age")
    for terms, wanted in (
        (age.asc(nulls_first=True), "CAB"),
        (age.asc(nulls_last=True), "ABC"),
        (age.desc(nulls_first=True), "CBA"),
        (age.desc(nulls_last=True), "BAC"),
        (Author.age.desc(nulls="last"), "BAC"),
        (Author.age.asc(nulls_first=False, nulls_last=None), "ABC"),
    ):
        assert "".join(n[0] for n in await names(half, Author.objects.order_by(terms))) == wanted
    with pytest.raises(FieldError, match="nulls must stand in one place, got first and last"):
        age.asc(nulls_first=True, nulls_last=True)


async def test_bulk_create_takes_update_fields(db: Any, half: Any) -> None:
    await half(Country.objects).create(name="x")
    order = Order(number=1, shop="s", total=decimal.Decimal(1))
    await half(Order.objects).bulk_create([order])
    again = Order(number=1, shop="s", total=decimal.Decimal(5))
    fields = {"update_fields": ["total"], "unique_fields": ["shop", "number"]}
    await half(Order.objects).bulk_create([again], update_conflicts=True, **fields)
    assert [o.total for o in await half.rows(Order.objects)] == [decimal.Decimal(5)]
    for wrong, message in (
        ({"update_conflicts": True}, "got one without the other"),
        ({"update_fields": ["total"]}, "update_fields needs update_conflicts=True"),
        ({"update_conflicts": ["total"], "update_fields": ["total"]}, "takes the columns as"),
    ):
        with pytest.raises(FieldError, match=message):
            await half(Order.objects).bulk_create([again], **wrong)


async def test_bulk_update_takes_no_batch_size(db: Any, half: Any) -> None:
    await authors(half)
    found = await half.rows(Author.objects.all())
    for author in found:
        author.age = 7
    assert await half(Author.objects).bulk_update(found, ["age"], batch_size=None) == 3


async def test_none_clears_what_is_loaded(db: Any, half: Any) -> None:
    await authors(half)
    with record_queries() as seen:
        query = Post.objects.select_related("author").prefetch_related("tags").defer("body")
        (post, *_) = await half.rows(
            query.select_related(None).prefetch_related(None).defer(None).order_by("id")
        )
    assert len(seen) == 1
    assert (post.is_loaded("author"), post.is_loaded("body")) == (False, True)
    for call in (
        lambda: query.select_related("author", None),
        lambda: query.prefetch_related("tags", None),
        lambda: query.defer("body", None),
    ):
        with pytest.raises(FieldError, match="None stands alone"):
            call()
    with pytest.raises(FieldError, match=r"select_related\(\) needs the names of relations"):
        query.select_related()


async def test_typed_columns_say_what_is_loaded(db: Any, half: Any) -> None:
    await authors(half)
    (found,) = await half.rows(Author.objects.only(Author.name).filter(name="Ann"))
    assert (found.is_loaded("name"), found.is_loaded("age")) == (True, False)
    (found,) = await half.rows(Author.objects.defer(Author.name).filter(name="Ann"))
    assert (found.is_loaded("name"), found.is_loaded("age")) == (False, True)
    joined = Post.objects.select_related("author").only(Post.title, Post.author.to.name)
    post = await half(joined.order_by("id")).first()
    assert (post.author.is_loaded("name"), post.author.is_loaded("age")) == (True, False)
    with pytest.raises(FieldError, match="cannot be used in a query of Post"):
        Post.objects.only(Author.name)


# -- locks ----------------------------------------------------------------------------------------


def test_a_lock_says_what_it_does_not_take() -> None:
    with pytest.raises(FieldError, match=r"locks the rows of the model alone, got of=\('author',"):
        Post.objects.select_for_update(of=("author",))
    with pytest.raises(FieldError, match="takes share or no_key, got both"):
        Post.objects.select_for_update(share=True, no_key=True)
    Post.objects.select_for_update(of=("self",))


@pytest.mark.parametrize(
    ("options", "clause"),
    [({}, "FOR UPDATE"), ({"share": True}, "FOR SHARE"), ({"no_key": True}, "FOR NO KEY UPDATE")],
)
@pytest.mark.parametrize("engine", ["postgres"], indirect=True)
def test_a_lock_has_one_of_three_strengths(db: Any, options: dict[str, Any], clause: str) -> None:
    sql = Tag.objects.select_for_update(**options, skip_locked=True).explain_sql()
    assert sql.endswith(f" {clause} OF t0 SKIP LOCKED")
