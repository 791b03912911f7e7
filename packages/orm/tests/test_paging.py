"""Keyset pages: complete, without repeats, in any order, and safe against cursors made up."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
from typing import Any

import pytest
from orm_models import Author, Color, Everything, Post

from treefold_orm import (
    Count,
    F,
    FieldError,
    FieldValueError,
    Page,
    TooManyRows,
    record_queries,
)

DAY = dt.date(2026, 1, 1)


async def fill(half: Any) -> None:
    """Rows with ties and NULLs in every column."""
    rows = [
        Everything(
            integer=n % 3 if n % 4 else None,
            char="abc"[n % 3],
            money=decimal.Decimal(n % 5) / 2 if n % 6 else None,
            day=DAY + dt.timedelta(days=n % 4),
            moment=dt.datetime(2026, 1, 1 + n % 4, 12, 30, tzinfo=dt.UTC),
            time=dt.time(n % 3, 0, 0, 5),
            real=(n % 4) / 3,
            flag=bool(n % 2),
            color=Color.RED if n % 2 else Color.BLUE,
        )
        for n in range(23)
    ]
    await half(Everything.objects).bulk_create(rows)


ORDERS: list[tuple[Any, ...]] = [
    (),
    ("pk",),
    ("-pk",),
    ("integer",),
    ("-integer",),
    ("integer", "-char"),
    ("-integer", "char", "-pk"),
    ("money", "-day"),
    ("-moment", "real"),
    ("-real", "-flag", "-integer"),
    ("time", "-flag"),
    ("color",),
    (F("integer").asc(nulls="first"),),
    (F("integer").desc(nulls="last"), "-money"),
]


@pytest.mark.parametrize("order", ORDERS, ids=range(len(ORDERS)))
async def test_pages_forward_and_back_are_the_whole_in_order(
    db: Any, half: Any, order: tuple[Any, ...]
) -> None:
    await fill(half)
    query = Everything.objects.order_by(*order)
    # the key completes an order, in the direction of its last term
    last = str(order[-1]) if order else ""
    key = "-pk" if last.startswith("-") else "pk"
    total = order if last.endswith("pk") else (*order, key)
    wanted = [e.pk for e in await half.rows(Everything.objects.order_by(*total))]

    forward: list[Any] = []
    page: Page[Any] = await half(query).keyset(5)
    assert page.previous is None
    while True:
        forward += [e.pk for e in page.items]
        if page.next is None:
            break
        page = await half(query).keyset(5, after=page.next)
    assert forward == wanted

    back = [e.pk for e in page.items]
    while page.previous is not None:
        page = await half(query).keyset(5, before=page.previous)
        assert page.next is not None
        back = [e.pk for e in page.items] + back
    assert back == wanted


async def test_rows_that_come_and_go_shift_nothing(db: Any, half: Any) -> None:
    for n in range(6):
        await half(Author.objects).create(name=f"n{n}")
    first = await half(Author.objects).keyset(3)
    await half(Author.objects).create(name="n0a")
    await half(Author.objects.filter(name="n2")).delete()  # the row the cursor was made of
    second = await half(Author.objects).keyset(3, after=first.next)
    assert [a.name for a in second.items] == ["n3", "n4", "n5"]
    assert second.next is None
    back = await half(Author.objects).keyset(3, before=second.previous)
    assert [a.name for a in back.items] == ["n0", "n0a", "n1"]
    assert back.previous is None


async def test_pages_of_filtered_annotated_and_joined_rows(db: Any, half: Any) -> None:
    for n in range(5):
        author = await half(Author.objects).create(name=f"a{n}")
        for title in range(n):
            await half(Post.objects).create(title=f"{title}", author=author)
    query = Author.objects.annotate(n=Count("posts")).filter(n__gt=0).order_by("-n")
    page = await half(query).keyset(2)
    rest = await half(query).keyset(9, after=page.next)
    assert [a.n for a in (*page.items, *rest.items)] == [4, 3, 2, 1]
    posts = Post.objects.select_related("author").filter(author__name="a4").order_by("-title")
    page = await half(posts).keyset(3)
    assert [(p.title, p.author.name) for p in page.items] == [("3", "a4"), ("2", "a4"), ("1", "a4")]


async def test_a_page_is_one_statement_and_equal_pages_share_its_text(db: Any, half: Any) -> None:
    await fill(half)
    page = await half(Everything.objects.order_by("char")).keyset(4)
    texts: set[str] = set()
    for _ in range(3):
        with record_queries() as seen:
            page = await half(Everything.objects.order_by("char")).keyset(4, after=page.next)
        texts |= {event.sql for event in seen.events}
        assert len(seen) == 1
    assert len(texts) == 1


async def test_an_empty_page_has_no_cursors(db: Any, half: Any) -> None:
    page = await half(Author.objects).keyset(3)
    assert (page.items, page.next, page.previous) == ([], None, None)


def forged(*parts: Any) -> str:
    """A cursor made by hand."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


async def test_cursors_from_outside_are_checked(db: Any, half: Any) -> None:
    await half(Author.objects).bulk_create([Author(name=f"a{n}", age=n) for n in range(5)])
    by_age = Author.objects.order_by("age")
    good = (await half(by_age).keyset(2)).next
    mark = json.loads(base64.urlsafe_b64decode(good + "=="))[0]
    bad: list[Any] = [
        "",
        "x",
        "é",
        "a" * 3000,
        good[:-2],
        forged(),
        forged(mark),
        forged(mark, 1),
        forged(mark, 1, 2, 3),
        forged("00000000", 1, 2),
        forged(mark, "1; DROP TABLE author", 2),
        forged(mark, {"a": 1}, 2),
        forged(mark, [1], 2),
        forged(mark, 10**400, 2),
        forged(mark, True, 2),
        forged(mark, 1.5, 2),
        base64.urlsafe_b64encode(b"[" * 1000).decode(),
        base64.urlsafe_b64encode(b"\xff").decode(),
        5,
        b"x",
    ]
    for cursor in bad:
        with pytest.raises(FieldValueError, match="not a cursor of this ordering"):
            await half(by_age).keyset(2, after=cursor)
    other = Author.objects.order_by("-age")
    with pytest.raises(FieldValueError, match="not a cursor of this ordering"):
        await half(other).keyset(2, after=good)
    assert [a.age for a in (await half(by_age).keyset(2, after=forged(mark, 3, 0))).items] == [3, 4]


WRONG = [
    (lambda: Author.objects.keyset(0), "must be a number of at least 1"),
    (lambda: Author.objects.keyset(True), "must be a number of at least 1"),
    (lambda: Author.objects.keyset(2, after="a", before="b"), "takes after= or before=, not both"),
    (lambda: Author.objects.all()[:5].keyset(2), r"keyset\(\) cannot follow a slice"),
    (lambda: Author.objects.values("name").keyset(2), "pages instances"),
    (lambda: Author.objects.distinct().keyset(2), "pages instances"),
    (lambda: Post.objects.order_by("author__name").keyset(2), "annotate the others first"),
    (lambda: Author.objects.order_by(Author.password.asc()).keyset(2), "it is sensitive"),
]


@pytest.mark.parametrize(("use", "message"), WRONG, ids=range(len(WRONG)))
def test_pages_that_cannot_be_say_why(db: Any, use: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        use()


async def test_values_that_fit_in_no_cursor_are_refused(db: Any, half: Any) -> None:
    await half(Everything.objects).bulk_create([Everything(blob=b"x"), Everything(blob=b"y")])
    with pytest.raises(FieldError, match="its values do not fit in a cursor"):
        await half(Everything.objects.order_by("blob")).keyset(1)


@pytest.mark.parametrize("text", ["\N{GRINNING FACE}" * 255, "\x01" * 255, "\N{SNOWMAN}" * 4000])
async def test_a_cursor_of_a_long_value_is_taken_back(db: Any, half: Any, text: str) -> None:
    await half(Everything.objects).bulk_create([Everything(text=text), Everything(text=text)])
    query = Everything.objects.order_by("text")
    first = await half(query).keyset(1)
    second = await half(query).keyset(1, after=first.next)
    assert [len(first.items), len(second.items)] == [1, 1]
    assert second.items[0].pk > first.items[0].pk
    assert (await half(query).keyset(1, before=second.previous)).items == first.items


async def test_a_value_longer_than_any_cursor_is_refused_when_it_is_read(
    db: Any, half: Any
) -> None:
    rows = [Everything(text="a" * 70_000), Everything(text="b")]
    await half(Everything.objects).bulk_create(rows)
    query = Everything.objects.order_by("text")
    with pytest.raises(FieldError, match=r"cannot put a value of 'text' .* order by a shorter"):
        await half(query).keyset(1)
    whole = await half(query).keyset(2)  # a page that nothing follows needs no cursor
    assert (len(whole.items), whole.next) == (2, None)


@pytest.mark.parametrize(("order", "beyond"), [("integer", 15), ("-integer", 3)])
async def test_null_and_values_are_read_apart_from_an_index(
    db: Any, half: Any, order: str, beyond: int
) -> None:
    """A page over the border of NULL and the values of a column is two statements, any other one.

    Of 23 rows six have NULL, which come last ascending and first descending.
    """
    await fill(half)
    query = Everything.objects.order_by(order)
    page = await half(query).keyset(beyond)
    counts: list[int] = []
    for size in (1, 4, 6):
        with record_queries() as seen:
            page = await half(query).keyset(size, after=page.next)
        counts.append(len(seen.events))
        assert all(" OR " not in event.sql for event in seen.events)
    assert counts == [1, 2, 1]
    start = await half(query).keyset(beyond)
    with pytest.raises(TooManyRows, match="Everything: more than 7 rows: page the query"):
        await half(query.limit_rows(7)).keyset(8, after=start.next)
