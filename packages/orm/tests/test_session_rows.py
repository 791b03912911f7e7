"""Sessions as rows, on both databases."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from treefold_orm import configure, registry
from treefold_orm._framework.extension import Databases
from treefold_orm._framework.session_rows import LONGEST_KEY, SessionRows, TreefoldSession
from treefold_orm._runtime.connections import _databases
from treefold_orm.testing import sandbox

if TYPE_CHECKING:
    from conftest import Place


@pytest.fixture
def store(empty: Place) -> SessionRows:
    made = Databases().session_store()
    assert made is not None
    return made


async def expire(key: str) -> None:
    """Let a row expire as if its time were over."""
    from datetime import UTC, datetime, timedelta

    past = datetime.now(UTC) - timedelta(seconds=1)
    assert await TreefoldSession.objects.filter(key=key).aupdate(expires_at=past) == 1


async def test_a_value_is_kept_replaced_and_removed(store: SessionRows) -> None:
    assert await store.get("k") is None
    await store.set("k", b"\x00one", seconds=60)
    assert await store.get("k") == b"\x00one"
    await store.set("k", b"two", seconds=60)
    assert await store.get("k") == b"two"
    assert await store.delete("k") is True
    assert await store.get("k") is None
    assert await store.delete("k") is False


async def test_replace_writes_only_over_a_value_that_is_there(store: SessionRows) -> None:
    assert await store.replace("k", b"one", seconds=60) is False
    assert await store.get("k") is None
    await store.set("k", b"one", seconds=60)
    assert await store.replace("k", b"two", seconds=60) is True
    assert await store.get("k") == b"two"
    await store.delete("k")
    assert await store.replace("k", b"three", seconds=60) is False
    assert await store.get("k") is None


async def test_what_has_expired_is_absent_for_every_method(store: SessionRows) -> None:
    await store.set("k", b"v", seconds=60)
    await expire("k")
    assert await store.get("k") is None
    assert await store.touch("k", seconds=60) is False
    assert await store.replace("k", b"v", seconds=60) is False
    assert await store.delete("k") is False
    assert await TreefoldSession.objects.acount() == 0


async def test_a_key_may_be_used_again_after_its_end(store: SessionRows) -> None:
    await store.set("k", b"old", seconds=60)
    await expire("k")
    await store.set("k", b"new", seconds=60)
    assert await store.get("k") == b"new"


async def test_touch_moves_the_end_and_nothing_else(store: SessionRows) -> None:
    await store.set("k", b"v", seconds=1)
    row = await TreefoldSession.objects.aget(key="k")
    assert await store.touch("k", seconds=3600) is True
    again = await TreefoldSession.objects.aget(key="k")
    assert 3590 < (again.expires_at - row.expires_at).total_seconds() < 3600
    assert again.value == b"v"
    assert await store.touch("other", seconds=60) is False


async def test_a_write_sweeps_what_has_expired_now_and_then(store: SessionRows) -> None:
    await store.set("old", b"v", seconds=60)
    await expire("old")
    await store.set("new", b"v", seconds=60)  # the sweep was a moment ago
    assert await TreefoldSession.objects.acount() == 2
    another = SessionRows()  # a process that has just started
    await another.set("newer", b"v", seconds=60)
    assert {row.key async for row in TreefoldSession.objects.aiterator()} == {"new", "newer"}


async def test_many_writers_of_one_key_leave_one_value(store: SessionRows) -> None:
    await asyncio.gather(*(store.set("k", b"%d" % n, seconds=60) for n in range(20)))
    assert await store.get("k") in [b"%d" % n for n in range(20)]
    assert await TreefoldSession.objects.acount() == 1


async def test_stores_of_processes_that_start_at_once_share_the_table(empty: Place) -> None:
    stores = [SessionRows() for _ in range(8)]
    await asyncio.gather(*(one.set(f"k{n}", b"v", seconds=60) for n, one in enumerate(stores)))
    assert await TreefoldSession.objects.acount() == 8


@pytest.mark.parametrize("key", ["", "x" * (LONGEST_KEY + 1), "a\0b"])
async def test_a_key_that_cannot_be_stored_is_refused(store: SessionRows, key: str) -> None:
    with pytest.raises(ValueError, match="A session key must have 1 to 255 characters"):
        await store.set(key, b"v", seconds=60)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e12])
async def test_an_end_that_is_none_is_refused(store: SessionRows, seconds: float) -> None:
    with pytest.raises(ValueError, match=r"seconds must be a number .* use delete\(\)"):
        await store.set("k", b"v", seconds=seconds)


@pytest.fixture
def no_database() -> Iterator[None]:
    _databases.clear()
    yield
    for database in list(_databases.values()):
        database.close()
    _databases.clear()


def test_without_a_default_database_there_is_no_store(no_database: None, tmp_path: Path) -> None:
    assert Databases().session_store() is None
    configure("sqlite", tmp_path / "x.sqlite3", alias="other")
    assert Databases().session_store() is None


def test_its_model_belongs_to_no_application(no_database: None, tmp_path: Path) -> None:
    from treefold_orm._fields.registry import _entered

    token = _entered.set("")
    registry.enter_application_folder(tmp_path)
    assert TreefoldSession._meta not in registry.list_application_models()
    _entered.reset(token)


async def test_a_test_in_a_sandbox_leaves_no_session(store: SessionRows) -> None:
    await store.set("before", b"v", seconds=60)
    with sandbox():
        await store.set("inside", b"v", seconds=60)
        assert await store.get("inside") == b"v"
    assert await store.get("inside") is None
    assert await store.get("before") == b"v"
