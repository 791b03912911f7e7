"""Expressions in attributes: the database computes them, and the attribute is their value then."""

from __future__ import annotations

import decimal
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Everything, Order, Post, Stamped, Tag

from treefold_orm import (
    F,
    FieldError,
    FieldValueError,
    NotNullViolation,
    StaleObject,
    Subquery,
    Value,
    record_queries,
    transaction,
)


async def post(half: Any, **values: Any) -> Any:
    """A stored post."""
    author = await half(Author.objects).create(name="Ann", age=40)
    return await half(Post.objects).create(title="x", author=author, **values)


async def test_an_expression_is_computed_from_the_stored_row(db: Any, half: Any) -> None:
    made = await post(half, views=1)
    await half(Post.objects).update(views=10)
    made.views = F("views") + 1
    made.body = "new"
    with record_queries() as seen:
        await half(made).save()
        await half(made).save()  # it is not computed twice
    assert len(seen) == 1
    assert (made.views, made.body) == (11, "new")
    found = await half(Post.objects).get()
    assert (found.views, found.body) == (11, "new")
    made.views += 1
    await half(made).save()
    assert (await half(Post.objects).get()).views == 12


VALUES: list[tuple[str, Any, Any]] = [
    ("integer", F("integer") * 2, 14),
    ("integer", 10 - F("integer"), 3),
    ("integer", Everything.integer + 1, 8),
    ("money", F("money") + decimal.Decimal("0.5"), decimal.Decimal("2.000")),
    ("money", F("integer"), decimal.Decimal("7.000")),
    ("text", F("char"), "abc"),
    ("text", Value("it's"), "it's"),
    ("flag", F("flag"), True),
    ("data", F("data"), {"a": [1]}),
    ("moment", F("moment"), None),
    ("integer", Subquery(Everything.objects.filter(big=5).values("big")), 5),
]


@pytest.mark.parametrize(("name", "expression", "value"), VALUES, ids=range(len(VALUES)))
async def test_attributes_take_the_computed_value(
    db: Any, half: Any, name: str, expression: Any, value: Any
) -> None:
    made: Any = await half(Everything.objects).create(
        integer=7,
        big=5,
        money=decimal.Decimal("1.5"),
        char="abc",
        flag=True,
        data={"a": [1]},
    )
    setattr(made, name, expression)
    await half(made).save()
    assert (getattr(made, name), type(getattr(made, name))) == (value, type(value))
    assert getattr(await half(Everything.objects).get(), name) == value
    with record_queries() as seen:
        await half(made).save()
    assert len(seen) == 0


async def test_update_fields_writes_only_the_named_expression(db: Any, half: Any) -> None:
    made = await post(half, views=1)
    made.views, made.title = F("views") + 1, "other"
    await half(made).save(update_fields=["views"])
    assert (made.views, made.title) == (2, "other")
    assert (await half(Post.objects).get()).title == "x"


async def test_a_partly_loaded_row_takes_expressions(db: Any, half: Any) -> None:
    await post(half, views=1)
    lean = await half(Post.objects.only("title").annotate(twice=F("views") * 2)).get()
    lean.views = F("views") + 5
    await half(lean).save()
    assert (lean.views, lean.is_loaded("body"), lean.twice) == (6, False, 2)


async def test_the_key_of_a_relation_may_be_computed(db: Any, half: Any) -> None:
    made = await post(half)
    found: Any = await half(Post.objects.select_related("editor")).get()
    found.editor_id = F("author_id")
    with pytest.raises(FieldError, match=r"Post\.editor is not known before save\(\)"):
        _ = found.editor
    await half(found).save()
    assert found.editor_id == made.author_id
    await half(found).load("editor")
    assert found.editor.name == "Ann"


async def test_versions_and_times_go_on_with_expressions(db: Any, half: Any) -> None:
    order = await half(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
    stale = await half(Order.objects).get()
    order.total = F("total") * 2
    await half(order).save()
    assert (order.total, order.version) == (decimal.Decimal("2.00"), 2)
    stale.total = F("total") * 2
    with pytest.raises(StaleObject, match="was changed since it was read"):
        await half(stale).save()
    assert (await half(Order.objects).get()).total == 2
    stamp = await half(Stamped.objects).create(name="x")
    before = stamp.changed
    stamp.name = F("name")
    await half(stamp).save()
    found = await half(Stamped.objects).get()
    assert found.changed == stamp.changed
    assert stamp.changed > before


async def test_a_refused_statement_leaves_the_expression(db: Any, half: Any) -> None:
    made = await post(half, views=1)
    await half(Author.objects).update(age=None)
    made.views = Subquery(Author.objects.values("age")[:1])
    with pytest.raises(NotNullViolation, match="views"):
        await half(made).save()
    await half(Author.objects).update(age=3)
    await half(made).save()
    assert made.views == 3


async def test_expressions_in_a_transaction(db: Any, half: Any) -> None:
    made = await post(half, views=1)

    def work() -> None:
        with transaction():
            made.views = F("views") + 1
            made.save()
            made.views = F("views") + 1
            made.save()

    async def awork() -> None:
        async with transaction():
            made.views = F("views") + 1
            await made.asave()
            made.views = F("views") + 1
            await made.asave()

    await half.call(work, awork)
    assert (made.views, (await half(Post.objects).get()).views) == (3, 3)


async def test_a_new_row_takes_no_expression(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann")
    new: Any = Post(title="x", author=author)
    new.views = F("views") + 1
    message = r"Post\.views: takes a value, got Combined; no row is stored yet"
    with pytest.raises(FieldValueError, match=message):
        await half(new).save()
    with pytest.raises(FieldValueError, match=message):
        await half(Post.objects).bulk_create([new])
    with pytest.raises(FieldValueError, match=message):
        await half(Post.objects).create(title="x", author=author, views=F("views") + 1)


async def test_what_an_expression_cannot_do_is_refused(db: Any, half: Any) -> None:
    made: Any = await post(half)
    made.views = F("author__age")
    with pytest.raises(FieldError, match="cannot take values from another table: use Subquery"):
        await half(made).save()
    made.views = F("vews")
    with pytest.raises(FieldError, match="Post has no field 'vews'"):
        await half(made).save()
    author: Any = await half(Author.objects).get()
    author.name = F("password")
    with pytest.raises(FieldError, match="leads to a sensitive field"):
        await half(author).save()


# -- other ways to write --------------------------------------------------------------------------


async def test_update_or_create_computes_the_defaults(db: Any, half: Any) -> None:
    made = await post(half, views=1)
    found, created = await half(Post.objects).update_or_create(
        title="x", defaults={"views": F("views") + 1, "body": "b"}
    )
    assert (found.pk, found.views, found.body, created) == (made.pk, 2, "b", False)
    found, created = await half(Post.objects).update_or_create(
        title="y",
        defaults={"views": F("views") + 1},
        create_defaults={"views": 5, "author": made.author},
    )
    assert (found.views, created) == (5, True)
    with pytest.raises(FieldValueError, match="no row is stored yet"):
        await half(Post.objects).update_or_create(
            title="z", author=made.author, defaults={"views": F("views") + 1}
        )


async def test_bulk_update_computes_equal_expressions_together(db: Any, half: Any) -> None:
    first = await post(half, views=1)
    more = [Post(title=f"p{i}", author=first.author, views=i * 10) for i in range(20)]
    rows = [first, *await half(Post.objects).bulk_create(more)]
    for row in rows:
        row.views = F("views") + 1
    with record_queries() as seen:
        assert await half(Post.objects).bulk_update(rows, ["views"]) == 21
    assert sum("UPDATE" in event.sql for event in seen.events) == 1
    assert [row.views for row in rows] == [2, *(i * 10 + 1 for i in range(20))]
    with record_queries() as seen:
        for row in rows:
            await half(row).save()
    assert len(seen) == 0


async def test_bulk_update_takes_values_and_expressions(db: Any, half: Any) -> None:
    first = await post(half, views=1)
    second, third, fourth = await half(Post.objects).bulk_create(
        [Post(title=t, author=first.author, views=2) for t in ("b", "c", "d")]
    )
    first.views, first.title = F("views") * 10, "first"
    second.views = 7
    third.views = F("views") * 20
    fourth.views, fourth.title = F("views"), F("body")
    rows = [first, second, third, fourth]
    assert await half(Post.objects).bulk_update(rows, ["views", "title"]) == 4
    assert [(r.views, r.title) for r in rows] == [(10, "first"), (7, "b"), (40, "c"), (2, "")]
    found = await half.rows(Post.objects.order_by("id").values_list("views", "title"))
    assert found == [(10, "first"), (7, "b"), (40, "c"), (2, "")]


async def test_bulk_update_of_rows_made_by_hand_and_rows_that_are_gone(db: Any, half: Any) -> None:
    made = await post(half, views=1)
    mine: Any = Post(id=made.pk, title="m", author=made.author)
    lost: Any = Post(id=-1, title="l", author=made.author)
    mine.views = lost.views = F("views") + 1
    assert await half(Post.objects).bulk_update([mine, lost], ["views"]) == 1
    assert mine.views == 2
    assert not isinstance(lost.views, int)


async def test_bulk_update_with_versions_refuses_lost_updates(db: Any, half: Any) -> None:
    for number in (1, 2):
        await half(Order.objects).create(number=number, shop="s", total=decimal.Decimal(number))
    first, second = await half.rows(Order.objects.order_by("number"))
    for each in (first, second):
        each.total = F("total") + 1
    assert await half(Order.objects).bulk_update([first, second], ["total"]) == 2
    assert [(o.total, o.version) for o in (first, second)] == [(2, 2), (3, 2)]
    await half(Order.objects.filter(number=2)).update(paid=True)
    for each in (first, second):
        each.total = F("total") + 1
    with pytest.raises(StaleObject, match=rf"Order with key {second.pk} was changed"):
        await half(Order.objects).bulk_update([first, second], ["total"])
    assert [o.total for o in await half.rows(Order.objects.order_by("number"))] == [2, 3]


async def test_a_tag_can_be_renamed_by_an_expression_of_its_own_name(db: Any, half: Any) -> None:
    tag: Any = await half(Tag.objects).create(name="red")
    tag.name = F("name")
    await half(tag).save()
    assert tag.name == "red"


async def test_a_rollback_gives_the_expression_back(db: Any, half: Any) -> None:
    made = await post(half, views=1)
    expression = F("views") + 1

    async def body(h: Handle) -> None:
        made.views = expression
        async with h.transaction(rollback=True):
            await h(made).save()
            assert made.views == 2
        assert made.views is expression
        await h(made).save()
        assert (made.views, (await h(Post.objects).get()).views) == (2, 2)

    await in_half(half, body)


async def test_a_refused_bulk_update_gives_the_expressions_back(db: Any, half: Any) -> None:
    for number in (1, 2):
        await half(Order.objects).create(number=number, shop="s", total=decimal.Decimal(number))
    first, second = await half.rows(Order.objects.order_by("number"))
    await half(Order.objects.filter(number=2)).update(paid=True)
    for each in (first, second):
        each.total = F("total") + 1
    with pytest.raises(StaleObject, match=rf"Order with key {second.pk} was changed"):
        await half(Order.objects).bulk_update([first, second], ["total"])
    assert first.version == 1
    await half(first).save()
    assert (first.total, first.version) == (2, 2)
