"""The sandbox: whatever a test does, by whichever thread or loop, is gone afterwards."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from conftest import Half, Place
from orm_models import Author, Country, Post

from treefold_orm import (
    ConfigurationError,
    UniqueViolation,
    aclose_all,
    acreate_all,
    close_all,
    configure,
    create_all,
    transaction,
)
from treefold_orm._runtime.connections import _databases
from treefold_orm.testing import sandbox


async def names(half: Half) -> list[str]:
    """The names of all countries."""
    return [c.name for c in await half.rows(Country.objects.order_by("name"))]


async def test_nothing_of_a_sandbox_is_kept(db: Any, half: Half) -> None:
    await half(Country.objects).create(name="before")
    with sandbox():
        await half(Country.objects).create(name="inside")
        await half(Country.objects.filter(name="before")).delete()
        assert await names(half) == ["inside"]
    assert await names(half) == ["before"]


async def test_both_halves_and_other_loops_are_in_it(db: Any) -> None:
    with sandbox():
        await Country.objects.acreate(name="this loop")
        await asyncio.to_thread(Country.objects.create, name="a thread")

        async def elsewhere() -> list[str]:
            await Country.objects.acreate(name="other loop")
            return [c.name async for c in Country.objects.order_by("name").aiterator()]

        seen = await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
        assert seen == ["a thread", "other loop", "this loop"]
        assert await Country.objects.acount() == 3
    assert await Country.objects.acount() == 0


async def test_a_refused_statement_costs_nothing_else(db: Any, half: Half) -> None:
    with sandbox():
        await half(Country.objects).create(name="once")
        with pytest.raises(UniqueViolation, match=r"Country\.name exists already"):
            await half(Country.objects).create(name="once")
        await half(Country.objects).create(name="twice")
        assert await names(half) == ["once", "twice"]


async def test_transactions_commit_and_roll_back_as_they_would(db: Any) -> None:
    done: list[str] = []
    with sandbox():
        assert not transaction.active()
        async with transaction(isolation="serializable"):
            await Country.objects.acreate(name="kept")
            transaction.on_commit(lambda: done.append("kept"))

        @transaction()
        async def fail() -> None:
            await Country.objects.acreate(name="undone")
            transaction.on_commit(lambda: done.append("undone"))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await fail()
        assert done == ["kept"]
        assert [c.name for c in await Country.objects.all()] == ["kept"]
    assert await Country.objects.acount() == 0


def test_tables_made_inside_are_gone_too(empty: Place) -> None:
    with sandbox():
        create_all(Country)
        Country.objects.create(name="inside")
        assert Country.objects.count() == 1
    with sandbox():
        create_all(Country)
        assert Country.objects.count() == 0


async def test_requests_at_the_same_time_take_turns(db: Any) -> None:
    author = await Author.objects.acreate(name="Ann")

    async def write(number: int) -> None:
        async with transaction():
            await Post.objects.acreate(title=f"p{number}", author=author)
            await asyncio.sleep(0)
            await Post.objects.filter(title=f"p{number}").aupdate(views=number)

    with sandbox():
        await asyncio.gather(*(write(n) for n in range(20)))
        found = await Post.objects.order_by("views").values_list(Post.views, Post.title)
        assert found == [(n, f"p{n}") for n in range(20)]
    assert await Post.objects.acount() == 0


async def test_a_cancelled_request_leaves_it_usable(db: Any) -> None:
    with sandbox():
        await Country.objects.acreate(name="one")
        task = asyncio.create_task(Country.objects.acreate(name="cancelled"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})
        await Country.objects.acreate(name="two")
        assert {"one", "two"} <= {c.name for c in await Country.objects.all()}


async def test_closing_does_not_end_it(db: Any) -> None:
    with sandbox():
        await Country.objects.acreate(name="inside")
        await aclose_all()
        close_all()
        assert await Country.objects.acount() == 1


def test_no_thread_is_left(db: Any) -> None:
    with sandbox():
        Country.objects.create(name="inside")
        assert any(t.name == "treefold-sandbox" for t in threading.enumerate())
    assert not any(t.name == "treefold-sandbox" for t in threading.enumerate())


def test_it_cannot_be_left_by_configuring_anew(place: Place, db: Any) -> None:
    with sandbox("default"), pytest.raises(ConfigurationError, match="is in a sandbox"):
        place.configure()


def test_without_a_database_it_says_so() -> None:
    _databases.clear()
    with pytest.raises(ConfigurationError, match="No database is configured"), sandbox():
        pass


def test_what_cannot_be_opened_is_raised_where_the_sandbox_is(tmp_path: Path) -> None:
    configure("sqlite", tmp_path / "missing" / "x.sqlite3")
    with pytest.raises(Exception, match=r"database file .* cannot be used"), sandbox():
        pass
    _databases.clear()


async def test_tables_can_be_made_in_both_halves(empty: Place) -> None:
    with sandbox():
        await acreate_all(Country)
        assert await Country.objects.acount() == 0


def test_the_fixture_gives_each_test_a_sandbox(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        """
import pytest
from treefold_orm import Model, configure, create_all, fields

class Thing(Model):
    name = fields.CharField(max_length=10)

configure("sqlite", "things.sqlite3")
create_all()

@pytest.mark.parametrize("turn", [1, 2])
def test_starts_empty(db, turn):
    assert Thing.objects.count() == 0
    Thing.objects.create(name="x")
"""
    )
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
