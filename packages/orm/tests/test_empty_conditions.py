"""`Q()` is empty: it adds nothing, wherever it stands; where a condition must be, it is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author

from treefold_orm import (
    Case,
    CheckConstraint,
    Count,
    FieldError,
    Index,
    ModelError,
    Q,
    UniqueConstraint,
    Value,
    When,
    all_of,
    any_of,
    none_of,
)

EMPTY: list[Any] = [
    Q(),
    ~Q(),
    Q() & Q(),
    Q() | Q(),
    Q() ^ Q(),
    Q(Q()),
    ~Q(~Q(), Q(Q())),
    ~(Q() | ~Q()),
]
OLD = [
    Q() | Q(age__gte=40),
    Q() & Q(age__gte=40),
    Q() ^ Q(age__gte=40),
    Q(age__gte=40) | Q(),
    Q(age__gte=40) & Q(),
    Q(age__gte=40) ^ Q(),
    Q(age__gte=40) & (Q() | Q()),
    Q(age__gte=40) | ~Q(),
    Q(Q(), age__gte=40),
    Q(Q() | Q(age__gte=40), ~Q()),
    (Author.age >= 40) | Q(),
    Q() ^ (Author.age >= 40),
    ~(Q() | ~Q(age__gte=40)),
]


@pytest.fixture
def authors(db: Any) -> Any:
    for name, age in (("Ann", 30), ("Bob", 50), ("Cid", None)):
        Author.objects.create(name=name, age=age)
    return db


async def names(half: Any, query: Any) -> list[str]:
    return sorted([author.name for author in await half.rows(query)])


@pytest.mark.parametrize("condition", EMPTY, ids=range(len(EMPTY)))
async def test_an_empty_condition_selects_every_row(
    authors: Any, half: Any, condition: Any
) -> None:
    everyone = ["Ann", "Bob", "Cid"]
    assert condition.empty
    assert await names(half, Author.objects.filter(condition)) == everyone
    assert await names(half, Author.objects.exclude(condition)) == everyone
    assert await names(half, Author.objects.filter(condition, age=50)) == ["Bob"]
    assert await names(half, Author.objects.exclude(condition, age=50)) == ["Ann", "Cid"]
    query = Author.objects.annotate(known=condition).filter(known=True)
    assert await names(half, query) == everyone


@pytest.mark.parametrize("condition", OLD, ids=range(len(OLD)))
async def test_an_empty_condition_adds_nothing(authors: Any, half: Any, condition: Any) -> None:
    assert not condition.empty
    assert await names(half, Author.objects.filter(condition)) == ["Bob"]
    assert await names(half, Author.objects.exclude(condition)) == ["Ann", "Cid"]


def test_an_empty_condition_is_no_step_of_a_query(db: Any) -> None:
    plain = Author.objects.all().explain_sql()
    assert Author.objects.filter(Q()).explain_sql() == plain
    assert Author.objects.exclude(Q()).explain_sql() == plain
    assert Author.objects.exclude().explain_sql() == plain


async def test_an_empty_filter_of_an_aggregate_limits_nothing(authors: Any, half: Any) -> None:
    found = await half(Author.objects).aggregate(n=Count("id", filter=Q()))
    assert found == {"n": 3}
    counted = Author.objects.annotate(n=Count("posts", filter=~Q())).filter(n=0)
    assert await half(counted).count() == 3


async def test_an_empty_condition_on_related_rows_is_any_row(authors: Any, half: Any) -> None:
    ann = await half(Author.objects).get(name="Ann")
    await half(ann.posts).create(title="a")
    assert await names(half, Author.objects.filter(any_of("posts", Q()))) == ["Ann"]
    assert await names(half, Author.objects.filter(none_of("posts", Q()))) == ["Bob", "Cid"]
    assert await half(Author.objects.filter(all_of("posts", Q()))).count() == 3


@pytest.mark.parametrize(
    "build", [lambda: When(then=1), lambda: When(Q(), then=1), lambda: When(~Q(Q()), then=1)]
)
def test_a_case_needs_a_condition(build: Callable[[], Any]) -> None:
    with pytest.raises(FieldError, match=r"When\(\) must have a condition, got none or an empty Q"):
        Author.objects.annotate(x=Case(build(), default=Value(2)))


@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("CheckConstraint", lambda: CheckConstraint(Q(), name="x")),
        ("UniqueConstraint", lambda: UniqueConstraint("name", condition=Q(), name="x")),
        ("Index", lambda: Index("name", condition=~Q(), name="x")),
    ],
)
def test_constraints_and_indexes_refuse_an_empty_condition(
    name: str, build: Callable[[], Any]
) -> None:
    with pytest.raises(ModelError, match=rf"{name} 'x' must have a condition, got an empty Q\(\)"):
        build()
