"""How a class body becomes a model: options, inherited fields, managers, relations, and the tables
between models that no model declares.

Runs once for each class, when it is made. Instances are in `_models/model.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from treefold_orm._base import errors
from treefold_orm._base.databases import DEFAULT, Home
from treefold_orm._base.errors import ModelError
from treefold_orm._fields.base import AnyField, Field
from treefold_orm._fields.keys import CompositePrimaryKey
from treefold_orm._fields.meta import Instance, Meta, find_owner_meta
from treefold_orm._fields.numbers import BigAutoField
from treefold_orm._fields.relations import (
    AnyForeignKey,
    ForeignKey,
    is_foreign_key,
    refuse_composite_target,
)
from treefold_orm._models.many_to_many import ManyToManyField
from treefold_orm._queries.managers import Manager
from treefold_orm._terms.columns import AnyColumn, Column, Reference

E = TypeVar("E", bound=errors.ORMError)
_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")
_META_OPTIONS = frozenset(
    {
        "table",
        "database",
        "ordering",
        "get_latest_by",
        "constraints",
        "indexes",
        "abstract",
        "managed",
        "version_field",
        "verbose_name",
        "verbose_name_plural",
        "default_manager_name",
    }
)
_ELSEWHERE = {  # options of Django's Meta that have another name or place here
    "app_label": "models are told apart by their module; leave it out",
    "apps": "models are told apart by their module; leave it out",
    "base_manager_name": "relations to one row, save() and delete() always see all rows",
    "db_table": "name the table with Meta.table",
    "db_table_comment": "write a docstring",
    "db_tablespace": "the database chooses the tablespace",
    "default_permissions": "models have no permissions",
    "default_related_name": "give each relation its related_name",
    "index_together": "add Index([...]) to Meta.indexes",
    "order_with_respect_to": "keep the position in a field, and name it in Meta.ordering",
    "permissions": "models have no permissions",
    "proxy": "share methods with an abstract model or a mixin",
    "required_db_features": "name the database of the model with Meta.database",
    "required_db_vendor": "name the database of the model with Meta.database",
    "select_on_save": "save() knows which rows exist",
    "swappable": "point relations to the model itself",
    "unique_together": "add UniqueConstraint([...]) to Meta.constraints",
}


def define_model(cls: type[Any], root: type[Any]) -> None:
    """Read a class body: make its `Meta`, bind its fields and managers, and register it.

    `root` is the base of all models.
    """
    options = _read_meta_options(cls)
    for base in cls.__mro__[1:]:
        inherited = base.__dict__.get("_meta")
        if isinstance(inherited, Meta) and not inherited.abstract:
            raise ModelError(
                f"{cls.__name__} inherits from {base.__name__}, which is not abstract: set "
                "Meta.abstract there"
            )
    table, abstract = options.get("table", cls.__name__.lower()), options.get("abstract", False)
    meta = Meta(cls, table=table, abstract=bool(abstract))
    cls._meta = meta
    _apply_options(meta, options)
    _assign_database(cls, meta)
    _add_fields(cls, meta, root)
    cls.DoesNotExist = _make_model_error_class(cls, errors.DoesNotExist)
    cls.MultipleObjectsReturned = _make_model_error_class(cls, errors.MultipleObjectsReturned)

    meta.own_saves = frozenset(
        name for name in ("save", "asave") if getattr(cls, name) is not getattr(root, name)
    )
    _bind_managers(cls, meta, options.get("default_manager_name"))
    if meta.abstract:
        return
    if meta.indexes:
        from treefold_orm._search.search_index import (
            check_search_indexes,  # most models need none of it
        )

        check_search_indexes(meta)
    version = options.get("version_field")
    if version is not None:
        meta.version = meta.fields.get(version)
        if meta.version is None:
            raise ModelError(
                f"{cls.__name__}.Meta.version_field names {version!r}, which is not a field"
            )
    preallocate_instance_attributes(cls, _list_instance_attributes(meta))
    meta.registry.add_model(meta)
    _register_relations(meta, root)
    meta.registry.resolve_pending_targets()
    if meta.constraints or meta.indexes:
        from treefold_orm._expressions.naming import (
            check_constraint_declarations,  # most models need none of it
        )

        check_constraint_declarations(meta)


def preallocate_instance_attributes(cls: type[Instance], names: Iterable[str]) -> None:
    """Reserve the names of instance attributes in the key table that CPython shares.

    Instances keep attributes in a common table of at most 30 names as long as the first few
    instances had these names; one that comes later gives each instance a dictionary of its own:
    three times the memory, and three times as long to fill.
    """
    first = object.__new__(cls)
    for name in names:
        first.__dict__[name] = None


_STATE = ("_read_in", "_shape", "_alias")


def _list_instance_attributes(meta: Meta) -> list[str]:
    related = [f"_cached_{f.name}" for f in meta.columns if is_foreign_key(f)]
    related += [f"_cached_{name}" for name in meta.many]
    return ["_row", *(f.attname for f in meta.columns), "_batch", *related, *_STATE]


def _make_model_error_class(cls: type[Instance], base: type[E]) -> type[E]:
    place = {"__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.{base.__name__}"}
    return cast("type[E]", type(base.__name__, (base,), place))


def _read_meta_options(cls: type[Instance]) -> dict[str, Any]:
    declared = cls.__dict__.get("Meta")
    if declared is None:
        return {}
    declared_in = dict(vars(cast("type[Any]", declared)))
    options = {name: value for name, value in declared_in.items() if not name.startswith("_")}
    for name in options:
        if name not in _META_OPTIONS:
            hint = _ELSEWHERE.get(name) or f"use one of {', '.join(sorted(_META_OPTIONS))}"
            raise ModelError(f"{cls.__name__}.Meta.{name} is not an option: {hint}")
    return options


def _apply_options(meta: Meta, options: dict[str, Any]) -> None:
    meta.ordering = tuple(options.get("ordering", ()))
    latest_by = options.get("get_latest_by", ())
    meta.latest_by = (latest_by,) if isinstance(latest_by, str) else tuple(latest_by)
    meta.constraints = tuple(options.get("constraints", ()))
    meta.indexes = tuple(options.get("indexes", ()))
    meta.managed = options.get("managed", True)
    if not isinstance(meta.managed, bool):
        raise ModelError(f"{meta.name}.Meta.managed must be True or False, got {meta.managed!r}")
    spaced = _CAPITAL.sub(r" \1", meta.name).strip().lower()
    meta.verbose_name = str(options.get("verbose_name", spaced))
    meta.verbose_name_plural = str(options.get("verbose_name_plural", f"{meta.verbose_name}s"))


def _assign_database(cls: type[Any], meta: Meta) -> None:
    """Place a model where its `Meta.database` says, or that of the nearest base which has one."""
    declared: list[Any] = [base.__dict__["Meta"] for base in cls.__mro__ if "Meta" in vars(base)]
    named: list[Any] = [vars(one)["database"] for one in declared if "database" in vars(one)]
    found = named[0] if named else DEFAULT
    if not (isinstance(found, str) and found.strip()):
        raise ModelError(
            f"{meta.name}.Meta.database must be the alias of a database, got {found!r}; leave it "
            f"out for {DEFAULT!r}"
        )
    meta.database = Home(found)
    cls._alias = str(meta.database)


def _add_fields(cls: type[Any], meta: Meta, root: type[Any]) -> None:
    found: dict[str, Any] = {}
    # the farthest base first, so that the nearest declaration of a name is the last
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
    _check_field_names(cls, found, root)
    columns: dict[str, AnyField] = {n: f for n, f in found.items() if isinstance(f, Field)}
    composite = _find_composite_key(cls)
    if not (meta.abstract or composite or any(f.primary_key for f in columns.values())):
        key = BigAutoField()
        cls.id = key
        columns = {"id": key, **columns}
    for name, field in columns.items():
        meta.add_field(field, name)
        kind: Any = Reference if is_foreign_key(field) else Column
        field.column = kind(meta, name, field)
        if is_foreign_key(field):
            setattr(cls, field.attname, _KeyColumn(field))
        if field.has_labels:
            _add_display_method(cls, field)
    if composite is not None and not meta.abstract:
        meta.set_composite_key(composite.names)
        meta.pk.column = Column(meta, "pk", meta.pk)
    for name, field in found.items():
        if isinstance(field, ManyToManyField):
            field.bind(meta, name)


def _find_composite_key(cls: type[Instance]) -> CompositePrimaryKey | None:
    for name, value in cls.__dict__.items():
        if isinstance(value, CompositePrimaryKey) and name != "pk":
            raise ModelError(
                f"{cls.__name__}.{name} must be called pk: a model has one primary key"
            )
    declared = next(base.__dict__["pk"] for base in cls.__mro__ if "pk" in base.__dict__)
    return declared if isinstance(declared, CompositePrimaryKey) else None


def _check_field_names(cls: type[Any], found: dict[str, Any], root: type[Any]) -> None:
    for name, field in found.items():
        keep = f" and keep the column with db_column={name!r}" if isinstance(field, Field) else ""
        if not name.startswith("_") and name in root.__dict__ and name != "pk":
            raise ModelError(
                f"{cls.__name__}.{name} cannot be a field name: every model has an attribute of "
                f"that name; choose another name{keep}"
            )
        if not isinstance(cls.__dict__.get(name), (Field, ManyToManyField)):
            raise ModelError(
                f"{cls.__name__}.{name} cannot replace the inherited field of that name, got "
                f"{type(cls.__dict__[name]).__name__}; set it to None to drop the field, or rename "
                "it"
            )
        attname = f"{name}_id" if isinstance(field, ForeignKey) else name
        other: Any = cls.__dict__.get(attname, field)
        if other is not field and not isinstance(other, (Field, _KeyColumn)):
            raise ModelError(
                f"{cls.__name__}.{attname} is the key of {cls.__name__}.{name}, got a "
                f"{type(other).__name__} of that name; rename one"
            )


def _add_display_method(cls: type[Instance], field: AnyField) -> None:
    def display_label(self: Instance) -> str | None:
        return field.find_label(getattr(self, field.attname))

    name = f"get_{field.name}_display"
    display_label.__name__, display_label.__qualname__ = name, f"{cls.__qualname__}.{name}"
    display_label.__doc__ = f"Return the label of the value of `{field.name}`."
    display_label.__dict__["_displays"] = field
    own = next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
    if own is None or hasattr(own, "_displays"):  # a method of the application's own stays
        setattr(cls, name, display_label)


class _KeyColumn:
    """`author_id`: the column behind a foreign key, as an expression on the class."""

    def __init__(self, field: AnyForeignKey) -> None:
        self._field = field

    def __get__(self, instance: Instance | None, owner: type[Any]) -> Any:
        if instance is None:
            return AnyColumn(find_owner_meta(self._field), self._field.attname, self._field)
        return instance._load_missing_field(self._field)


def _bind_managers(cls: type[Instance], meta: Meta, default_name: str | None) -> None:
    nearest: dict[str, Any] = {}
    for base in cls.__mro__:
        nearest = {**nearest, **{n: v for n, v in base.__dict__.items() if n not in nearest}}
    managers: dict[str, Any] = {n: v for n, v in nearest.items() if isinstance(v, Manager)}
    if default_name is not None and default_name not in managers:
        raise ModelError(
            f"{cls.__name__}.Meta.default_manager_name must name a manager of the model, got "
            f"{default_name!r}; it has {', '.join(managers) or 'none'}"
        )
    for name, manager in managers.items():
        bound = manager.bind_to_model(meta)
        setattr(cls, name, bound)
        if name == default_name or (default_name is None and meta.default_manager is None):
            meta.default_manager = bound


def _register_relations(meta: Meta, root: type[Any]) -> None:
    for field in meta.columns:
        if is_foreign_key(field):
            key = field
            meta.registry.call_when_resolved(meta, key.to, key.link_target, key.unlink_target)
    for many in meta.many.values():
        _register_many_to_many(meta, many, root)


def _register_many_to_many(meta: Meta, field: ManyToManyField[Any], root: type[Any]) -> None:
    def link_or_await_through(target: Meta) -> None:
        refuse_composite_target(meta, field.name, meta)
        refuse_composite_target(meta, field.name, target)
        field.target = target
        if field.through is None:
            field.link_target(target, _create_through_model(field, target, root))
        else:
            meta.registry.call_when_resolved(
                meta, field.through, link_through_model, field.unlink_target
            )

    def link_through_model(through: Meta) -> None:
        field.link_target(cast("Meta", field.target), through)

    meta.registry.call_when_resolved(meta, field.to, link_or_await_through, field.unlink_target)


def _create_through_model(field: ManyToManyField[Any], target: Meta, root: type[Any]) -> Meta:
    source = field.meta
    first, second = source.name.lower(), target.name.lower()
    if source is target:
        first, second = f"from_{first}", f"to_{second}"
    from treefold_orm._terms.constraints import UniqueConstraint

    options = {
        "table": f"{source.table_name}_{field.name}",
        "constraints": [UniqueConstraint([first, second])],
        "managed": source.managed,
        "database": source.database,
    }
    model = type(
        f"{source.name}_{field.name}",
        (root,),
        {
            "__module__": source.model.__module__,
            "__qualname__": f"{source.model.__qualname__}_{field.name}",
            "_space": source.space,
            "_registry": source.registry,
            "__reduce__": _reduce_through_instance,
            "_declared_as": (source.model, field.name),
            "Meta": type("Meta", (), options),
            # "+": no ways back, which would be attributes of the models that were never declared
            first: ForeignKey(source.model, related_name="+", on_delete="CASCADE"),
            second: ForeignKey(target.model, related_name="+", on_delete="CASCADE"),
        },
    )
    meta: Meta = cast("Any", model)._meta
    meta.auto_created = True
    return meta


def _reduce_through_instance(link: Any) -> tuple[Any, ...]:
    return _new_link, link._declared_as, link.__getstate__()


def _new_link(model: type[Instance], name: str) -> Instance:
    """Make an instance of a through model, which has no module to be found in, for pickle."""
    through = model._meta.relations[name].through
    assert through is not None  # noqa: S101 - a many relation always has one
    return object.__new__(through.model)
