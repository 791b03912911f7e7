"""A many-to-many relation is a set: a pair that its through model holds twice is one row of it."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from orm_models import Club, Membership, Person

from treefold_orm import Avg, Count, Prefetch, Q, Sum


async def clubs(half: Any) -> None:
    """Chess: Ann twice, Bob once. Go: Ann once."""
    people = [await half(Person.objects).create(name=name) for name in ("Ann", "Bob")]
    chess, go = [await half(Club.objects).create(name=name) for name in ("Chess", "Go")]
    pairs = ((chess, people[0]), (chess, people[0]), (chess, people[1]), (go, people[0]))
    for year, (club, person) in enumerate(pairs, start=2020):
        since = dt.date(year, 1, 1)
        await half(Membership.objects).create(club=club, person=person, since=since)


async def chess_of(half: Any, query: Any) -> Any:
    return next(row for row in await half.rows(query) if row.name == "Chess")


async def test_rows_of_the_relation(db: Any, half: Any) -> None:
    await clubs(half)
    chess = await half(Club.objects).get(name="Chess")
    assert sorted(p.name for p in await half.rows(chess.members.all())) == ["Ann", "Bob"]
    assert await half(chess.members).count() == 2


@pytest.mark.parametrize("narrowed", [False, True])
async def test_prefetched_rows(db: Any, half: Any, narrowed: bool) -> None:
    await clubs(half)
    lookup = Prefetch("members", Person.objects.filter(name="Ann")) if narrowed else "members"
    chess = await chess_of(half, Club.objects.prefetch_related(lookup))
    names = [person.name for person in chess.members.all()]
    assert sorted(names) == (["Ann"] if narrowed else ["Ann", "Bob"])
    ann = next(p for p in await half.rows(Person.objects.prefetch_related("clubs")))
    assert sorted(club.name for club in ann.clubs.all()) == ["Chess", "Go"]


async def test_aggregates_count_each_row_once(db: Any, half: Any) -> None:
    await clubs(half)
    chess = await chess_of(half, Club.objects.annotate(n=Count("members")))
    assert chess.n == 2
    only_ann = Count("members", filter=Q(members__name="Ann"))
    chess = await chess_of(half, Club.objects.annotate(n=only_ann, all=Count("members__name")))
    assert (chess.n, chess.all) == (1, 2)
    found = await half(Club.objects.filter(name="Chess")).aggregate(
        n=Count("members"), total=Sum("members__pk"), mean=Avg("members__pk")
    )
    keys = [person.pk for person in await half.rows(Person.objects.all())]
    assert found == {"n": 2, "total": sum(keys), "mean": sum(keys) / 2}
    assert await half(Club.objects).aggregate(n=Count("members", distinct=True)) == {"n": 2}


async def test_aggregates_over_further_relations(db: Any, half: Any) -> None:
    await clubs(half)
    people = Person.objects.annotate(n=Count("clubs__members")).order_by("name")
    assert [person.n for person in await half.rows(people)] == [3, 2]  # Ann: 2 in Chess, 1 in Go


async def test_the_links_themselves_are_counted_one_by_one(db: Any, half: Any) -> None:
    await clubs(half)
    chess = await chess_of(half, Club.objects.annotate(n=Count("membership_set")))
    assert chess.n == 3


async def test_a_count_for_one_row_reads_the_pairs_of_that_row(db: Any, half: Any) -> None:
    await clubs(half)
    first = Club.objects.annotate(n=Count("members")).order_by("name")[:1]
    assert [club.n for club in await half.rows(first)] == [2]
    text = first.explain_sql()
    assert "SELECT DISTINCT" in text
    assert text.count("WHERE") >= 2  # the pairs of one club, not of all


async def test_a_slice_for_each_owner_counts_a_repeated_row_once(db: Any, half: Any) -> None:
    await clubs(half)
    two = Prefetch("members", Person.objects.order_by("name")[:2])
    chess = await chess_of(half, Club.objects.prefetch_related(two))
    assert [person.name for person in chess.members.all()] == ["Ann", "Bob"]
