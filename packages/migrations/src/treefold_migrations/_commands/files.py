"""Commands on migration files: make, squash, merge, list. None of them opens a database.

They report to `say`, a callable that takes one line, and return their findings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from treefold_migrations._base.errors import FileError
from treefold_migrations._detect.answers import Answers, Ask
from treefold_migrations._detect.differences import detect_operations
from treefold_migrations._detect.models import build_models_state
from treefold_migrations._detect.provided_tables import detect_provided_tables
from treefold_migrations._files.history import LoadedMigration
from treefold_migrations._files.loading import load_folder
from treefold_migrations._files.merging import require_mergeable_heads
from treefold_migrations._files.names import build_next_migration_name, suggest_name_words
from treefold_migrations._files.squashing import squash_until
from treefold_migrations._files.writing import render_migration_source, write_migration
from treefold_migrations._operations.base import Operation
from treefold_orm.schema import Meta

Folder = str | os.PathLike[str]
Say = Callable[[str], object]


def ignore_line(line: str) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Made:
    """The outcome of `makemigrations`: `path` is None where nothing was written."""

    operations: list[Operation]
    path: Path | None = None
    source: str = ""


def makemigrations(
    folder: Folder = "migrations",
    name: str = "",
    *,
    rename: Iterable[str] = (),
    drop: Iterable[str] = (),
    fill: Iterable[str] = (),
    empty: bool = False,
    check: bool = False,
    dry_run: bool = False,
    allow_destructive: bool = False,
    ask: Ask | None = None,
    metas: Iterable[Meta] | None = None,
    say: Say = ignore_line,
) -> Made:
    """Write the next migration, from the state of the files to the models.

    Args:
        folder: The folder of the files.
        name: Words for the name of the file; without, words of its operations.
        rename: `post:article` for a table, `post.title:headline` for a field.
        drop: `post` or `post.title`, whose data may be lost.
        fill: `post.slug:text`, the value of rows that exist.
        empty: Write a file without operations, to be filled by hand.
        check: Write nothing, and find no answers; the caller looks at `operations`.
        dry_run: Write nothing; `source` holds the text of the file.
        allow_destructive: Data of everything that is gone may be lost.
        ask: Answers a question with one of its flags; without, a question is an error.
        metas: The models; without, those of this application.
        say: Takes lines for people.

    Raises `Ambiguous` with the flags that answer, `DataLossRefused`, `HistoryError` for a fork.
    """
    history = load_folder(folder)
    head = history.head()
    answers = Answers.from_flags(
        rename=rename, drop=drop, fill=fill, allow_destructive=allow_destructive, ask=ask
    )
    operations: list[Operation] = []
    if not empty:
        operations = detect_operations(
            history.compute_state_after(), build_models_state(metas), answers
        )
        root = Path(folder).absolute().parent
        provided = detect_provided_tables(root, history) if metas is None else []
        if provided and head is not None and not operations:
            name = name or provided[0][0].words
        operations += [operation for _, operation in provided]
    if check or not (operations or empty):
        changed = "Models have changes that no migration holds:"
        say(changed if operations else "Models and migrations agree")
        for operation in operations:
            say(f"  {operation.describe()}")
        return Made(operations)
    after = [] if head is None else [head.name]
    known = history.files
    chosen = build_next_migration_name(
        known, name or suggest_name_words(operations, is_first_migration=head is None)
    )
    source = render_migration_source(after, operations)
    if dry_run:
        say(source)
        return Made(operations, None, source)
    path = write_migration(folder, chosen, after, operations)
    say(f"{path}")
    for operation in operations:
        say(f"  {operation.describe()}")
    return Made(operations, path, source)


def merge(folder: Folder = "migrations", name: str = "merge", *, say: Say = ignore_line) -> Path:
    """Write the file in which the branches of a fork meet; return its path.

    Raises `HistoryError` for branches that clash.
    """
    history = load_folder(folder)
    heads = [head.name for head in require_mergeable_heads(history)]
    chosen = build_next_migration_name(history.files, name)
    path = write_migration(folder, chosen, heads, (), title=f"merge {' and '.join(heads)}")
    say(f"{path}: merges {', '.join(heads)}")
    return path


def squash(
    target: str, folder: Folder = "migrations", name: str = "squashed", *, say: Say = ignore_line
) -> Path:
    """Write one file in the place of all files up to `target`; return its path.

    The replaced files stay; delete them when every database has them. Raises `HistoryError` for
    what cannot be squashed.
    """
    history = load_folder(folder)
    last = history.find(target)
    made = squash_until(history, last.name, lambda old, new: detect_operations(old, new))
    if len(made.replaces) < 2:
        raise FileError(f"{last.name} is the only file up to there; there is nothing to squash")
    chosen = build_next_migration_name(history.files, name)
    title = f"squash {next(iter(made.replaces))} to {last.name}"
    path = write_migration(folder, chosen, (), made.operations, replaces=made.replaces, title=title)
    again = load_folder(folder)
    say(f"{path}: replaces {len(made.replaces)} files, {len(again)} remain in order")
    return path


def list_migrations(
    folder: Folder = "migrations",
    applied: Iterable[str] | None = None,
    *,
    half: Mapping[str, str] | None = None,
    say: Say = ignore_line,
) -> list[tuple[LoadedMigration, bool | None]]:
    """Return all migrations in order, each with whether it is among `applied` (None: not known);
    `half` says of those that are half done where they stand.
    """
    known = None if applied is None else set(applied)
    found: list[tuple[LoadedMigration, bool | None]] = []
    for item in load_folder(folder).order():
        names = item.replaces.keys()
        done = None
        if known is not None:
            done = item.name in known or (bool(names) and names <= known)
        found.append((item, done))
        mark = {None: "[?]", True: "[x]", False: "[ ]"}[done]
        state = (half or {}).get(item.name, "")
        say(f"[~] {item.name}: {state}" if state else f"{mark} {item.name}")
    if not found:
        say("There are no migrations yet; `makemigrations` writes the first one")
    return found
