"""The rows that tests of aggregates, windows and pages share: three authors, four posts, tags."""

from __future__ import annotations

from typing import Any

from orm_models import Author, Comment, Post, Tag


async def library(half: Any) -> None:
    """Ann with three posts, Bob with one, Cid with none."""
    ann = await half(Author.objects).create(name="Ann", age=30)
    bob = await half(Author.objects).create(name="Bob", age=50)
    await half(Author.objects).create(name="Cid")
    posts = [
        await half(Post.objects).create(title=title, views=views, author=author)
        for title, views, author in (
            ("a1", 1, ann),
            ("a2", 10, ann),
            ("a3", 10, ann),
            ("b1", 5, bob),
        )
    ]
    for text, likes, post in (("x", 1, 0), ("y", 2, 0), ("z", 3, 3), ("w", 10, 1)):
        await half(Comment.objects).create(text=text, likes=likes, post=posts[post])
    red = await half(Tag.objects).create(name="red")
    blue = await half(Tag.objects).create(name="blue")
    await half(posts[0].tags).add(red, blue)
    await half(posts[1].tags).add(red)
