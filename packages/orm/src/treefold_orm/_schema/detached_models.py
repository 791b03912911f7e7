"""Model classes of tables that are given as data: for code that works with the schema of another
time.

They have a registry of their own, so that `create_all`, relations and messages of the application's
models never meet them. Foreign keys name tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from treefold_orm._fields.base import AnyField
from treefold_orm._fields.keys import CompositePrimaryKey
from treefold_orm._fields.meta import Instance, Meta, Registry
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._models.model import Model
from treefold_orm._queries.managers import Manager
from treefold_orm._schema.unregistered import TableShape

_ReverseName = tuple[str, str]
"""A table, and a name that its rows may have for those that point to them."""


class DetachedRegistry(Registry):
    """Models by table; a target is the name of one."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, Meta] = {}
        self._later: list[tuple[str, Callable[[Meta], None]]] = []

    def add_model(self, meta: Meta) -> None:
        """Register a model under its table."""
        self.tables[meta.table_name] = meta

    def has_model(self, meta: Meta) -> bool:
        """Return True for the model of its table."""
        return self.tables.get(meta.table_name) is meta

    def __iter__(self) -> Iterator[Meta]:
        return iter(list(self.tables.values()))

    def call_when_resolved(
        self,
        source: Meta,
        target: type[Instance] | str,
        action: Callable[[Meta], None],
        undo: Callable[[], None],
    ) -> None:
        """Run `action` once all models are there."""
        self._later.append((cast("str", target), action))

    def resolve_pending_targets(self) -> None:
        """Nothing: `connect_relations` does it, when all models are there."""

    def connect_relations(self) -> None:
        """Make the relations between the models."""
        later, self._later = self._later, []
        for table, action in later:
            action(self.tables[table])


def models_of(shapes: Mapping[str, TableShape], using: str) -> dict[str, type[Model]]:
    """Return a model for each table, whose queries go to the database behind the alias `using`, or
    to that of its shape.

    Raises `ModelError` for a shape that no model could have.
    """
    own = DetachedRegistry()
    meta = type("Meta", (), {"abstract": True})
    base = type("DetachedModel", (Model,), {"__module__": __name__, "_registry": own, "Meta": meta})
    reverse_name_counts = _count_reverse_names(shapes)
    made: dict[str, Any] = {
        name: type(
            shape.model or name, (base,), _build_class_body(shape, reverse_name_counts, using)
        )
        for name, shape in shapes.items()
    }
    own.connect_relations()
    return made


def _build_class_body(
    shape: TableShape, reverse_name_counts: Mapping[_ReverseName, int], using: str
) -> dict[str, Any]:
    fields = {name: field.copy() for name, field in shape.fields.items()}
    for field in fields.values():
        if is_foreign_key(field) and reverse_name_counts[_find_reverse_name(shape, field)] > 1:
            field.related_name = "+"
    options: dict[str, Any] = {
        "table": shape.name,
        "database": shape.database or using,
        "constraints": shape.constraints,
        "indexes": shape.indexes,
    }
    body: dict[str, Any] = {
        "__module__": __name__,
        "__doc__": f"A row of the table {shape.name!r}, as it was at one time.",
        "_space": "",
        "objects": Manager[Any](),
        "Meta": type("Meta", (), options),
        **fields,
    }
    if shape.primary_key:
        body["pk"] = CompositePrimaryKey(*shape.primary_key)
    return body


def _count_reverse_names(shapes: Mapping[str, TableShape]) -> dict[_ReverseName, int]:
    """How often each name is taken in its table, by reverse relations and by fields.

    Where `chapter` has two keys to `book` without a related_name, `("book", "chapter_set")` counts
    2: the name could lead to either, so that it leads nowhere (`related_name="+"`).
    """
    counted: Counter[_ReverseName] = Counter()
    for shape in shapes.values():
        counted.update((shape.name, name) for n in shape.fields for name in (n, f"{n}_id"))
        counted.update(
            _find_reverse_name(shape, f) for f in shape.fields.values() if is_foreign_key(f)
        )
    return counted


def _find_reverse_name(shape: TableShape, field: AnyField) -> _ReverseName:
    key = cast("Any", field)
    lower = (shape.model or shape.name).lower()
    return key.to, key.related_name or (lower if key.one_to_one else f"{lower}_set")
