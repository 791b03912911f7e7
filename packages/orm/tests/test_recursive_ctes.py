"""Recursive CTEs: trees down and up, graphs, cycles, depths, and values carried along."""

from __future__ import annotations

import uuid
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from orm_models import Person, Post

from treefold_orm import (
    CTE,
    Cast,
    Concat,
    Count,
    Exists,
    F,
    FieldError,
    Length,
    Max,
    Model,
    OuterRef,
    Q,
    Rank,
    Subquery,
    TaintedInput,
    Value,
    Window,
    acreate_all,
    create_all,
    fields,
    taint,
)


async def tree(half: Any) -> dict[str, Person]:
    """root with a and b; a with a1 and a2; a1 with x; and lone."""
    made: dict[str, Person] = {}
    for name, boss in (
        ("root", None),
        ("a", "root"),
        ("b", "root"),
        ("a1", "a"),
        ("a2", "a"),
        ("x", "a1"),
        ("lone", None),
    ):
        made[name] = await half(Person.objects).create(name=name, boss=made[boss] if boss else None)
    return made


async def names(half: Any, query: Any) -> list[str]:
    return [person.name for person in await half.rows(query.order_by("name"))]


async def levels(half: Any, query: Any) -> dict[str, int]:
    found = await half.rows(query)
    assert len({person.name for person in found}) == len(found)
    return {person.name: person.level for person in found}


async def test_descendants_and_ancestors(db: Any, half: Any) -> None:
    people = await tree(half)
    below = CTE.recursive(Person.objects.filter(name="a"), "staff")
    assert await names(half, below.objects) == ["a", "a1", "a2", "x"]
    above = CTE.recursive(Person.objects.filter(pk=people["x"].pk), "boss")
    assert await names(half, above.objects) == ["a", "a1", "root", "x"]
    assert await names(half, CTE.recursive(Person.objects.none(), "staff").objects) == []
    everyone = CTE.recursive(Person.objects.filter(boss=None), "staff")
    assert await half(everyone.objects).count() == 7


async def test_the_depth_is_a_value_like_any_other(db: Any, half: Any) -> None:
    await tree(half)
    below = CTE.recursive(Person.objects.filter(name="root"), "staff", depth="level")
    assert await levels(half, below.objects) == {
        "root": 0,
        "a": 1,
        "b": 1,
        "a1": 2,
        "a2": 2,
        "x": 3,
    }
    rows = below.objects
    assert await names(half, rows.filter(level=1)) == ["a", "b"]
    assert await names(half, rows.exclude(level__lte=1)) == ["a1", "a2", "x"]
    assert await half.rows(rows.order_by("-level", "name").values_list("name", "level")[:2]) == [
        ("x", 3),
        ("a1", 2),
    ]
    assert await half(rows).count() == 6
    assert await half(rows.filter(level__gt=3)).exists() is False
    assert await half(rows).aggregate(deepest=Max("level")) == {"deepest": 3}
    assert (await half(rows.order_by("-level")).first()).name == "x"
    assert [p.name for p in await half.iterate(rows.order_by("level", "name"), 2)][:2] == [
        "root",
        "a",
    ]
    counted = rows.values("level").annotate(n=Count("*")).order_by("level")
    assert [row["n"] for row in await half.rows(counted)] == [1, 2, 2, 1]
    twice = rows.annotate(twice=F("level") * 2, staff_size=Count("staff"))
    x = await half(twice).get(name="a")
    assert (x.level, x.twice, x.staff_size) == (1, 2, 2)
    up = CTE.recursive(Person.objects.filter(name="x"), "boss", depth="level")
    assert await levels(half, up.objects) == {"x": 0, "a1": 1, "a": 2, "root": 3}


async def test_the_depth_can_be_limited(db: Any, half: Any) -> None:
    await tree(half)
    start = Person.objects.filter(name="root")
    limited = CTE.recursive(start, "staff", max_depth=1)
    assert await names(half, limited.objects) == ["a", "b", "root"]
    named = CTE.recursive(start, "staff", depth="level", max_depth=2)
    assert await levels(half, named.objects) == {"root": 0, "a": 1, "b": 1, "a1": 2, "a2": 2}


async def test_rows_gone_on_to_meet_a_condition(db: Any, half: Any) -> None:
    await tree(half)
    start = Person.objects.filter(name="root")
    cut = CTE.recursive(start, "staff", where=~Q(name="a1") & Q(boss__name__in=["root", "a"]))
    assert await names(half, cut.objects) == ["a", "a2", "b", "root"]
    assert await names(half, cut.objects.filter(name__startswith="a")) == ["a", "a2"]


async def test_each_row_comes_once_at_its_least_depth(db: Any, half: Any) -> None:
    await tree(half)
    both = CTE.recursive(Person.objects.filter(name__in=["root", "a"]), "staff", depth="level")
    assert await levels(half, both.objects) == {
        "root": 0,
        "a": 0,
        "b": 1,
        "a1": 1,
        "a2": 1,
        "x": 2,
    }


async def test_cycles_end(db: Any, half: Any) -> None:
    people = await tree(half)
    await half(Person.objects.filter(name="root")).update(boss=people["x"])
    start = Person.objects.filter(name="a")
    for follow, wanted in (
        ("staff", {"a": 0, "a1": 1, "a2": 1, "x": 2, "root": 3, "b": 4}),
        ("boss", {"a": 0, "root": 1, "x": 2, "a1": 3}),
    ):
        plain = CTE.recursive(start, follow)
        assert await names(half, plain.objects) == sorted(wanted)
        assert await levels(half, CTE.recursive(start, follow, depth="level").objects) == wanted
        far = CTE.recursive(start, follow, depth="level", max_depth=50)
        assert await levels(half, far.objects) == wanted
        carried = CTE.recursive(start, follow, carry={"path": ("name", Concat("path", "name"))})
        assert await half(carried.objects).count() == len(wanted)
    alone = await half(Person.objects).get(name="lone")
    await half(Person.objects.filter(name="lone")).update(boss=alone)
    itself = CTE.recursive(Person.objects.filter(name="lone"), "boss", depth="level")
    assert await levels(half, itself.objects) == {"lone": 0}


async def test_graphs_of_many_to_many_relations(db: Any, half: Any) -> None:
    people = await tree(half)
    ring = [people[name] for name in ("root", "a", "b", "a1", "a2")]
    for one, other in zip(ring, [*ring[1:], ring[0]], strict=True):
        await half(one.friends).add(other)
    await half(people["root"].friends).add(people["a1"])
    start = Person.objects.filter(name="root")
    reached = CTE.recursive(start, "friends")
    assert await names(half, reached.objects) == ["a", "a1", "a2", "b", "root"]
    near = CTE.recursive(start, "friends", depth="level", max_depth=9)
    assert await levels(half, near.objects) == {"root": 0, "a": 1, "a1": 1, "b": 2, "a2": 2}
    back = CTE.recursive(start, "friend_of", depth="level", max_depth=1)
    assert await levels(half, back.objects) == {"root": 0, "a2": 1}
    ways = CTE.recursive(
        start,
        "friends",
        max_depth=2,
        carry={"way": ("name", Concat("way", Value(">"), "name"))},
        where=Q(name__in=["a", "b", "a1"]),
    )
    assert sorted(p.way for p in await half.rows(ways.objects)) == [
        "root",
        "root>a",
        "root>a1",
        "root>a>b",
    ]


async def test_values_are_carried_from_row_to_row(db: Any, half: Any) -> None:
    people = await tree(half)
    below = CTE.recursive(
        Person.objects.filter(name="root").annotate(unused=Value("u")),
        "staff",
        depth="level",
        carry={
            "path": (Concat(Value("/"), "name"), Concat("path", Value("/"), F("name"))),
            "letters": (Length("name"), F("letters") + Length("name") + F("level")),
            "start": ("pk", F("start")),
        },
        where=Q(name__contains="a") | Q(name="x"),
    )
    found = await half.rows(below.objects.filter(level__gte=0).order_by("path"))
    root = people["root"].pk
    assert [(p.path, p.letters, p.start, p.level) for p in found] == [
        ("/root", 4, root, 0),
        ("/root/a", 5, root, 1),
        ("/root/a/a1", 8, root, 2),
        ("/root/a/a1/x", 11, root, 3),
        ("/root/a/a2", 8, root, 2),
    ]
    assert await names(half, below.objects.filter(path__startswith="/root/a/")) == ["a1", "a2", "x"]
    assert await half.rows(below.objects.filter(name="x").values("path")) == [
        {"path": "/root/a/a1/x"}
    ]
    bosses = CTE.recursive(
        Person.objects.filter(name="x"),
        "boss",
        carry={"chief": (Cast("name", fields.TextField()), F("boss__name"))},
    )
    assert {p.name: p.chief for p in await half.rows(bosses.objects)} == {
        "x": "x",
        "a1": "a",
        "a": "root",
        "root": None,
    }


async def test_relations_of_the_rows_load_and_filter_as_usual(db: Any, half: Any) -> None:
    await tree(half)
    below = CTE.recursive(Person.objects.filter(name="a"), "staff", depth="level")
    found = await half.rows(below.objects.select_related("boss").order_by("level", "name"))
    assert [(p.name, p.boss.name) for p in found] == [
        ("a", "root"),
        ("a1", "a"),
        ("a2", "a"),
        ("x", "a1"),
    ]
    fetched = await half.rows(below.objects.prefetch_related("staff").filter(name="a1"))
    assert [p.name for p in fetched[0].staff] == ["x"]
    assert await names(half, below.objects.filter(boss__name="a")) == ["a1", "a2"]
    assert await names(half, below.objects.filter(staff__name="x")) == ["a1"]
    page = await half(below.objects.order_by("level")).keyset(3)
    rest = await half(below.objects.order_by("level")).keyset(3, after=page.next)
    assert [p.level for p in (*page.items, *rest.items)] == [0, 1, 1, 2]


async def test_saving_and_deleting_what_was_reached(db: Any, half: Any) -> None:
    await tree(half)
    below = CTE.recursive(Person.objects.filter(name="a"), "staff", depth="level")
    one = await half(below.objects).get(name="a2")
    one.name = "renamed"
    await half(one).save()
    assert await half(below.objects.filter(level=1)).update(name=Concat("name", Value("!"))) == 2
    assert await names(half, Person.objects.filter(name__contains="!")) == ["a1!", "renamed!"]
    assert await half(below.objects.filter(level__gte=2)).delete() == 1
    assert await half(Person.objects).count() == 6


async def test_a_tree_inside_other_queries(db: Any, half: Any) -> None:
    await tree(half)
    below = CTE.recursive(Person.objects.filter(name="a"), "staff", depth="level")
    inside = Person.objects.filter(pk__in=below.objects.filter(level__gt=0)).exclude(name="x")
    assert await names(half, inside) == ["a1", "a2"]
    depth = Subquery(below.objects.filter(pk=OuterRef("pk")).values("level"))
    query = Person.objects.annotate(level=depth).filter(Q(level=2) | Q(name="root"))
    assert {p.name: p.level for p in await half.rows(query)} == {"x": 2, "root": None}
    deep = Person.objects.filter(Exists(below.objects.filter(boss=OuterRef("pk"), level=2)))
    assert await names(half, deep) == ["a1"]
    again = CTE.recursive(below.objects.filter(level=2), "boss", depth="up")
    assert {p.name: p.up for p in await half.rows(again.objects)} == {
        "x": 0,
        "a1": 1,
        "a": 2,
        "root": 3,
    }
    sizes = CTE(below.objects.values("level").annotate(n=Count("*")))
    assert await half.rows(sizes.objects.order_by("level").values_list("level", "n")) == [
        (0, 1),
        (1, 2),
        (2, 1),
    ]
    chiefs = Person.objects.join(below, id="boss__pk").order_by("name")
    assert [(p.name, p.level) for p in await half.rows(chiefs)] == [
        ("a1", 0),
        ("a2", 0),
        ("x", 1),
    ]


async def test_parameters_of_a_recursion_stand_where_they_belong(db: Any, half: Any) -> None:
    await tree(half)
    below = CTE.recursive(
        Person.objects.filter(name="root", boss=None),
        "staff",
        depth="level",
        max_depth=2,
        where=Q(name__in=["a", "a1", "a2"]),
        carry={"path": (Concat("name", Value("<")), Concat("path", Value("-"), "name"))},
    )
    query = below.objects.annotate(word=Value("w")).filter(level=2, name__contains="1")
    found = [(p.name, p.path, p.word) for p in await half.rows(query[0:5])]
    assert found == [("a1", "root<-a-a1", "w")]


def test_a_plan_belongs_to_the_shape_of_a_recursion(db: Any) -> None:
    def plan(name: str, **options: Any) -> Any:
        made = CTE.recursive(Person.objects.filter(name=name), "staff", **options)
        return made.objects._compile_plan("rows")[0]

    assert plan("a", depth="level") is plan("b", depth="level")
    assert plan("a", max_depth=1) is plan("b", max_depth=7)
    assert plan("a", depth="level") is not plan("a", depth="other")
    assert plan("a", depth="level") is not plan("a", depth="level", max_depth=3)
    assert plan("a", where=Q(name="x")) is not plan("a", where=Q(name__gt="x"))
    assert plan("a", carry={"p": ("name", "name")}) is not plan("a", carry={"p": ("name", F("p"))})


REFUSED: list[tuple[str, Any]] = [
    (
        "leads to Author: a recursive CTE follows",
        lambda: CTE.recursive(Post.objects.all(), "author"),
    ),
    (
        "no field 'stuff': did you mean 'staff'",
        lambda: CTE.recursive(Person.objects.all(), "stuff"),
    ),
    ("no field 'name'", lambda: CTE.recursive(Person.objects.all(), "name")),
    ("no field 'boss__boss'", lambda: CTE.recursive(Person.objects.all(), "boss__boss")),
    ("without values\\(\\) and slices", lambda: CTE.recursive(Person.objects.all()[:3], "boss")),
    (
        "without values\\(\\) and slices",
        lambda: CTE.recursive(cast("Any", Person.objects.values("name")), "boss"),
    ),
    (
        "cannot take instances of a union",
        lambda: CTE.recursive(Person.objects.union(Person.objects.all()), "boss"),
    ),
    ("cannot keep only", lambda: CTE.recursive(Person.objects.only("name"), "boss")),
    (
        "'name' cannot name an annotation",
        lambda: CTE.recursive(Person.objects.all(), "boss", depth="name"),
    ),
    (
        "'save' cannot name an annotation",
        lambda: CTE.recursive(Person.objects.all(), "boss", depth="save"),
    ),
    (
        "'a__b' cannot name an annotation",
        lambda: CTE.recursive(Person.objects.all(), "boss", depth="a__b"),
    ),
    (
        "'p' cannot name an annotation",
        lambda: CTE.recursive(
            Person.objects.all(), "boss", depth="p", carry={"p": ("name", "name")}
        ),
    ),
    ("max_depth=0 must be", lambda: CTE.recursive(Person.objects.all(), "boss", max_depth=0)),
    ("max_depth=True must be", lambda: CTE.recursive(Person.objects.all(), "boss", max_depth=True)),
    (
        "over many ways: give max_depth",
        lambda: CTE.recursive(Person.objects.all(), "friends", depth="level"),
    ),
    (
        "over many ways: give max_depth",
        lambda: CTE.recursive(Person.objects.all(), "friends", carry={"p": ("name", "name")}),
    ),
    (
        "takes a pair",
        lambda: CTE.recursive(Person.objects.all(), "boss", carry=cast("Any", {"p": "name"})),
    ),
    (
        r"text\) and int have no type in common",
        lambda: CTE.recursive(Person.objects.all(), "boss", carry={"p": ("name", Length("name"))}),
    ),
    (
        "cannot hold aggregates or windows",
        lambda: CTE.recursive(
            Person.objects.all(), "boss", carry={"p": (Count("staff"), Count("staff"))}
        ),
    ),
    (
        "cannot hold aggregates or windows",
        lambda: CTE.recursive(
            Person.objects.all(), "boss", carry={"p": (Value(1), Window(Rank(), order_by=["name"]))}
        ),
    ),
    (
        "no field 'p'",
        lambda: CTE.recursive(Person.objects.all(), "boss", carry={"p": (F("p"), F("p"))}),
    ),
    (
        "no field 'level'",
        lambda: CTE.recursive(Person.objects.all(), "boss", depth="level", where=Q(level=1)),
    ),
]


@pytest.mark.parametrize(("message", "build"), REFUSED)
def test_what_makes_no_sense_is_refused(message: str, build: Any) -> None:
    with pytest.raises(FieldError, match=message):
        build()


def test_names_of_a_request_are_refused() -> None:
    name = next(iter(taint({"staff": "x"})))
    people = Person.objects.all()
    for build in (
        lambda: CTE.recursive(people, name),
        lambda: CTE.recursive(people, "staff", depth=name),
        lambda: CTE.recursive(people, "staff", carry={name: ("name", "name")}),
    ):
        with pytest.raises(TaintedInput, match="comes from a request"):
            build()


def reached(parents: list[int | None], start: int, *, up: bool) -> dict[int, int]:
    """What a recursion must find, found by hand: rows and their least depth."""
    found, now, depth = {start: 0}, [start], 0
    while now:
        depth += 1
        further = (
            [parents[i] for i in now]
            if up
            else [i for i, parent in enumerate(parents) if parent in now]
        )
        now = [i for i in dict.fromkeys(further) if i is not None and i not in found]
        found.update(dict.fromkeys(now, depth))
    return found


def by_name(query: Any) -> dict[int, int]:
    return {int(person.name): person.level for person in query}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.none() | st.integers(0, 7), min_size=8, max_size=8),
    st.integers(0, 7),
    st.booleans(),
)
def test_any_graph_of_bosses_is_walked_as_by_hand(
    db: Any, parents: list[int | None], start: int, up: bool
) -> None:
    Person.objects.delete()
    people = [Person.objects.create(name=str(i)) for i in range(8)]
    for person, parent in zip(people, parents, strict=True):
        person.boss = None if parent is None else people[parent]
        person.save()
    begin = Person.objects.filter(name=str(start))
    made = CTE.recursive(begin, "boss" if up else "staff", depth="level")
    wanted = reached(parents, start, up=up)
    assert by_name(made.objects) == wanted
    plain = CTE.recursive(begin, "boss" if up else "staff")
    assert sorted(int(p.name) for p in plain.objects) == sorted(wanted)
    near = CTE.recursive(begin, "boss" if up else "staff", depth="level", max_depth=2)
    assert by_name(near.objects) == {i: depth for i, depth in wanted.items() if depth <= 2}


async def test_keys_of_other_types(empty: Any, half: Any) -> None:
    class Part(Model):
        code = fields.UUIDField(primary_key=True, default=uuid.uuid4)
        within = fields.ForeignKey("self", null=True, related_name="parts")

    class Region(Model):
        name = fields.CharField(max_length=20, primary_key=True)
        within = fields.ForeignKey("self", null=True, related_name="regions")

    await half.call(lambda: create_all(Part, Region), lambda: acreate_all(Part, Region))
    whole = await half(Part.objects).create()
    part = await half(Part.objects).create(within=whole)
    await half(Part.objects.filter(pk=whole.pk)).update(within=part)
    parts = CTE.recursive(Part.objects.filter(pk=whole.pk), "parts", depth="level")
    assert {p.pk: p.level for p in await half.rows(parts.objects)} == {whole.pk: 0, part.pk: 1}
    europe = await half(Region.objects).create(name="Europe")
    await half(Region.objects).create(name="a, b|'", within=europe)
    path = {"path": ("name", Concat("path", Value("/"), "name"))}
    regions = CTE.recursive(Region.objects.filter(within=None), "regions", carry=path)
    found = await half.rows(regions.objects.order_by("path").values_list("path", flat=True))
    assert found == ["Europe", "Europe/a, b|'"]
