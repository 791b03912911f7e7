"""FrozenModels: models of the tables at one point of the history, for Python steps.

They are models of the ORM with all its queries, made from the state when the first of them is asked
for. Methods and managers of the application's models are not part of the history, so they have
none.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from treefold_migrations._state.rendering import build_table_shape
from treefold_migrations._state.schema_state import SchemaState, TableState
from treefold_orm import Model
from treefold_orm.schema import models_of


class FrozenModels:
    """Models by the name of their table: `models.author`, or `models["order line"]`; a model's own
    name, `models.Author`, works where it is the name of one table. Models of the tables `elsewhere`
    query the databases that these are in.
    """

    def __init__(
        self, state: SchemaState, *, using: str, elsewhere: Sequence[TableState] = ()
    ) -> None:
        self._state = state
        self._using = using
        self._elsewhere = elsewhere
        self._made: dict[str, type[Model]] | None = None

    def _build_models(self) -> dict[str, type[Model]]:
        # made when first asked for: a function that only runs SQL needs no models
        if self._made is None:
            shapes = {name: build_table_shape(table) for name, table in self._state.tables.items()}
            for table in self._elsewhere:
                shape = build_table_shape(table)
                shapes[table.name] = replace(shape, database=table.options.database)
            self._made = models_of(shapes, self._using)
        return self._made

    def __getitem__(self, table: str) -> Any:
        """Return the model of a table.

        Raises:
            LookupError: there is no such table at this point of the history.
        """
        made = self._build_models()
        found = made.get(table)
        if found is None:
            named = [model for model in made.values() if model.__name__ == table]
            if len(named) == 1:
                return named[0]
            close = difflib.get_close_matches(table, made, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(made) or 'none'}"
            raise LookupError(f"The schema of this migration has no table {table!r}: {hint}")
        return found

    def __getattr__(self, name: str) -> Any:
        # copy and pickle ask for __deepcopy__ and the like, before there are attributes
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self[name]
        except LookupError as error:
            raise AttributeError(str(error)) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._build_models())

    def __dir__(self) -> list[str]:
        return [*self._build_models()]
