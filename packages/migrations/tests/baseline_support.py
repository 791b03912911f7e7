"""Baselines of real databases, and what must hold directly afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from inspect_place import Place

from treefold_migrations import baseline, drift, load_folder, makemigrations, migrate
from treefold_migrations._baseline.proving import execute_models
from treefold_migrations._inspect.live import compare_database
from treefold_migrations._run.drift import exclude_known_differences
from treefold_migrations._state.rendering import render_managed_tables
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import Meta, plan_tables, statements

MakePlace = Callable[[str], Place]


@dataclass(frozen=True)
class Taken:
    """A database that was taken over: the text of its models, these, and the state."""

    models: str
    module: ModuleType
    metas: list[Meta]
    state: SchemaState
    lines: list[str]

    @property
    def as_found(self) -> dict[str, tuple[tuple[str, str, str], ...]]:
        """What the models do not say, by table."""
        tables = self.state.tables.items()
        return {name: t.options.as_found for name, t in tables if t.options.as_found}


def take_over(place: Place, root: Path) -> Taken:
    """Write the baseline of a database, and see that nothing is left to do."""
    lines: list[str] = []
    folder, models = root / "migrations", root / f"models_{place.alias}.py"
    before = place.ask(_schema_of(place))
    made = baseline(folder, models, database=place.alias, metas=(), say=lines.append)
    assert (made.models, made.migration) == (models, folder / "0001_initial.py")
    assert place.ask(_schema_of(place)) == before
    text = models.read_text(encoding="utf-8")
    module, own = execute_models(text)
    metas = list(own)
    history = load_folder(folder)
    assert makemigrations(folder, check=True, metas=metas).operations == []
    assert [str(line) for line in drift(folder, database=place.alias)] == []
    assert migrate(folder, database=place.alias) == []
    return Taken(text, module, metas, history.compute_state_after(), lines)


def made_again(taken: Taken, place: Place) -> None:
    """Create the tables of the models in an empty database, which then has the same schema."""
    for operation in plan_tables([m for m in taken.metas if m.managed], place.dialect):
        place.do(*statements(operation, place.dialect))
    found = compare_database(render_managed_tables(taken.state, place.dialect), place.alias)
    assert [str(difference) for difference in exclude_known_differences(taken.state, found)] == []


def _schema_of(place: Place) -> str:
    if place.engine == "sqlite":
        return "SELECT * FROM sqlite_master WHERE name NOT LIKE '%treefold_migrations%' ORDER BY 1"
    return (
        "SELECT relname::text, relkind::text, relfilenode::bigint FROM pg_class WHERE relnamespace "
        "= current_schema()::regnamespace AND relname NOT LIKE '%treefold_migrations%' ORDER BY 1"
    )
