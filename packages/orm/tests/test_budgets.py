"""Budgets no noise of a machine can move: function calls, statements, shared plans, imports."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from orm_models import Author, Post, Tag

from treefold_orm import Count, Prefetch, Q, record_queries


def calls(function: Callable[[], Any]) -> Counter[str]:
    """Count the Python functions a call enters, by the package's module or `other`."""
    found: Counter[str] = Counter()

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            found[str(frame.f_globals.get("__name__", "other"))] += 1

    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found


def test_no_python_function_runs_per_row(db: Any) -> None:
    author = Author.objects.create(name="Ann")
    list(Post.objects.filter(title__startswith="none"))  # the plan is known before
    counts: list[int] = []
    for size in (10, 1000):
        Post.objects.bulk_create([Post(title=f"p{size}-{i}", author=author) for i in range(size)])
        query = Post.objects.filter(title__startswith=f"p{size}-")
        list(query.all())
        counts.append(sum(n for m, n in calls(lambda q=query: list(q.all())).items() if "orm" in m))
    assert counts[0] == counts[1]


async def test_one_aget_stays_within_its_budget_of_calls(db: Any) -> None:
    tag = await Tag.objects.acreate(name="a")
    await Tag.objects.aget(id=tag.id)
    found: Counter[str] = Counter()

    def profile(frame: Any, event: str, _: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.startswith("treefold_orm"):
            found[name] += 1

    sys.setprofile(profile)
    try:
        await Tag.objects.aget(id=tag.id)
    finally:
        sys.setprofile(None)
    assert sum(found.values()) <= 60


def test_equal_shapes_share_one_plan_and_values_never_split_them(db: Any) -> None:
    before = len(db.plans)
    for number in range(50):
        list(Post.objects.filter(views=number, author__name=f"x{number}")[number : number + 5])
        list(Post.objects.filter(Q(views__in=list(range(number))) | Q(title=str(number))))
        list(Author.objects.annotate(n=Count("posts", filter=Q(posts__views__gt=number))))
    assert len(db.plans) - before <= 4  # the slice that starts at 0 has no OFFSET


def test_different_shapes_never_share_a_plan(db: Any) -> None:
    conditions = [
        Q(views=1) & Q(title="x"),
        Q(views=1) | Q(title="x"),
        ~Q(views=1),
        Q(views=None),
        Q(views__gt=1),
        Q(views=1, title="x") | Q(title="y"),
        Q(views__isnull=True),
        Q(views__isnull=False),
        ~(Q(views=1) | Q(title="x")),
        ~Q(views=1) | Q(title="x"),
    ]
    texts = {Post.objects.filter(condition).explain_sql() for condition in conditions}
    assert len(texts) == len(conditions) - 1  # views=None and views__isnull=True are one thing


async def test_statements_of_nested_reads(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann")
    for number in range(10):
        post = await half(Post.objects).create(title=f"p{number}", author=author)
        await half(post.tags).add(await half(Tag.objects).create(name=f"t{number}"))
    with record_queries() as seen:
        spec = Prefetch("posts", Post.objects.select_related("editor").prefetch_related("tags"))
        await half.rows(Author.objects.prefetch_related(spec))
    assert len(seen) == 3


def test_importing_the_package_imports_no_driver_and_no_event_loop() -> None:
    code = (
        "import sys, treefold_orm; from treefold_orm import *; "
        "print([n for n in ('asyncio', 'dataclasses', 'sqlite3', 'ssl') if n in sys.modules])"
    )
    first, everything = (
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
        for text in (code.replace("from treefold_orm import *; ", ""), code)
    )
    assert first.stdout == "[]\n"
    assert everything.returncode == 0  # every public name can be had


def test_importing_the_package_is_cheap(tmp_path: Path) -> None:
    """Not much more than what it stands on: a ratio, which the load of a machine moves little."""
    code = (
        "import time; begun = time.process_time(); import asyncio, aiosqlite, ssl, decimal, uuid; "
        "base = time.process_time(); import treefold_orm; done = time.process_time(); "
        "print((done - base) / (base - begun))"
    )
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    ratios: list[float] = []
    for _ in range(6):  # the first run compiles
        words = [sys.executable, "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, check=True, env=environment)
        ratios.append(float(done.stdout))
    assert min(ratios) < 1.5


COUNTED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda counted: counted, "both"),
    (lambda counted: counted.order_by("-n")[:5], "both"),
    (lambda counted: counted.filter(n__gt=3), "both"),
    (lambda counted: counted.exclude(age=3), "postgres"),
    (lambda counted: counted.filter(age__isnull=True), "postgres"),
    (lambda counted: counted.filter(Q(age=3) | Q(age=None)), "postgres"),
    (lambda counted: counted.filter(id=3), "neither"),
    (lambda counted: counted.filter(pk__in=[3, 4]), "neither"),
    (lambda counted: counted.filter(age=3), "neither"),
    (lambda counted: counted.filter(age__gt=3), "neither"),
    (lambda counted: counted.filter(name__startswith="a", age=None), "neither"),
    (lambda counted: counted.filter(Q(age=3) | Q(name="a")), "neither"),
    (lambda counted: counted.filter(country__name="Peru"), "neither"),
    (lambda counted: counted.filter(posts__title="a"), "neither"),
    (lambda counted: counted.order_by("name")[:5], "neither"),
]


@pytest.mark.parametrize(("narrow", "grouped"), COUNTED, ids=range(len(COUNTED)))
def test_related_rows_are_grouped_once_unless_few_rows_are_left(
    db: Any, narrow: Callable[[Any], Any], grouped: str
) -> None:
    """PostgreSQL needs four times as long for a sub-select in each row where all rows are left, and
    many times as long for groups of all where few are. SQLite looks rows up faster behind any
    filter.
    """
    text = narrow(Author.objects.annotate(n=Count("posts"))).explain_sql()
    assert ("GROUP BY" in text) is (grouped in {"both", db.name})


def kept_without_a_dictionary(instances: list[Any]) -> bool:
    """True if CPython keeps the attributes in the instances, which is a quarter of the memory."""
    return not any(isinstance(held, dict) for one in instances for held in gc.get_referents(one))


@pytest.mark.parametrize("names", [(), ("author",), ("tags",), ("author", "tags")])
async def test_instances_need_no_dictionary_of_their_own(
    db: Any, half: Any, names: tuple[str, ...]
) -> None:
    """CPython shares the names of attributes among instances only if the first few had them."""
    author = await half(Author.objects).create(name="Ann")
    posts = [Post(title=f"p{i}", author=author) for i in range(100)]
    await half(Post.objects).bulk_create(posts)
    joined = await half.rows(Post.objects.select_related("author", "editor"))
    loaded = await half.rows(Post.objects.prefetch_related(*names))
    authors = await half.rows(Author.objects.prefetch_related("posts"))
    for found in (joined, loaded, authors, list(authors[0].posts.all())):
        assert kept_without_a_dictionary(found)
    assert [post.author.id for post in joined] == [author.id] * 100
    assert kept_without_a_dictionary(joined)
