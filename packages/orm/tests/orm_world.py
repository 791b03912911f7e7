"""A random shop in the database and the same shop as plain Python objects, for tests of results."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from orm_models import Author, Comment, Country, Post, Tag


@dataclass(eq=False)
class PlainAuthor:
    """An author with what belongs to it."""

    id: int
    name: str
    age: int | None
    country: str | None
    posts: list[PlainPost] = field(default_factory=list["PlainPost"])
    edited: list[PlainPost] = field(default_factory=list["PlainPost"])


@dataclass(eq=False)
class PlainPost:
    """A post with what belongs to it."""

    id: int
    title: str
    views: int
    author: PlainAuthor
    editor: PlainAuthor | None
    tags: list[str] = field(default_factory=list[str])
    likes: list[int] = field(default_factory=list[int])


@dataclass
class World:
    """All authors and posts, by key."""

    authors: list[PlainAuthor]
    posts: list[PlainPost]


def world(seed: int) -> World:
    """Fill the tables at random, and return the same rows."""
    rnd = random.Random(seed)
    countries = Country.objects.bulk_create([Country(name=name) for name in ("Peru", "Mali")])
    tags = Tag.objects.bulk_create([Tag(name=name) for name in "abcd"])
    authors: list[PlainAuthor] = []
    for number in range(8):
        country = rnd.choice([None, *countries])
        age = rnd.choice([None, 20, 30, 40])
        row = Author.objects.create(name=f"a{number}", age=age, country=country)
        authors.append(PlainAuthor(row.id, row.name, age, country and country.name))
    posts: list[PlainPost] = []
    for number in range(20):
        author, editor = rnd.choice(authors[:6]), rnd.choice([None, *authors])
        row = Post.objects.create(
            title=f"p{number}",
            views=rnd.randrange(12),
            author_id=author.id,
            editor_id=editor and editor.id,
        )
        post = PlainPost(row.id, row.title, row.views, author, editor)
        author.posts.append(post)
        if editor is not None:
            editor.edited.append(post)
        chosen = rnd.sample(tags[:3], rnd.randrange(3))
        row.tags.add(*chosen)
        post.tags = [tag.name for tag in chosen]
        post.likes = [rnd.randrange(9) for _ in range(rnd.randrange(4))]
        Comment.objects.bulk_create([Comment(post=row, text="x", likes=n) for n in post.likes])
        posts.append(post)
    return World(authors, posts)


def total(values: Iterable[Any]) -> Any:
    """The sum of the values that are there, None for none."""
    found = [value for value in values if value is not None]
    return sum(found) if found else None


def mean(values: Iterable[Any]) -> Any:
    """The mean of the values that are there, None for none."""
    found = [value for value in values if value is not None]
    return sum(found) / len(found) if found else None


def most(values: Iterable[Any]) -> Any:
    """The greatest of the values that are there, None for none."""
    return max((value for value in values if value is not None), default=None)


def least(values: Iterable[Any]) -> Any:
    """The smallest of the values that are there, None for none."""
    return min((value for value in values if value is not None), default=None)
