"""Model: the base class, and what an instance knows about itself.

An instance keeps its values in its own dictionary and the row it was loaded from by reference;
`save` compares the two. Loading what is missing is done by `_lazy`, saving by `_saving`, and
`_definition` makes a `Meta` of a class body.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, overload

from treefold_orm import _errors
from treefold_orm._errors import FieldError, ModelError
from treefold_orm._expressions import Column
from treefold_orm._fields._base import Field
from treefold_orm._fields._relations import ForeignKey, is_foreign_key
from treefold_orm._managers import ManagerAccess
from treefold_orm._meta import Meta, Relation
from treefold_orm._names import check_untainted
from treefold_orm._run import arun, run


class _KeyAccess:
    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Column[Any]: ...
    @overload
    def __get__(self, instance: Model, owner: type[Any]) -> Any: ...
    def __get__(self, instance: Model | None, owner: type[Any]) -> Any:
        if instance is None:
            return owner._meta.pk.column
        return getattr(instance, owner._meta.pk.attname)

    def __set__(self, instance: Model, value: Any) -> None:
        setattr(instance, type(instance)._meta.pk.attname, value)


class Model:
    """Base of all models.

    Fields are class attributes; a `Meta` class inside says `table`, `ordering`, `get_latest_by`
    (what `latest()` goes by), `constraints`, `indexes`, `version_field` (optimistic locking) and
    `abstract`. Without a key of its own a model gets `id`.
    """

    objects = ManagerAccess()
    pk = _KeyAccess()
    if TYPE_CHECKING:
        id: Any

    DoesNotExist: ClassVar[type[_errors.DoesNotExist]] = _errors.DoesNotExist
    MultipleObjectsReturned: ClassVar[type[_errors.MultipleObjectsReturned]] = (
        _errors.MultipleObjectsReturned
    )

    _meta: ClassVar[Meta]
    _row: Any = None
    _shape: tuple[Field[Any], ...] | None = None
    _peers: Any = None
    _alias: str = "default"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        from treefold_orm._definition import define  # makes models of its own

        define(cls)

    def __init__(self, **values: Any) -> None:
        meta = self._meta
        if meta.abstract:
            raise ModelError(
                f"{meta.name} is abstract: make an instance of a model that inherits from it"
            )
        for name in values:
            if name.__class__ is not str:
                check_untainted(name)
        for field in meta.columns:
            attname = field.attname
            if attname in values:
                setattr(self, attname, values.pop(attname))
            elif field.name in values:
                setattr(self, field.name, values.pop(field.name))
            else:
                setattr(self, attname, field.get_default())
        if values:
            if "pk" in values:
                self.pk = values.pop("pk")
            for name in values:
                raise meta.unknown(name)

    # -- loading ----------------------------------------------------------------------------------

    def _missing_field(self, field: Field[Any]) -> Any:
        from treefold_orm import _lazy

        return _lazy.load_field(self, field)

    def _related_object(self, field: ForeignKey[Any, Any]) -> Any:
        cached = self.__dict__.get(f"_cached_{field.name}")
        if cached is not None and field.attname not in self.__dict__:
            return cached  # joined, while the column itself was left out
        key = getattr(self, field.attname)
        if cached is not None and (key is None or cached.pk == key or cached._row is None):
            return cached
        if key is None:
            return None
        from treefold_orm import _lazy

        return _lazy.load_related(self, self._meta.relations[field.name])

    def _set_related(self, field: ForeignKey[Any, Any], value: Any) -> None:
        if value is None:
            self.__dict__.pop(f"_cached_{field.name}", None)
            setattr(self, field.attname, None)
            return
        target = field.known_target
        if not isinstance(value, target.model):
            raise FieldError(
                f"{self._meta.name}.{field.name} takes a {target.name}, not a "
                f"{type(value).__name__}"
            )
        self.__dict__[f"_cached_{field.name}"] = value
        setattr(self, field.attname, value.pk)

    @classmethod
    def _attach_reverse(cls, relation: Relation) -> None:
        from treefold_orm._related import RelationAccess

        if relation.name not in cls.__dict__ or not isinstance(cls.__dict__[relation.name], Field):
            setattr(cls, relation.name, RelationAccess(relation))

    def is_loaded(self, name: str) -> bool:
        """Whether the field or relation `name` can be read without a query."""
        field = self._meta.fields.get(name) or self._meta.by_attname.get(name)
        if is_foreign_key(field) and name == field.name:
            return f"_cached_{name}" in self.__dict__ or self.__dict__.get(field.attname, 0) is None
        if field is not None:
            return field.attname in self.__dict__
        return f"_cached_{name}" in self.__dict__

    # -- saving -----------------------------------------------------------------------------------

    def save(
        self,
        *,
        update_fields: Sequence[str] | None = None,
        force_insert: bool = False,
        using: str | None = None,
    ) -> None:
        """Insert the row, or update the columns that changed since it was read.

        `update_fields` limits what is written. Raises `StaleObject` when the row is gone, or
        changed and the model has a version field; `FieldValueError` before any SQL when a value
        does not fit.
        """
        from treefold_orm import _saving

        alias = using or self._alias
        run(
            alias,
            _saving.save(self, alias, update_fields, force_insert=force_insert),
            "await asave()",
            write=True,
        )

    async def asave(
        self,
        *,
        update_fields: Sequence[str] | None = None,
        force_insert: bool = False,
        using: str | None = None,
    ) -> None:
        """`save` for async code."""
        from treefold_orm import _saving

        alias = using or self._alias
        await arun(
            alias, _saving.save(self, alias, update_fields, force_insert=force_insert), write=True
        )

    def delete(self, *, using: str | None = None) -> int:
        """Delete the row; return how many rows were deleted (0 if it was gone)."""
        from treefold_orm import _saving

        alias = using or self._alias
        return run(alias, _saving.delete(self, alias), "await adelete()", write=True)

    async def adelete(self, *, using: str | None = None) -> int:
        """`delete` for async code."""
        from treefold_orm import _saving

        alias = using or self._alias
        return await arun(alias, _saving.delete(self, alias), write=True)

    def refresh(self, *names: str) -> None:
        """Read the row again: all columns, or the named ones. Raises `DoesNotExist` when it is
        gone.
        """
        from treefold_orm import _saving

        run(self._alias, _saving.refresh(self, self._alias, names), "await arefresh()")

    async def arefresh(self, *names: str) -> None:
        """`refresh` for async code."""
        from treefold_orm import _saving

        await arun(self._alias, _saving.refresh(self, self._alias, names))

    def load(self, *names: str) -> Self:
        """Load relations or columns that were not part of the query; return the instance."""
        from treefold_orm import _lazy

        run(self._alias, _lazy.load_names([self], self._alias, names, peers=True), "await aload()")
        return self

    async def aload(self, *names: str) -> Self:
        """`load` for async code."""
        from treefold_orm import _lazy

        await arun(self._alias, _lazy.load_names([self], self._alias, names, peers=False))
        return self

    def assign(self, data: Any, *, fields: Sequence[str]) -> list[str]:
        """Set attributes from untrusted data: only the named `fields`; return the names that were
        set.

        The one way for request data into an instance; the key and sensitive fields must be named
        as well. Keys that are not in `fields` are ignored. Raises `FieldValueError` for values
        that do not fit.
        """
        from treefold_orm._untrusted import assign

        return assign(self, data, fields=fields)

    # -- identity ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Model) or type(other)._meta is not self._meta:
            return False
        key = self.pk
        return key is not None and key == other.pk

    def __hash__(self) -> int:
        key = self.pk
        return object.__hash__(self) if key is None else hash((self._meta.name, key))

    def __repr__(self) -> str:
        values = self.__dict__
        shown: list[str] = []
        for field in self._meta.columns:
            if field.attname in values:
                value = values[field.attname]
                masked = "***" if field.sensitive and value is not None else value
                shown.append(f"{field.attname}={_short(masked)}")
        return f"{self._meta.name}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k != "_peers"}
        if state.get("_row") is not None:
            state["_row"] = tuple(state["_row"])  # a driver's row does not travel
        return state


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
