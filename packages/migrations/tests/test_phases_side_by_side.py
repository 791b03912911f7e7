"""Expand and contract under the statements of two releases: each reads what the other writes.

The releases are models of the state before and after the change. Their threads insert, read, update
and count rows while a phase runs; a failed statement or a wrong value fails the test.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import pytest
from phases_changes import BASE, CHANGES, CHANGES_BY_ROW, Change, imports_of
from run_support import *  # noqa: F403 - fixtures

from treefold_migrations import RunError, drift
from treefold_migrations._run.frozen import FrozenModels
from treefold_migrations._run.runner import Runner
from treefold_orm import Model

ROUNDS = 3
COMPARED = frozenset({bool, dict, int, type(None)})
numbers = itertools.count(1)


class Release:
    """The statements of one release on books."""

    def __init__(self, model: type[Model], row: dict[str, Any], word: str) -> None:
        self.model: Any = model
        self._row, self._word = row, word
        self.keys: list[int] = []
        self.errors: list[BaseException] = []
        self.rounds = 0

    def write(self) -> None:
        """Insert a row, update it, and read it back."""
        number = next(numbers)
        given: dict[str, Any] = {"code": f"{self._word} {number}", "pages": number, **self._row}
        given = {k: f"{number}" if value == "numbered" else value for k, value in given.items()}
        name = "title" if "title" in self.model._meta.fields else "headline"
        given[name] = f"{self._word} {number}" + (" and more" * 6 if "title" in self._row else "")
        made = self.model.objects.create(**given)
        self.keys.append(made.pk)
        made.pages = number + 1
        made.save()
        read = self.read(made.pk)
        wanted = {**given, "pages": number + 1}
        wrong = {k: (v, read[k]) for k, v in wanted.items() if plain(read[k]) != plain(v)}
        assert wrong == {}

    def read(self, key: int) -> dict[str, Any]:
        """Read a row that either release has written."""
        found = self.model.objects.get(pk=key)
        return {name: plain(getattr(found, name)) for name in columns(self.model)}

    def work(self, stop: threading.Event) -> None:
        """Write, and read rows of both releases, until told to stop."""
        while not stop.is_set() or not self.rounds:
            try:
                self.write()
                list(self.model.objects.order_by("-id")[:20])
                self.model.objects.filter(pages__gte=0).count()
            except BaseException as error:
                self.errors.append(error)
                return
            self.rounds += 1
            stop.wait(0.02)


def columns(model: Any) -> list[str]:
    return [field.attname for field in model._meta.fields.values()]


def plain(value: Any) -> Any:
    """A value as it can be compared: members and numbers of rows as text."""
    if isinstance(value, Enum):
        value = value.value
    return value if type(value) in COMPARED else str(value)


@contextmanager
def load(*releases: Release) -> Generator[None]:
    """Run releases beside the block, from a moment before it to a moment after it."""
    stop = threading.Event()
    threads = [threading.Thread(target=one.work, args=(stop,)) for one in releases]
    for release in releases:
        release.rounds = 0
    for thread in threads:
        thread.start()
    try:
        wait_for(releases, ROUNDS)
        yield
        wait_for(releases, ROUNDS + max(one.rounds for one in releases))
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)
    assert [error for one in releases for error in one.errors] == []


def wait_for(releases: tuple[Release, ...], rounds: int) -> None:
    """Wait until each release has done so many rounds, or has failed."""
    pause = threading.Event()
    for _ in range(3000):
        if all(one.rounds >= rounds or one.errors for one in releases):
            return
        pause.wait(0.01)
    raise AssertionError("a release stands still")


def compare(reader: Release, writer: Release, expected: dict[str, Any]) -> None:
    """Compare what a release reads of the other one's rows with what that one reads itself."""
    for key in writer.keys:
        own, read = writer.read(key), reader.read(key)
        wanted = {name: own[name] for name in read if name in own}
        for name, value in expected.items():
            wanted[name] = value(own) if callable(value) else plain(value)
        wrong = {
            name: (read[name], value)
            for name, value in wanted.items()
            if (read[name] is None if value == "any" else read[name] != value)
        }
        assert wrong == {}, (key, own)


def write_files(files: Any, change: Change) -> None:
    files.write("0001_base", *BASE, above=imports_of(*BASE))
    for number, operations in enumerate(change.files, 2):
        above = imports_of(*operations, change.above) + change.above
        files.write(f"000{number}_change", *operations, above=above)


def releases(files: Any, change: Change) -> tuple[Release, Release]:
    history = files.history()
    states = history.compute_state_after("0001_base"), history.compute_state_after()
    old, new = (FrozenModels(state, using="default")["book"] for state in states)
    return Release(old, change.old_row, "Old"), Release(new, change.new_row, "New")


@pytest.mark.parametrize(
    "change",
    [c for c in (*CHANGES, *CHANGES_BY_ROW) if not c.refused],
    ids=lambda change: change.name,
)
def test_both_releases_work_between_the_phases(place: Any, files: Any, change: Change) -> None:
    write_files(files, change)
    runner = Runner("default", files.history())
    runner.migrate("0001")
    place.ask("INSERT INTO author (name) VALUES ('a') RETURNING id")
    old, new = releases(files, change)
    with load(old):
        runner.migrate(phase="expand")
    assert runner.missing() == []
    assert runner.migrate(phase="expand") == []
    assert drift(files.folder) == []
    with load(old, new):
        pass
    compare(new, old, change.between)
    compare(old, new, change.old_reads)
    with load(new):
        runner.migrate(phase="contract")
    assert runner.pending() == []
    assert runner.applied().progress == {}
    assert drift(files.folder) == []
    after = change.between if change.after is None else change.after
    for key in old.keys:
        read = new.read(key)
        wanted = {
            name: value(read) if callable(value) else plain(value)
            for name, value in after.items()
            if value != "any" and not (callable(value) and name == "headline")
        }
        assert {name: read[name] for name in wanted} == wanted


@pytest.mark.parametrize(
    "change", [c for c in CHANGES if c.refused], ids=lambda change: change.name
)
def test_expand_refuses_with_the_way(place: Any, files: Any, change: Change) -> None:
    write_files(files, change)
    runner = Runner("default", files.history())
    runner.migrate("0001")
    old = releases(files, change)[0]
    with (
        load(old),
        pytest.raises(RunError, match=f"cannot run in expand: .*{change.refused}.*nothing was"),
    ):
        runner.migrate(phase="expand")
    assert runner.applied().progress == {}
    assert drift(files.folder) == []


def test_the_table_has_forty_changes() -> None:
    passing = [change for change in CHANGES if not change.refused]
    assert len(CHANGES) >= 40
    assert len(passing) >= 24
