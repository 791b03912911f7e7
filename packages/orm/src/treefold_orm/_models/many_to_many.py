"""ManyToManyField: rows of another model, connected through a table.

No column: the relation is made when both models and the table's model exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, overload

from treefold_orm._base.errors import ModelError
from treefold_orm._fields.base import (
    MISSING,
    AnyField,
    ConstructorSignature,
    build_unknown_option_error,
    check_field_name,
)
from treefold_orm._fields.meta import Instance, Meta, Relation
from treefold_orm._fields.relations import AnyForeignKey, is_foreign_key, unregister_relations

if TYPE_CHECKING:
    from treefold_orm._models.related import ManyRelated, RelatedSet

M = TypeVar("M", bound=Instance)
M2 = TypeVar("M2", bound=Instance)


class ManyToManyField(Generic[M]):
    """Rows of another model, connected through a table of its own or the model given as `through`.

    `to` and `through` are classes or names; `related_name` names the way back (default
    `<model>_set`).
    """

    __signature__ = ConstructorSignature()

    @overload
    def __init__(
        self: ManyToManyField[M2],
        to: type[M2],
        *,
        related_name: str | None = None,
        through: Any = None,
    ) -> None: ...
    @overload
    def __init__(
        self: ManyToManyField[Any], to: str, *, related_name: str | None = None, through: Any = None
    ) -> None: ...
    def __init__(
        self, to: Any, *, related_name: str | None = None, through: Any = None, **unknown: Any
    ) -> None:
        if unknown:
            raise build_unknown_option_error(ManyToManyField, min(unknown))
        self.to: type[Instance] | str = to
        self.related_name = related_name
        self.through: type[Instance] | str | None = through
        self.name = ""
        self.meta: Meta = MISSING
        self.target: Meta | None = None
        self._made: tuple[Relation, ...] = ()

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[object]) -> RelatedSet[M]: ...
        @overload
        def __get__(self, instance: Instance, owner: type[object]) -> ManyRelated[M]: ...
        def __get__(self, instance: Instance | None, owner: type[object]) -> Any: ...

    def copy(self) -> ManyToManyField[M]:
        """An unbound twin for a model that inherits from an abstract one."""
        made = ManyToManyField(self.to, related_name=self.related_name, through=self.through)
        return cast("ManyToManyField[M]", made)

    def bind(self, meta: Meta, name: str) -> None:
        """Take the place `name` in the model described by `meta`."""
        check_field_name(meta, name)
        self.meta = meta
        self.name = name
        meta.many[name] = self

    def link_target(self, target: Meta, through: Meta) -> None:
        """Make the relation known on both sides, once target and through model exist."""
        first, second = self._find_foreign_keys(target, through)
        source = self.meta
        self._made = ()
        self._add_relation(self.name, source, target, first, second, through)
        if self.related_name is None or not self.related_name.endswith("+"):
            back_name = self.related_name or f"{source.name.lower()}_set"
            self._add_relation(back_name, target, source, second, first, through)

    def _add_relation(
        self,
        name: str,
        source: Meta,
        target: Meta,
        source_key: AnyField,
        target_key: AnyField,
        through: Meta,
    ) -> None:
        made = Relation(
            name, source, target, "many", source_key, target_key, to_many=True, through=through
        )
        self._made += (made,)
        source.add_relation(made)
        source.model._add_relation_accessor(made)

    def unlink_target(self) -> None:
        """Take the relation back from both sides."""
        unregister_relations(self._made)

    def _find_foreign_keys(self, target: Meta, through: Meta) -> tuple[AnyField, AnyField]:
        keys: list[AnyForeignKey] = [f for f in through.columns if is_foreign_key(f)]
        first = [f for f in keys if f.known_target is self.meta]
        # of a relation from a model to itself, both keys lead to one model
        second = [
            f for f in keys if f.known_target is target and f is not (first[0] if first else None)
        ]
        if not first or not second:
            raise ModelError(
                f"{through.name} needs foreign keys to both {self.meta.name} and {target.name}"
            )
        return first[0], second[0]
