"""How a class body becomes a model: options, inherited fields, managers, relations, and the tables
between models that nobody declared.

Runs once for each class, when it is made. What an instance does is in `_model`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from treefold_orm import _errors
from treefold_orm._errors import ModelError
from treefold_orm._expressions import Column, Reference
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import BigAutoField
from treefold_orm._fields._relations import ForeignKey, ManyToManyField, is_foreign_key
from treefold_orm._managers import Manager
from treefold_orm._meta import Meta, registry

if TYPE_CHECKING:
    from treefold_orm._model import Model

_META_OPTIONS = frozenset(
    {"table", "ordering", "get_latest_by", "constraints", "indexes", "abstract", "version_field"}
)


def define(cls: type[Model]) -> None:
    """Read a class body: make its `Meta`, bind its fields and managers, and register it."""
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
    latest_by = options.get("get_latest_by", ())
    meta.latest_by = (latest_by,) if isinstance(latest_by, str) else tuple(latest_by)
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
    if meta.indexes:
        from treefold_orm._search_index import check_search  # most models need none of it

        check_search(meta)
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
    from treefold_orm._model import Model

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
