"""A process of its own that makes random histories: some changes, and commands on them of which
some fail; from the state that each ends in, commands lead forward and back.

    python history_child.py '{"engine": ..., "address": ..., "schema": ..., "folder": ...,
        "histories": 30, "seed": 1, "changes": 6}'

Prints one JSON object: how many histories there were, how many of them ended in a file that was
half done or expanded, and what was wrong.
"""

from __future__ import annotations

import functools
import json
import random
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from failure_changes import ALL, FILLS, ROWS, STRANGER
from failure_fork import SteadyPlace, clean, fail_in_child
from failure_walk import Walk, name_of, schema_of
from failures import KINDS, Failure
from phases_changes import BASE, imports_of
from run_place import Place
from run_support import Files

from treefold_migrations import MigrationError

PATIENT = {"lock_timeout": "5", "attempts": "3", "wait": "30"}
CHANGES = [
    name
    for name, change in ALL.items()
    if name not in FILLS and not any("Run" in operation for f in change.files for operation in f)
]
"""Those that go together in any order: code of a project relies on what was there before it."""
STATEMENTS = 60
"""A failure may come at any of so many statements; most commands have fewer."""


@dataclass
class History:
    """Random changes, and random commands on them."""

    place: Place
    folder: Path
    chance: random.Random
    changes: int
    names: list[str] = field(default_factory=list[str])
    trail: list[str] = field(default_factory=list[str])
    wrong: str = ""
    stranger: bool = False

    def write(self) -> Files:
        """Write files of changes that fit each other."""
        files = Files(self.folder / "migrations")
        files.write("0001_base", *BASE, above=imports_of(*BASE))
        number = 1
        for name in self.chance.sample(CHANGES, self.changes):
            before = set(files.folder.iterdir())
            change, last = ALL[name], f"{number:04}_change" if number > 1 else "0001_base"
            for place, operations in enumerate(change.files, number + 1):
                above = imports_of(*operations, change.above) + change.above
                files.write(f"{place:04}_change", *operations, above=above, after=[last])
                last = f"{place:04}_change"
            try:
                files.history().compute_state_after()
            except MigrationError:  # such as a field that another change has dropped
                for added in set(files.folder.iterdir()) - before:
                    if added.suffix == ".py":
                        added.unlink()
                continue
            number += len(change.files)
            self.names.append(name)
        return files

    def walk(self, options: dict[str, str] = PATIENT) -> Walk:
        walk = Walk(self.place, str(self.folder), options)
        walk.stranger = self.stranger
        return walk

    def start(self) -> None:
        """Make the database before the changes."""
        clean(self.place)
        self.walk().succeed("migrate", "0001")
        for sql in ROWS:
            self.place.ask(sql.format(price=self.price))

    @property
    def price(self) -> int:
        return 100 if self.place.engine == "sqlite" else 1

    def ends(self) -> dict[str, list[str]]:
        """The schema at the end of each way, without any failure."""
        self.start()
        found: dict[str, list[str]] = {}
        for way in ("forward", "back"):
            getattr(self.walk(), way)()
            found[way] = schema_of(self.place)
        return found

    def random_command(self) -> tuple[str, list[str], dict[str, Any]]:
        lines = self.walk().listed()
        half = [line for line in lines if "half" in line]
        if half and self.chance.random() < 0.5:
            choice = "again" if "back" in half[0] else self.chance.choice(["again", "abandon"])
            destructive = {"allow_destructive": True} if choice == "abandon" else {}
            return "migrate", [choice], {"resolve": name_of(half[0]), **destructive}
        kind = self.chance.random()
        if kind < 0.3:
            return "migrate", [], {"phase": "expand"}
        if kind < 0.5:
            return "migrate", [name_of(self.chance.choice(lines))], {}
        if kind < 0.65 or all(line.startswith("[ ]") for line in lines[1:]):
            return "migrate", [], {}
        back = {"allow_destructive": self.chance.random() < 0.8}
        target = [name_of(self.chance.choice(lines))] if kind < 0.8 else []
        return "rollback", target, back

    def step(self) -> None:
        """Run a random command, which fails every second time."""
        name, args, options = self.random_command()
        kind = self.chance.choice(KINDS[self.place.engine])
        at = self.chance.randrange(1, STATEMENTS) if self.chance.random() < 0.5 else 0
        failure = Failure(kind, at, "; ".join(s.format(price=self.price) for s in STRANGER))
        self.trail.append(f"{name} {args} {options}, {kind} at statement {at}")

        def command(limits: dict[str, str]) -> Walk:
            walk = self.walk(limits)
            walk.run(name, *args, **options)
            return walk

        self.wrong = fail_in_child(failure, self.place, command)
        self.stranger = self.stranger or failure.written

    def run(self) -> bool:
        """Make the history, and go both ways from its end; return whether it ended half done."""
        self.write()
        ends = self.ends()
        self.start()
        for _ in range(self.chance.randrange(3, self.changes + 3)):
            self.step()
            if self.wrong:
                return False
        lines = self.walk().listed()
        self.trail += lines
        ways = ["forward", "back", "forward"]
        for way in ways[self.chance.randrange(2) :]:
            walk = self.walk()
            try:
                getattr(walk, way)()
                assert schema_of(self.place) == ends[way], way
                assert walk.run("drift") == 0, walk.said[-1]
            finally:
                self.trail += [f"{command} -> {code}: {said}" for command, code, said in walk.said]
                self.stranger = walk.stranger
        return any("[~]" in line for line in lines)


def main() -> None:
    given = json.loads(sys.argv[1])
    place = SteadyPlace(given["engine"], given["address"], given["schema"])
    half, wrong = 0, list[str]()
    for number in range(given["seed"], given["seed"] + given["histories"]):
        folder = Path(tempfile.mkdtemp(dir=str(given["folder"])))
        history = History(place, folder, random.Random(number), given["changes"])
        describe = functools.partial("seed {}, {}: {}\n{}".format, number)
        try:
            half += history.run()
        except Exception:
            history.wrong = traceback.format_exc(limit=-2)
        if history.wrong:
            wrong.append(describe(history.names, history.wrong, "\n".join(history.trail)))
    print(json.dumps({"histories": given["histories"], "half": half, "wrong": wrong}))


if __name__ == "__main__":
    main()
