"""Model: the base class, how a class body becomes a `Meta`, and what an instance knows about
itself.

An instance keeps its values in its own dictionary and the row it was loaded from by reference;
`save` compares the two. Loading what is missing is done by `_lazy`, saving by `_saving`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, overload

from treefold_orm import _errors
from treefold_orm._errors import FieldError, ModelError
from treefold_orm._expressions import Column, Reference
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import BigAutoField
from treefold_orm._fields._relations import ForeignKey, ManyToManyField, is_foreign_key
from treefold_orm._managers import Manager, ManagerAccess
from treefold_orm._meta import Meta, Relation, registry
from treefold_orm._names import check_untainted
from treefold_orm._run import arun, run

_META_OPTIONS = frozenset(
    {"table", "ordering", "constraints", "indexes", "abstract", "version_field"}
)


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

    Fields are class attributes; a `Meta` class inside says `table`, `ordering`, `constraints`,
    `indexes`, `version_field` (optimistic locking) and `abstract`. Without a key of its own a
    model gets `id`.
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
        _define(cls)

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


# -- definition -----------------------------------------------------------------------------------


def _define(cls: type[Model]) -> None:
    options = _options(cls)
    for base in cls.__mro__[1:]:
        inherited = base.__dict__.get("_meta")
        if isinstance(inherited, Meta) and not inherited.abstract:
            raise ModelError(
                f"{cls.__name__} inherits from {base.__name__}, which is not abstract: set "
                "Meta.abstract there"
            )
    meta = Meta(
        cls,
        table=options.get("table", cls.__name__.lower()),
        abstract=bool(options.get("abstract", False)),
    )
    cls._meta = meta
    meta.ordering = tuple(options.get("ordering", ()))
    meta.constraints = tuple(options.get("constraints", ()))
    meta.indexes = tuple(options.get("indexes", ()))
    _add_fields(cls, meta)
    cls.DoesNotExist = type("DoesNotExist", (_errors.DoesNotExist,), {"__module__": cls.__module__})
    cls.MultipleObjectsReturned = type(
        "MultipleObjectsReturned",
        (_errors.MultipleObjectsReturned,),
        {"__module__": cls.__module__},
    )
    _bind_managers(cls, meta)
    if meta.abstract:
        return
    version = options.get("version_field")
    if version is not None:
        meta.version = meta.fields.get(version)
        if meta.version is None:
            raise ModelError(
                f"{cls.__name__}.Meta.version_field names {version!r}, which is no field"
            )
    registry.add(meta)
    _relate(meta)
    registry.settle()


def _options(cls: type[Model]) -> dict[str, Any]:
    declared = cls.__dict__.get("Meta")
    if declared is None:
        return {}
    declared_in = dict(vars(cast("type[Any]", declared)))
    options = {name: value for name, value in declared_in.items() if not name.startswith("_")}
    for name in options:
        if name not in _META_OPTIONS:
            raise ModelError(
                f"{cls.__name__}.Meta.{name} is not an option: use one of "
                f"{', '.join(sorted(_META_OPTIONS))}"
            )
    return options


def _add_fields(cls: type[Model], meta: Meta) -> None:
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited = base.__dict__.get("_meta")
        if isinstance(inherited, Meta):
            found.update({name: field.copy() for name, field in inherited.fields.items()})
            found.update({name: field.copy() for name, field in inherited.many.items()})
    for name in list(found):
        if name in cls.__dict__ and cls.__dict__[name] is None:
            del found[name]  # a child drops an inherited field by setting it to None
        elif name not in cls.__dict__:
            setattr(cls, name, found[name])
    found.update({n: v for n, v in cls.__dict__.items() if isinstance(v, (Field, ManyToManyField))})
    columns: dict[str, Field[Any]] = {n: f for n, f in found.items() if isinstance(f, Field)}
    if not meta.abstract and not any(f.primary_key for f in columns.values()):
        key = BigAutoField()
        cls.id = key
        columns = {"id": key, **columns}
    for name, field in columns.items():
        meta.add_field(field, name)
        kind: Any = Reference if is_foreign_key(field) else Column
        field.column = kind(meta, name, field)
        if is_foreign_key(field):
            setattr(cls, field.attname, _KeyColumn(field))
    for name, field in found.items():
        if isinstance(field, ManyToManyField):
            field.bind(meta, name)


class _KeyColumn:
    """`author_id`: the column behind a foreign key, as an expression on the class."""

    def __init__(self, field: ForeignKey[Any, Any]) -> None:
        self._field = field

    def __get__(self, instance: Model | None, owner: type[Any]) -> Any:
        if instance is None:
            return Column[Any](self._field.meta, self._field.attname, self._field)
        return instance._missing_field(self._field)


def _bind_managers(cls: type[Model], meta: Meta) -> None:
    for base in reversed(cls.__mro__):
        for name, value in list(base.__dict__.items()):
            if isinstance(value, Manager):
                manager = cast("Manager[Any]", value)
                setattr(cls, name, manager.bound_to(meta))


def _relate(meta: Meta) -> None:
    for field in meta.columns:
        if is_foreign_key(field):
            key = field
            registry.when_known(meta, key.to, key.settle)
    for many in meta.many.values():
        _relate_many(meta, many)


def _relate_many(meta: Meta, field: ManyToManyField[Any]) -> None:
    def with_target(target: Meta) -> None:
        if field.through is None:
            field.settle(target, _through_model(field, target))
        else:
            registry.when_known(meta, field.through, lambda through: field.settle(target, through))

    registry.when_known(meta, field.to, with_target)


def _through_model(field: ManyToManyField[Any], target: Meta) -> Meta:
    source = field.meta
    first, second = source.name.lower(), target.name.lower()
    if source is target:
        first, second = f"from_{first}", f"to_{second}"
    from treefold_orm._constraints import UniqueConstraint

    options = type(
        "Meta",
        (),
        {
            "table": f"{source.table_name}_{field.name}",
            "constraints": [UniqueConstraint([first, second])],
        },
    )
    model = type(
        f"{source.name}_{field.name}",
        (Model,),
        {
            "__module__": source.model.__module__,
            "__qualname__": f"{source.model.__qualname__}_{field.name}",
            "_space": source.space,
            "Meta": options,
            first: ForeignKey(source.model, related_name="+", on_delete="CASCADE"),
            second: ForeignKey(target.model, related_name="+", on_delete="CASCADE"),
        },
    )
    meta: Meta = cast("Any", model)._meta
    meta.auto_created = True
    return meta
