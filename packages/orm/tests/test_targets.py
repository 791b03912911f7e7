"""Targets of relations that are given as text: which model they mean, and when none is certain."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOP = "class Tag(Model):\n    shop = fields.TextField()\n"
BLOG = (
    "class Tag(Model):\n    blog = fields.TextField()\n    class Meta:\n        table = 'blogtag'\n"
)
OWN = "class Tag(Model):\n    own = fields.TextField()\n    class Meta:\n        table = 'own'\n"
CLASH = "class Post(Model):\n    tag = fields.ForeignKey(Tag, related_name='posts')\n"
COMPOSITE = (
    "from treefold_orm import CompositePrimaryKey\n"
    "class Tag(Model):\n"
    "    pk = CompositePrimaryKey('a', 'b')\n"
    "    a = fields.IntegerField()\n"
    "    b = fields.IntegerField()\n"
)


def post(target: str) -> str:
    return f"class Post(Model):\n    tag = fields.ForeignKey({target!r}, related_name='posts')\n"


def told(folder: Path, modules: dict[str, str], *order: str) -> str:
    """Import modules in an order, in a process of their own; return the target or the error."""
    for name, source in modules.items():
        text = f"from treefold_orm import Model, fields\n{source}"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    script = (
        "from treefold_orm import ModelError\n"
        "try:\n"
        f"    import {', '.join(order)}\n"
        "    from writing import Post\n"
        "    print(Post.tag.field.known_target.model.__module__)\n"
        "except ModelError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


AMBIGUOUS = (
    "Post points to 'Tag', which could be blog.Tag or shop.Tag: write the whole name, or give the "
    "class"
)

TOLD: list[tuple[dict[str, str], tuple[str, ...], str]] = [
    # the one there is, wherever it is defined
    ({"shop": SHOP, "writing": post("Tag")}, ("shop", "writing"), "shop"),
    ({"shop": SHOP, "writing": post("Tag")}, ("writing", "shop"), "shop"),
    # several: the order of definition never decides
    ({"shop": SHOP, "blog": BLOG, "writing": post("Tag")}, ("shop", "blog", "writing"), AMBIGUOUS),
    ({"shop": SHOP, "blog": BLOG, "writing": post("Tag")}, ("shop", "writing", "blog"), AMBIGUOUS),
    ({"shop": SHOP, "blog": BLOG, "writing": post("Tag")}, ("writing", "shop", "blog"), AMBIGUOUS),
    # the module's own comes first
    ({"shop": SHOP, "writing": BLOG + post("Tag")}, ("shop", "writing"), "writing"),
    ({"shop": SHOP, "writing": post("Tag") + BLOG}, ("writing", "shop"), "writing"),
    # also where it is defined after the text, and other modules have one or several
    ({"shop": SHOP, "writing": post("Tag") + BLOG}, ("shop", "writing"), "writing"),
    (
        {"shop": SHOP, "blog": BLOG, "writing": post("Tag") + OWN},
        ("shop", "blog", "writing"),
        "writing",
    ),
    # and where the other one could not have been the target
    ({"shop": SHOP + CLASH, "writing": post("Tag") + BLOG}, ("shop", "writing"), "writing"),
    ({"shop": COMPOSITE, "writing": post("Tag") + BLOG}, ("shop", "writing"), "writing"),
    (
        {"shop": COMPOSITE, "writing": post("Tag")},
        ("shop", "writing"),
        "Post.tag cannot use the primary key of Tag, which has several columns (a, b); keep these "
        "in fields of Post, or give Tag a key of one column",
    ),
    # the whole name is the way out
    (
        {"shop": SHOP, "blog": BLOG, "writing": post("blog.Tag")},
        ("shop", "writing", "blog"),
        "blog",
    ),
    (
        {"shop": SHOP, "blog": BLOG, "writing": post("shop.Tag")},
        ("blog", "writing", "shop"),
        "shop",
    ),
    ({"shop": SHOP, "writing": post("writing.Tag") + BLOG}, ("shop", "writing"), "writing"),
]


@pytest.mark.parametrize(("modules", "order", "wanted"), TOLD, ids=range(len(TOLD)))
def test_a_text_means_one_model_or_is_refused(
    tmp_path: Path, modules: dict[str, str], order: tuple[str, ...], wanted: str
) -> None:
    assert told(tmp_path, modules, *order) == wanted


def run(folder: Path, **modules: str) -> list[str]:
    """Import a module `script`, beside others, in a process of its own; return what it prints."""
    for name, source in modules.items():
        text = f"from treefold_orm import *\nfrom treefold_orm import fields\n{source}"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import script"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_the_other_model_keeps_nothing_of_a_relation_that_it_lost(tmp_path: Path) -> None:
    printed = run(
        tmp_path,
        shop="class Tag(Model):\n    shop = fields.TextField()\n",
        script="""
import shop
class Post(Model):
    main = fields.ForeignKey("Tag", null=True, related_name="mains")
    one = fields.OneToOneField("Tag", null=True)
    tags = fields.ManyToManyField("Tag", related_name="posts")
class Comment(Model):
    post = fields.ForeignKey(Post)
Comment._meta.lookups, Comment.objects.filter(post__main__shop="x", post__tags__shop="x")
class Tag(Model):
    own = fields.TextField()
    class Meta:
        table = "own"
names = ("mains", "post", "posts")
print([hasattr(shop.Tag, name) for name in names], sorted(shop.Tag._meta.relations))
print([hasattr(Tag, name) for name in names], sorted(Tag._meta.relations))
configure("sqlite", ":memory:")
create_all()
tag = Tag.objects.create(own="x")
post = Post.objects.create(main=tag, one=tag)
post.tags.add(tag)
print(tag.mains.count(), tag.post == post, tag.posts.get() == post, post.main is tag)
comments = Comment.objects.filter(post__main__own="x", post__tags__own="x", post__one__own="x")
Comment.objects.create(post=post)
print(comments.count(), Post.tags.through._meta.relations["tag"].target is Tag._meta)
try:
    Comment.objects.filter(post__main__shop="x")
except FieldError as error:
    print(error)
""",
    )
    assert printed == [
        "[False, False, False] []",
        "[True, True, True] ['mains', 'post', 'posts']",
        "1 True True True",
        "1 True",
        "Tag has no field 'shop': it has id, mains, own, pk, post, posts",
    ]


@pytest.mark.parametrize(
    "order", [(0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)]
)
def test_a_through_model_and_its_ends_are_found_in_any_order(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    classes = [
        "class Tag(Model):\n    name = fields.TextField()\n"
        "    class Meta:\n        table = 'own'\n",
        "class Post(Model):\n"
        "    tags = fields.ManyToManyField('Tag', through='Link', related_name='posts')\n",
        "class Link(Model):\n"
        "    post = fields.ForeignKey('Post')\n"
        "    tag = fields.ForeignKey('Tag')\n"
        "    class Meta:\n"
        "        table = 'ownlink'\n",
    ]
    printed = run(
        tmp_path,
        shop="class Tag(Model):\n    shop = fields.TextField()\n"
        "class Link(Model):\n    n = fields.IntegerField()\n",
        script="import shop\n"
        + "".join(classes[i] for i in order)
        + """
configure("sqlite", ":memory:")
create_all()
post, tag = Post.objects.create(), Tag.objects.create(name="x")
post.tags.add(tag)
print(tag.posts.count(), Post.objects.filter(tags__name="x").count(), Link.objects.count())
""",
    )
    assert printed == ["1 1 1"]
