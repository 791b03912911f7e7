"""Random conditions, answered by the databases and by plain Python over the same rows.

In Python, conditions joined by AND and OR look at one combination of related rows at a time, and
what is negated is asked on its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import reduce
from typing import Any

import pytest
from orm_models import Author, Comment, Country, Post, Tag

from treefold_orm import Model, Q

VALUES: dict[str, list[Any]] = {
    "title": ["a", "b"],
    "views": [0, 1, 2],
    "author__age": [1, 2],
    "author__country__name": ["Peru", "Chad"],
    "editor__name": ["A", "B"],
    "editor__country__name": ["Peru", "Chad"],
    "comments__likes": [0, 1, 2],
    "comments__text": ["a", "b"],
    "tags__name": ["red", "blue"],
    "author__posts__views": [0, 1, 2],
    "author__posts__comments__likes": [0, 1, 2],
    "tags__posts__title": ["a", "b"],
}
RELATIONS = ["comments", "tags", "editor", "editor__country", "author__posts"]
Formula = tuple[Any, ...]
Row = Any


def formula(rng: random.Random, depth: int, about: str) -> Formula:
    """A random condition; most of it is about one relation, so that its parts meet."""
    kind = rng.choice(["and", "and", "or", "or", "not"]) if depth else "lookup"
    if kind == "not":
        return ("not", formula(rng, depth - 1, about))
    if kind != "lookup":
        size = rng.randrange(2, 4)
        return (
            kind,
            *(
                formula(rng, depth - rng.randrange(1, 3) if depth > 1 else 0, about)
                for _ in range(size)
            ),
        )
    if rng.random() < 0.15:
        return ("lookup", rng.choice(RELATIONS), "isnull", rng.random() < 0.5)
    paths = [path for path in VALUES if path.startswith(about)] if rng.random() < 0.6 else [*VALUES]
    path = rng.choice(paths)
    op = rng.choice(["exact", "exact", "gt", "lte", "in"])
    value = rng.choice(VALUES[path])
    return ("lookup", path, op, rng.sample(VALUES[path], rng.randrange(3)) if op == "in" else value)


def as_q(node: Formula) -> Any:
    if node[0] == "lookup":
        return Q(**{f"{node[1]}__{node[2]}": node[3]})
    if node[0] == "not":
        return ~as_q(node[1])
    both = node[0] == "and"
    return reduce(lambda a, b: a & b if both else a | b, [as_q(child) for child in node[1:]])


class Shop:
    """The rows of all tables, and the ways between them."""

    def __init__(self, tables: dict[type[Model], list[Row]], links: list[tuple[int, int]]) -> None:
        self.tables = {model: {row["id"]: row for row in rows} for model, rows in tables.items()}
        self.links = links

    def related(self, model: type[Model], row: Row | None, name: str) -> tuple[Any, list[Row]]:
        """The model that a relation leads to, and the rows there."""
        one = {"author": Author, "editor": Author, "country": Country}.get(name)
        if one is not None:
            key = None if row is None else row[f"{name}_id"]
            return one, [] if key is None else [self.tables[one][key]]
        target = {"comments": Comment, "tags": Tag, "posts": Post}[name]
        if row is None:
            return target, []
        if target is Tag or model is Tag:
            here, there = (0, 1) if model is Post else (1, 0)
            keys = [link[there] for link in self.links if link[here] == row["id"]]
            return target, [self.tables[target][key] for key in keys]
        column = "post_id" if target is Comment else "author_id"
        return target, [r for r in self.tables[target].values() if r[column] == row["id"]]

    def selects(self, row: Row, node: Formula) -> bool:
        """Return True if some combination of related rows meets a condition."""
        return any(self._met(row, node, chosen) for chosen in self._choices(row, ways(node)))

    def _choices(self, row: Row, left: list[str]) -> Iterator[dict[str, Any]]:
        if not left:
            yield {}
            return
        for chosen in self._choices(row, left[:-1]):
            before, _, name = left[-1].rpartition("__")
            model, here = self._at(row, before, chosen)
            target, rows = self.related(model, here, name)
            for found in rows or [None]:
                yield {**chosen, left[-1]: (target, found)}

    def _at(self, row: Row, path: str, chosen: dict[str, Any]) -> tuple[Any, Row | None]:
        if not path:
            return Post, row
        if path in chosen:
            return chosen[path]
        before, _, name = path.rpartition("__")
        model, here = self._at(row, before, chosen)
        target, rows = self.related(model, here, name)
        return target, rows[0] if rows else None

    def _met(self, row: Row, node: Formula, chosen: dict[str, Any]) -> bool:
        kind = node[0]
        if kind == "not":
            return not self.selects(row, node[1])
        if kind != "lookup":
            met = (self._met(row, child, chosen) for child in node[1:])
            return all(met) if kind == "and" else any(met)
        _, path, op, value = node
        if op == "isnull":
            return (self._at(row, path, chosen)[1] is None) is value
        before, _, column = path.rpartition("__")
        found = self._at(row, before, chosen)[1]
        known = None if found is None else found[column]
        if known is None:
            return False
        return {
            "exact": lambda: known == value,
            "gt": lambda: known > value,
            "lte": lambda: known <= value,
            "in": lambda: known in value,
        }[op]()


def ways(node: Formula) -> list[str]:
    """The ways to many rows that a condition takes, outside of what it negates; shortest first."""
    if node[0] == "not":
        return []
    if node[0] != "lookup":
        return sorted({way for child in node[1:] for way in ways(child)}, key=len)
    parts = node[1].split("__")
    return [
        "__".join(parts[: i + 1])
        for i, part in enumerate(parts)
        if part in {"comments", "tags", "posts"}
    ]


async def shop(half: Any, rng: random.Random) -> Shop:
    countries = [await half(Country.objects).create(name=name) for name in ("Peru", "Chad")]
    authors = [
        await half(Author.objects).create(
            name=rng.choice("AB"),
            age=rng.choice([None, 1, 2]),
            country=rng.choice([None, *countries]),
        )
        for _ in range(4)
    ]
    tags = [await half(Tag.objects).create(name=name) for name in ("red", "blue")]
    posts = await half(Post.objects).bulk_create(
        [
            Post(
                title=rng.choice("ab"),
                views=rng.randrange(3),
                author=rng.choice(authors),
                editor=rng.choice([None, *authors]),
            )
            for _ in range(9)
        ]
    )
    for post in posts:
        await half(post.tags).add(*rng.sample(tags, rng.randrange(3)))
    await half(Comment.objects).bulk_create(
        [
            Comment(post=rng.choice(posts[:7]), text=rng.choice("ab"), likes=rng.randrange(3))
            for _ in range(14)
        ]
    )
    models: list[type[Model]] = [Country, Author, Tag, Post, Comment]
    tables = {model: await half.rows(model.objects.values()) for model in models}
    return Shop(tables, await half.rows(Post.objects.exclude(tags=None).values_list("id", "tags")))


@pytest.mark.parametrize("seed", range(2))
async def test_random_conditions_are_answered_as_in_plain_python(
    db: Any, half: Any, seed: int
) -> None:
    rng = random.Random(seed)
    rows = await shop(half, rng)
    for _ in range(30):
        about = rng.choice(["comments", "tags", "author__posts"])
        wanted = set(rows.tables[Post])
        query = Post.objects.all()
        nodes = [formula(rng, rng.randrange(1, 4), about) for _ in range(rng.choice([1, 1, 2]))]
        for node in nodes:
            keep = rng.random() < 0.7
            query = query.filter(as_q(node)) if keep else query.exclude(as_q(node))
            met = {key for key, row in rows.tables[Post].items() if rows.selects(row, node)}
            wanted = wanted & met if keep else wanted - met
        found = await half.rows(query.values_list("id", flat=True))
        assert sorted(found) == sorted(wanted), nodes
