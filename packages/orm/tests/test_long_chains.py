"""Long chains of conditions and queries, as a loop makes them, and the limits of statements."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Tag

from treefold_orm import DatabaseError, FieldError, Q


def either_of(one: Any, other: Any) -> Any:
    return one | other


def both_of(one: Any, other: Any) -> Any:
    return one & other


async def tags(half: Any) -> None:
    await half(Tag.objects).bulk_create([Tag(name=f"t{number}") for number in range(20)])


def names(rows: list[Any]) -> list[str]:
    return sorted(row.name for row in rows)


@pytest.mark.parametrize("count", [65, 1500])
async def test_conditions_joined_in_a_loop(db: Any, half: Any, count: int) -> None:
    await tags(half)
    parts: list[Any] = [Q(name=f"t{number}") for number in range(18, 18 + count)]
    either = functools.reduce(either_of, parts)
    assert names(await half.rows(Tag.objects.filter(either))) == ["t18", "t19"]
    none = functools.reduce(both_of, [~part for part in parts])
    assert len(await half.rows(Tag.objects.filter(none))) == 18
    backwards: Any = Q()
    for part in parts:
        backwards = part | backwards
    assert names(await half.rows(Tag.objects.filter(backwards))) == ["t18", "t19"]


@pytest.mark.parametrize("count", [100, 900])
async def test_queries_joined_in_a_loop(db: Any, half: Any, count: int) -> None:
    await tags(half)
    parts = [Tag.objects.filter(name=f"t{number}") for number in range(18, 18 + count)]
    either = functools.reduce(either_of, parts)
    assert names(await half.rows(either)) == ["t18", "t19"]
    assert await half(either).count() == 2
    inner = [Tag.objects.filter(name__gt="t", pk__gt=0) for _ in range(count)]
    assert await half(functools.reduce(both_of, inner)).count() == 20


JOINS: list[Callable[[Any, Any], Any]] = [
    lambda one, other: one.union(other),
    lambda one, other: other.union(one),
]


@pytest.mark.parametrize("join", JOINS)
async def test_unions_made_in_a_loop(db: Any, half: Any, join: Callable[[Any, Any], Any]) -> None:
    await tags(half)
    union = functools.reduce(join, [Tag.objects.filter(name=f"t{n}") for n in range(100)])
    assert len(await half.rows(union)) == 20
    assert await half(union).count() == 20


async def test_unions_have_a_limit(db: Any, half: Any) -> None:
    await tags(half)
    parts = [Tag.objects.filter(name=f"t{number}") for number in range(500)]
    assert len(await half.rows(parts[0].union(*parts[1:]))) == 20
    with pytest.raises(FieldError, match="At most 500 queries can be combined by UNION; combine"):
        parts[0].union(parts[1].union(*parts[2:], parts[0]))


async def test_nested_set_operations_keep_their_meaning(db: Any, half: Any) -> None:
    await tags(half)
    one, two, three = (
        Tag.objects.filter(name__in=group.split()) for group in ("t1 t2", "t2 t3", "t2 t9")
    )
    assert names(await half.rows(one.union(two.union(three)))) == ["t1", "t2", "t3", "t9"]
    whole = one.union(two.union(three, all=True), all=True)
    assert names(await half.rows(whole)) == ["t1", "t2", "t2", "t2", "t3", "t9"]
    assert names(await half.rows(one.union(two.union(three, all=True)))) == ["t1", "t2", "t3", "t9"]
    met = one.intersection(two.intersection(three))
    assert names(await half.rows(met)) == ["t2"]
    assert names(await half.rows(one.difference(two.difference(three)))) == ["t1", "t2"]


def test_queries_inside_of_each_other_end_in_words(db: Any) -> None:
    def deep() -> list[Any]:
        query: Any = Author.objects.all()
        for _ in range(900):
            query = Author.objects.filter(pk__in=query)
        return list(query)

    with pytest.raises(FieldError, match="too many queries inside of each other; run the inner"):
        deep()


def test_statements_that_sqlite_cannot_read_name_the_way_out(db: Any, engine: str) -> None:
    query: Any = Author.objects.all()
    for _ in range(80):
        query = Author.objects.filter(pk__in=query)
    if engine == "postgres":
        assert list(query) == []
        return
    with pytest.raises(DatabaseError, match="run the inner queries first, and give their keys"):
        list(query)


def test_more_values_than_a_statement_takes_are_refused(db: Any) -> None:
    parts: list[Any] = [Q(age=number) for number in range(33_000)]
    with pytest.raises(FieldError, match=r"at most 32,766 values, got 33,000; give them as one"):
        list(Author.objects.filter(Q.joined("or", tuple(parts))))
    assert list(Author.objects.filter(age__in=range(33_000))) == []
