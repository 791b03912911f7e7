"""RecordedHistory: the files of a history, beside what one database has recorded of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from treefold_migrations._base.errors import HistoryError
from treefold_migrations._files.history import History, LoadedMigration
from treefold_migrations._records.records import Applied, Progress
from treefold_orm.schema import Dialect, database_for


@dataclass(frozen=True, slots=True)
class DatabaseTarget:
    """The target of steps; `single` is True for a database in memory."""

    dialect: Dialect
    single: bool = False


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """What a run is planned from: the files, the records of one database, and that database.

    The history keeps the states and hashes of its files, so that a run computes each once.
    """

    history: History
    applied: Applied
    target: DatabaseTarget

    @classmethod
    def on_database(cls, history: History, applied: Applied, alias: str) -> RecordedHistory:
        """Return the files and records of the database behind an alias."""
        return cls(history, applied, DatabaseTarget(database_for(alias).dialect))

    @property
    def dialect(self) -> Dialect:
        """The dialect of the database."""
        return self.target.dialect

    def replace_progress(self, name: str, row: Progress | None) -> RecordedHistory:
        """Return a copy with another row of the journal for a file, or without its row."""
        rows = {key: entry for key, entry in self.applied.progress.items() if key != name}
        rows |= {} if row is None else {name: row}
        return replace(self, applied=replace(self.applied, progress=rows))

    def collect_applied_names(self) -> set[str]:
        """Return the files that are applied; a squashed one is, where all that it replaces are.

        Raises:
            HistoryError: only a part of the files that a squashed file replaces is applied.
        """
        records = self.applied.records
        made = {item.name for item in self.history.order() if item.name in records}
        for item in self.history.order():
            old = [name for name in item.replaces if name in records]
            if not old or item.name in made:
                continue
            # neither the squashed file nor the rest of the old ones leads on from there
            if len(old) < len(item.replaces):
                rest = next(name for name in item.replaces if name not in records)
                raise HistoryError(
                    f"Migration {item.name!r} stands for {old[-1]!r}, which is applied, and for "
                    f"{rest!r}, which is not: apply the files from before the squash first"
                )
            made.add(item.name)
        return made

    def list_applied_names(self) -> list[str]:
        """Return the files that are applied, in their order."""
        done = self.collect_applied_names()
        return [item.name for item in self.history.order() if item.name in done]

    def list_pending_names(self) -> list[str]:
        """Return the files that are not applied, in their order."""
        done = self.collect_applied_names()
        return [item.name for item in self.history.order() if item.name not in done]

    def list_record_names(self, item: LoadedMigration) -> list[str]:
        """Return the records of an applied file."""
        if item.name in self.applied.records or not item.replaces:
            return [item.name]
        return list(item.replaces)
