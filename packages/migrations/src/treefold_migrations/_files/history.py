"""History: the graph of migrations, in order, with hashes and the states between them."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from treefold_migrations._base.errors import HistoryError, StateError
from treefold_migrations._files.migration import Migration
from treefold_migrations._operations.base import Operation
from treefold_migrations._state.schema_state import SchemaState


@dataclass(frozen=True, slots=True)
class LoadedMigration:
    """A migration with its name and file; `part` are the operations that one database has of it,
    None for all of them. The hash is always that of the whole file.
    """

    name: str
    migration: Migration
    path: Path
    part: Sequence[Operation] | None = None

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations of the file."""
        return self.migration.operations if self.part is None else self.part

    @property
    def replaces(self) -> dict[str, str]:
        """The names and hashes of the files that it stands for."""
        return dict(self.migration.replaces)


class History:
    """All migrations of a folder.

    A squashed migration takes the place of the files that it replaces; what came after one of these
    comes after it. Its children count on the hash of the last file that it replaces, so that a
    squash leaves their hashes as they were.

    `database` is the alias of the only database whose operations it has; empty for all of them.

    Raises `HistoryError` for a parent that does not exist and for a circle.
    """

    def __init__(
        self, folder: Path, loaded: Iterable[LoadedMigration], *, database: str = ""
    ) -> None:
        self.folder = folder
        self.database = database
        self._files = {item.name: item for item in loaded}
        self._stands_for = self._map_replacements()  # the squashed file by each that it replaces
        # both files may be in the folder: until every database has the old ones, they stay
        self._kept = {n: m for n, m in self._files.items() if n not in self._stands_for}
        self._parents = {name: self._resolve_parents(item) for name, item in self._kept.items()}
        self._order = self._sort_topologically()
        # computed once they are asked for
        self._states: dict[str, SchemaState] = {}
        self._digests: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def __contains__(self, name: object) -> bool:
        return name in self._kept

    def __getitem__(self, name: str) -> LoadedMigration:
        """Return a migration by its name, or by the one of a file that it replaces."""
        found = self._kept.get(self._stands_for.get(name, name))
        if found is None:
            raise HistoryError(f"Migration {name!r} must exist; {self._suggest_names(name)}")
        return found

    @property
    def files(self) -> dict[str, LoadedMigration]:
        """All files, those included that a squashed one replaces."""
        return dict(self._files)

    def find(self, text: str) -> LoadedMigration:
        """Return the one migration whose name begins with `text`; raises `HistoryError` else."""
        if text in self._kept or text in self._stands_for:
            return self[text]
        found = [name for name in self._order if name.startswith(text)]
        if len(found) > 1:
            raise HistoryError(f"{text!r} could be {' or '.join(found)}; give the whole name")
        if not found:
            raise HistoryError(f"Migration {text!r} must exist; {self._suggest_names(text)}")
        return self._kept[found[0]]

    def order(self) -> list[LoadedMigration]:
        """Return all migrations, each after its parents; the lower number first where either
        may come.
        """
        return [self._kept[name] for name in self._order]

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the names of the migrations that come directly before one."""
        return self._parents[self[name].name]

    def heads(self) -> list[LoadedMigration]:
        """Return the migrations that none comes after; more than one is a fork."""
        before = {parent for parents in self._parents.values() for parent in parents}
        return [item for item in self.order() if item.name not in before]

    def head(self) -> LoadedMigration | None:
        """Return the last migration, or None without any.

        Raises `HistoryError` for a fork.
        """
        heads = self.heads()
        if len(heads) > 1:
            names = ", ".join(item.name for item in heads)
            raise HistoryError(
                f"The migrations fork into {names}; merge them with `migrations merge`"
            )
        return heads[0] if heads else None

    def ancestors(self, name: str) -> set[str]:
        """Return the names of all migrations before one, and its own."""
        found: set[str] = set()
        waiting = [self[name].name]
        while waiting:
            current = waiting.pop()
            if current not in found:
                found.add(current)
                waiting += self._parents[current]
        return found

    def compute_state_after(self, name: str | None = None) -> SchemaState:
        """Return the state after a migration and all before it; without a name, after all.

        Raises `StateError` for an operation that does not fit, with its file and number.
        """
        if name is None:
            return self.replay_migrations(self._order)
        before = self.ancestors(name)
        return self.replay_migrations([n for n in self._order if n in before])

    def compute_state_before(self, name: str) -> SchemaState:
        """Return the state that a migration begins with."""
        before = self.ancestors(name) - {self[name].name}
        return self.replay_migrations([n for n in self._order if n in before])

    def replay_migrations(self, names: Sequence[str]) -> SchemaState:
        """Return the state after these migrations, in this order."""
        # by the whole path: a file has another state before it on each branch
        key = "\n".join(names)
        if key not in self._states:
            state = SchemaState()
            for name in names:
                state = apply_migration_to_state(self._kept[name], state)
            self._states[key] = state
        return self._states[key]

    def compute_digest(self, name: str) -> str:
        """Return the hash of a migration, which covers its parents."""
        return self._compute_digest(self[name].name)

    def compute_accepted_digests(self, name: str, parent_digests: Sequence[str]) -> set[str]:
        """Return the hashes, of all versions, that a migration may be recorded with after parents
        that are recorded with these.
        """
        from treefold_migrations._files import hashing  # OpenSSL, which replaying does without

        item = self[name]
        given = parent_digests, item.migration, _read_source(item)
        return {hashing.compute_file_digest(*given)} | hashing.compute_legacy_digests(*given)

    def compute_digest_for_children(self, name: str) -> str:
        """Return the hash that the children of a migration count on."""
        item = self[name]
        if item.replaces:
            # files after a squash keep the hash that they were recorded with
            return list(item.replaces.values())[-1]
        return self._compute_digest(item.name)

    def _compute_digest(self, name: str) -> str:
        from treefold_migrations._files.hashing import compute_file_digest

        # in order and not by recursion: a chain of a thousand files would exceed Python's limit
        for step in self._order if name not in self._digests else ():
            if step not in self._digests:
                item = self._kept[step]
                parents = list(map(self.compute_digest_for_children, self._parents[step]))
                text = _read_source(item)
                self._digests[step] = compute_file_digest(parents, item.migration, text)
        return self._digests[name]

    def walk_states(self) -> Iterator[tuple[LoadedMigration, SchemaState, SchemaState]]:
        """Yield each migration in order, with the states before and after it."""
        state = SchemaState()
        for item in self.order():
            after = apply_migration_to_state(item, state)
            yield item, state, after
            state = after

    # -- the graph --------------------------------------------------------------------------------

    def _map_replacements(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for name, item in self._files.items():
            for replaced in item.replaces:
                other = found.setdefault(replaced, name)
                if other != name:
                    raise HistoryError(
                        f"{replaced!r} is replaced by both {other} and {name}; delete one of them"
                    )
        for replaced in found:
            found[replaced] = self._follow_replacements(replaced, found)
        return found

    def _follow_replacements(self, name: str, replacements: dict[str, str]) -> str:
        walked = {name}
        while name in replacements:  # a squashed file may be squashed again
            name = replacements[name]
            if name in walked:
                raise HistoryError(f"{name!r} replaces itself; correct `replaces`")
            walked.add(name)
        return name

    def _resolve_parents(self, item: LoadedMigration) -> tuple[str, ...]:
        parents: dict[str, None] = {}
        for name in item.migration.after:
            parent = self._stands_for.get(name, name)
            if parent not in self._kept:
                raise HistoryError(
                    f"{item.name} comes after {name!r}, which does not exist; restore that file, "
                    "or correct `after`"
                )
            # two parents may stand for one squashed file
            parents[parent] = None
        return tuple(parents)

    def _sort_topologically(self) -> list[str]:
        children: dict[str, list[str]] = {name: [] for name in self._kept}
        open_parents = {name: len(parents) for name, parents in self._parents.items()}
        for name, parents in self._parents.items():
            for parent in parents:
                children[parent].append(name)
        ready = [name for name, count in open_parents.items() if not count]
        heapq.heapify(ready)
        order: list[str] = []
        while ready:
            order.append(heapq.heappop(ready))
            for child in children[order[-1]]:
                open_parents[child] -= 1
                if not open_parents[child]:
                    heapq.heappush(ready, child)
        rest = sorted(self._kept.keys() - set(order))
        if rest:
            raise HistoryError(
                f"Migrations come after each other in a circle: {', '.join(rest)}; correct "
                "`after` in one of them"
            )
        return order

    def _suggest_names(self, name: str) -> str:
        import difflib  # only an error needs it

        if not self._order:
            return "there are no migrations yet; write the first with `makemigrations`"
        close = difflib.get_close_matches(name, self._order, n=3, cutoff=0.3)
        if close:
            return f"did you mean {' or '.join(map(repr, close))}?"
        last = ", ".join(self._order[-3:])
        return f"{'the last ones are' if len(self) > 3 else 'there are'} {last}"


def make_code_extractor(item: LoadedMigration) -> Callable[[str], str]:
    """Return a function that returns the code of a function of a file, by its name, with what that
    refers to in the file.
    """
    from treefold_migrations._files.hashing import extract_function_and_dependencies

    return functools.partial(extract_function_and_dependencies, _read_source(item))


def _read_source(item: LoadedMigration) -> str:
    return item.path.read_text(encoding="utf-8") if item.path.exists() else ""


def apply_migration_to_state(item: LoadedMigration, state: SchemaState) -> SchemaState:
    """Return the state after all operations of a migration.

    Raises `StateError` with the file and the number of the operation that does not fit.
    """
    for number, operation in enumerate(item.operations, 1):
        try:
            state = operation.apply(state)
        except StateError as error:
            raise StateError(
                f"{item.name}, operation {number} ({operation.describe()}): {error}"
            ) from error
    return state
