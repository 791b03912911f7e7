"""The contract for tables of other packages, such as a queue, and how those packages are found.

A distribution declares a class under the entry-point group `treefold.tables`:

    [project.entry-points."treefold.tables"]
    jobs = "treefold_jobs._tables:JobTables"

A project that uses the package then gets a migration with the SQL that the class returns.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

GROUP = "treefold.tables"


class TableScripts(Protocol):
    """The tables of a package as SQL for PostgreSQL."""

    @property
    def digest(self) -> str:
        """A word that changes when the tables of another version of the package differ."""
        ...

    @property
    def make(self) -> str:
        """Creates the tables; several statements."""
        ...

    @property
    def update(self) -> Sequence[str]:
        """Brings the tables of any earlier version up to date, one statement after the other."""
        ...

    @property
    def remove(self) -> str:
        """Drops the tables; several statements."""
        ...


class TableSource(Protocol):
    """The tables of one package.

    Attributes:
        title: what they are called in messages, and with `maker` in files: "tables of jobs".
        words: the words in the name of a file that holds nothing else: "job tables".
        maker: the tool whose tables they are.
        tables: their names, which no model stands for.
    """

    title: str
    words: str
    maker: str
    tables: Collection[str]

    def find_scripts(self, root: Path) -> TableScripts | None:
        """Return the SQL, or None if the project in the folder `root` needs none of the tables."""
        ...


def load_table_sources() -> list[TableSource]:
    """Return the sources of all installed distributions, by the names of their entry points."""
    points = dict(reversed(list(_read_entry_points())))  # the first on the path has the name
    return [_load_source(points[name]) for name in sorted(points)]


def _load_source(value: str) -> TableSource:
    module, _, name = value.partition(":")
    source: Any = getattr(import_module(module), name)
    return source()


def _read_entry_points() -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each entry point of the group.

    Read from the files of the distributions, in 2 ms: to import `importlib.metadata` and to ask it
    takes 27 ms, which every `makemigrations` would pay.
    """
    heading = f"[{GROUP}]"
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue  # the standard library as an archive, or a folder that is not there
        for name in names:
            if name.endswith(".dist-info"):
                text = _read_text_or_empty(os.path.join(folder, name, "entry_points.txt"))
                if heading in text:
                    yield from _parse_section(text, heading)


def _read_text_or_empty(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def _parse_section(text: str, heading: str) -> Iterator[tuple[str, str]]:
    is_inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            is_inside = line == heading
        elif is_inside and "=" in line:
            name, _, value = line.partition("=")
            yield name.strip(), value.strip()
