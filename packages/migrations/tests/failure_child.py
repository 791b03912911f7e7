"""A process of its own that lets migrations fail at each statement, and goes on from each state.

    python failure_child.py '{"engine": ..., "address": ..., "schema": ..., "folder": ...,
        "part": [0, 4], "courses": 10, "failures": 8, "seed": 1}'

It takes every fourth course, from the first; of those it draws 10, and of each 8 failures: null
stands for all. Prints one JSON object: how many failures were made, in how many states they ended,
and what was wrong.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from failure_changes import ALL, FILLS, ROWS, STRANGER
from failure_fork import (
    SteadyPlace,
    clean,
    drop_copy,
    fail_in_child,
    keep_copy,
    restore_copy,
)
from failure_walk import Held, Walk
from failures import KINDS, Failure, failing
from phases_changes import BASE, Change, imports_of
from run_support import Files

COURSES = ("forwards", "backwards", "expand", "contract")
PATIENT = {"lock_timeout": "5", "attempts": "3", "wait": "30"}


@dataclass
class Course:
    """A command on a change between two states, its oracle, and what was found.

    Attributes:
        start: what the database holds before the command.
        ends: what it may hold after a way forward and after a way back.
        seen: the states that failures ended in, which have been gone on from.
        copies: PostgreSQL goes back to the start by a copy of the database, which must be the
            child's own. Commands make it again elsewhere.
        wrong: what was wrong, for people.
    """

    place: SteadyPlace
    files: Files
    change: Change
    name: str
    copies: bool
    start: Held = field(init=False)
    ends: dict[str, list[Held]] = field(default_factory=dict[str, list[Held]])
    seen: set[str] = field(default_factory=set[str])
    wrong: list[str] = field(default_factory=list[str])
    failures: int = 0

    def prepare(self) -> int:
        """Make the start and the oracle; return the number of statements of the command."""
        self.build()
        self.start = Held.of(self.place)
        if self.copies or self.place.engine == "sqlite":
            keep_copy(self.place)
        counted = Failure("count", 0)
        with failing(self.place, counted):
            walk = self.command()
        assert walk.said[-1][1] == 0, f"undisturbed: {walk.said[-1]}"
        for way in ("forward", "back"):
            self.restore()
            direct = self.go(way)
            self.restore()
            self.command()
            walk = self.walk()
            through = self.go(way, walk)
            self.ends[way] = [direct, through]
            silent = not (walk.lost or self.loses or self.name == "backwards")
            assert not silent or through.rows == direct.rows, through.differences(direct)
        assert self.ends["forward"][0].schema == self.ends["forward"][1].schema
        assert self.ends["back"][0].schema == self.ends["back"][1].schema
        self.restore()
        return counted.statements

    def walk(self, options: dict[str, str] = PATIENT) -> Walk:
        return Walk(
            self.place,
            str(self.files.folder.parent),
            options,
            FILLS.get(self.change.name, []),
        )

    @property
    def loses(self) -> bool:
        """True where the change itself loses values, which `makemigrations` has asked for."""
        files = str(self.change.files)
        return any(word in files for word in ("Drop", "fill=", "using="))

    def go(self, way: str, walk: Walk | None = None) -> Held:
        getattr(walk or self.walk(), way)()
        return Held.of(self.place)

    def command(self, options: dict[str, str] = PATIENT) -> Walk:
        """Run the command of the course."""
        walk = self.walk(options)
        if self.name == "backwards":
            fills = {"fill": walk.fills} if walk.fills else {}
            walk.run("rollback", "0001", allow_destructive=True, **fills)
        else:
            walk.run("migrate", **({"phase": "expand"} if self.name == "expand" else {}))
        return walk

    # -- the start --------------------------------------------------------------------------------

    def build(self) -> None:
        """Make the database at the start of the command."""
        clean(self.place)
        walk = self.walk()
        walk.succeed("migrate", "0001")
        for sql in ROWS:
            self.place.ask(self.priced(sql))
        if self.name == "backwards":
            walk.succeed("migrate")
            self.write_values()
        elif self.name == "contract":
            walk.succeed("migrate", phase="expand")

    def priced(self, sql: str) -> str:
        return sql.format(price=100 if self.place.engine == "sqlite" else 1)

    def write_values(self) -> None:
        """Write into new columns, so that a way back loses something."""
        for name, value in self.change.new_row.items():
            if isinstance(value, str | int) and name not in ("title", "isbn", "price", "color"):
                with suppress(Exception):  # a foreign key, or a value that only one engine has
                    self.place.ask(f"UPDATE book SET {name} = '{value}' WHERE id = 1")

    def restore(self) -> None:
        """Make the database what it was at the start."""
        if self.copies or self.place.engine == "sqlite":
            restore_copy(self.place)
        elif Held.of(self.place) != self.start:
            self.build()

    # -- failures ---------------------------------------------------------------------------------

    def fail(self, kind: str, at: int) -> Failure:
        """Run the command with a failure at one statement."""
        failure = Failure(kind, at, row="; ".join(self.priced(sql) for sql in STRANGER))
        wrong = fail_in_child(failure, self.place, self.command)
        if wrong:
            self.wrong.append(f"{self.label(kind, at)}: {wrong}")
        return failure

    def try_failure(self, kind: str, at: int) -> None:
        """Run the command with a failure, and go on both ways from a new state."""
        self.failures += 1
        failure = self.fail(kind, at)
        held = Held.of(self.place)
        key = json.dumps([held.schema, held.rows, held.journal])
        is_new = held != self.start and key not in self.seen
        if is_new:
            self.seen.add(key)
            self.go_on(failure, "forward")
            self.restore()
            self.go_on(self.fail(kind, at), "back")
        if held != self.start or self.place.engine == "sqlite":
            self.restore()

    def go_on(self, failure: Failure, way: str) -> None:
        """Go on one way from the state after a failure, and compare the end."""
        walk = self.walk()
        walk.stranger = failure.written
        try:
            getattr(walk, way)()
            self.check(walk, way)
        except Exception as error:
            last = "".join(traceback.format_exception(error)[-2:])
            trail = [f"{command} -> {code}: {said}" for command, code, said in walk.said]
            label = self.label(failure.kind, failure.at)
            self.wrong.append(f"{label} {way}: {last}\n" + "\n".join(trail))

    def check(self, walk: Walk, way: str) -> None:
        """Compare an end with the oracle."""
        if walk.stranger:
            walk.remove_stranger(must_be_there=True)
        held = Held.of(self.place)
        expected = self.ends[way]
        assert held.schema == expected[0].schema, held.differences(expected[0])
        assert held.journal == expected[0].journal, (held.journal, expected[0].journal)
        same = any(held.rows == end.rows for end in expected)
        assert same or walk.lost, ("rows", held.differences(expected[0]))
        assert walk.run("drift") == 0, walk.said[-1]

    def label(self, kind: str, at: int) -> str:
        return f"{self.place.engine}, {self.change.name}, {self.name}: {kind} at statement {at}"


def courses(given: dict[str, Any], chance: random.Random) -> Iterator[Course]:
    place = SteadyPlace(given["engine"], given["address"], given["schema"])
    first, step = given["part"]
    chosen = [
        (change, name)
        for change in ALL.values()
        for name in COURSES
        if not (change.refused and name in ("expand", "contract"))
    ][first::step]
    if given["courses"] is not None:
        chosen = chance.sample(chosen, int(given["courses"]))
    for change, name in chosen:
        folder = Path(tempfile.mkdtemp(dir=str(given["folder"])))
        files = Files(folder / "migrations")
        files.write("0001_base", *BASE, above=imports_of(*BASE))
        for number, operations in enumerate(change.files, 2):
            files.write(
                f"000{number}_change",
                *operations,
                above=imports_of(*operations, change.above) + change.above,
            )
        yield Course(place, files, change, name, copies=given["courses"] is None)


def main() -> None:
    given = json.loads(sys.argv[1])
    chance = random.Random(given["seed"])
    failures, states, wrong = 0, 0, list[str]()
    for course in courses(given, chance):
        begin = time.monotonic()
        try:
            statements = course.prepare()
        except Exception as error:
            wrong.append(f"{course.label('nothing', 0)}: {error!r}")
            if course.copies:
                drop_copy(course.place)
            continue
        numbers = range(1, statements + 1)
        chosen = list(itertools.product(KINDS[course.place.engine], numbers))
        if given["failures"] is not None:
            chosen = chance.sample(chosen, given["failures"])
        for kind, at in chosen:
            course.try_failure(kind, at)
        if course.copies:
            drop_copy(course.place)
        failures, states = failures + course.failures, states + len(course.seen)
        wrong += course.wrong
        seconds = time.monotonic() - begin
        line = f"{course.failures} failures, {len(course.seen)} states, {seconds:.1f} s"
        print(f"{course.change.name}, {course.name}: {line}", file=sys.stderr)
    print(json.dumps({"failures": failures, "states": states, "wrong": wrong}))


if __name__ == "__main__":
    main()
