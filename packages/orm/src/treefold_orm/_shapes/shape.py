"""`Shape`: a dataclass whose members are columns of a model.

    class AuthorOut(Shape):                  class BookOut(Shape):
        id = Author.id                           id = Book.id
        name = Author.name                       title = Book.title
                                                 author: AuthorOut

A type checker knows `BookOut(...).title` by its column. To every reader of dataclasses (bodies,
responses, documents, pages) a shape is one: its members have the types, limits and defaults of
their columns, and those that a request never sets are marked in their metadata.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import is_sensitive_name
from treefold_orm._fields.base import Field
from treefold_orm._models.many_to_many import ManyToManyField
from treefold_orm._models.related import RelatedSet
from treefold_orm._shapes.members import (
    READ_ONLY,
    UNSET,
    build_dataclass_field,
    build_member_type,
    get_default,
    has_default,
    is_read_only,
)
from treefold_orm._shapes.rows import RowPlan, list_fields
from treefold_orm._terms.columns import AnyColumn, Column, Reference, Shaped

_MISSING = dataclasses.MISSING


class Shape(Shaped):
    """Members of requests and responses, taken from columns of one model.

    `title = Book.title` is a member with the type, limits, choices, null and default of its column;
    `title: Title` one with a type of your own. `author: AuthorOut`, with the name of a relation, is
    a shape of the related row, or `list[TagOut]` of several; any other annotated member is one of a
    dataclass. A body has what a request may set: no key that the database makes, no time that is
    set by itself, no version and no relation.
    """

    __slots__ = ("__dict__", "__weakref__", "_given")

    _columns: ClassVar[Mapping[str, AnyColumn]] = {}
    _names: ClassVar[frozenset[str]] = frozenset()
    _own_defaults: ClassVar[frozenset[str]] = frozenset()
    _meta: ClassVar[Any] = None
    _plan: ClassVar[RowPlan | None] = None
    __changeable__: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        body: dict[str, Any] = dict(vars(cls))
        own: dict[str, AnyColumn] = {n: each for n, each in body.items() if _is_column(each)}
        hints = _read_own_annotations(cls)
        columns: dict[str, AnyColumn] = {**cls._columns, **own}
        _refuse_misplaced_members(cls, own)
        meta = _find_meta(cls, columns.values())
        for name, column in own.items():
            is_version = column.field is meta.version
            setattr(cls, name, build_dataclass_field(column.field, is_version=is_version))
        for name in hints if columns else ():
            if name in meta.relations or name in meta.many:
                _mark_read_only(cls, name)
            elif (field := meta.fields.get(name) or meta.by_attname.get(name)) is not None:
                columns[name] = Column(meta, name, field)
                if is_read_only(field, is_version=field is meta.version):
                    _mark_read_only(cls, name)
        types = {name: build_member_type(column.field) for name, column in own.items()}
        cls.__annotations__ = {**types, **hints}
        dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)
        for name, column in own.items():
            setattr(cls, name, _Member(column))
        cls._columns, cls._meta, cls._plan = columns, meta, None
        # a column has its default in the model too, and `role: Role = "agent"` has one of its own
        defaults = {name for name in hints if name in body}
        cls._own_defaults = (cls._own_defaults - own.keys() - hints.keys()) | defaults
        cls._names = frozenset(field.name for field in list_fields(cls))
        keys = {field.attname for field in meta.keys} if columns else set[str]()
        cls.__changeable__ = frozenset(
            field.name
            for field in list_fields(cls)
            if not field.metadata.get(READ_ONLY) and field.name not in keys
        )

    def __init__(self, **values: Any) -> None:
        if values.keys() == self._names:  # as of every row
            self._given = self._names
            self.__dict__.update(values)
            return
        fields = list_fields(self)
        if unknown := values.keys() - self._names:
            raise TypeError(f"{type(self).__name__} has no member {min(unknown)!r}")
        self._given = frozenset(values)
        for field in fields:
            if field.name in values:
                self.__dict__[field.name] = values[field.name]
            elif has_default(field):
                if not field.metadata.get(UNSET):
                    self.__dict__[field.name] = get_default(field)
            elif not field.metadata.get(READ_ONLY):
                raise TypeError(f"{type(self).__name__} must have a value for {field.name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment] # a list of JSON has none either

    def __repr__(self) -> str:
        shown = [f"{name}={self._format_value(name)}" for name in self.__dict__]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _format_value(self, name: str) -> str:
        column = self._columns.get(name)
        is_secret = is_sensitive_name(name) if column is None else column.field.sensitive
        return "***" if is_secret and self.__dict__[name] is not None else repr(self.__dict__[name])

    @classmethod
    def of(cls, row: object) -> Self:
        """Return the shape of a row, with the shapes of related rows; `only(shape)` loads both.

        A member that is neither a column nor a relation is an attribute of the row, or keeps its
        default.
        """
        plan = cls._plan or cls.plan_rows()
        made = cls.__new__(cls)  # lists make many, and all of them have all members
        made._given = cls._names
        values = made.__dict__
        values.update(zip(plan.attributes, plan.read_attributes(row), strict=True))
        for name in plan.related:
            values[name] = plan.read_related(name, row)
        for field in plan.optional:
            if hasattr(row, field.name):
                values[field.name] = getattr(row, field.name)
            else:
                values[field.name] = get_default(field)
        return made

    @classmethod
    async def aof(cls, row: object) -> Self:
        """`of` for async code, which first loads the related rows that the row lacks, such as those
        of a row that was created, or whose foreign key was assigned.

        Raises:
            FieldError: for a shape that contains itself.
        """
        await (cls._plan or cls.plan_rows()).load_related_rows(row)
        return cls.of(row)

    @classmethod
    def plan_rows(cls) -> RowPlan:
        """Return what the shape reads of rows, found at the first use: relations may come late.

        Raises:
            FieldError: the shape has no column, or no shape for a relation.
        """
        if cls._plan is None:
            if cls._meta is None:
                raise FieldError(f"{cls.__name__} must have a column, which names its model")
            cls._plan = RowPlan(cls, cls._meta, cls._columns)
        return cls._plan

    def assignable_values(self) -> Mapping[str, Any]:
        """Return the values of columns that were given or have a default of the shape's own, and
        may be set; `assign` calls it.
        """
        read_only = {f.name for f in list_fields(self) if f.metadata.get(READ_ONLY)}
        names = [n for n in self._columns if n in (self._given | self._own_defaults) - read_only]
        return {name: self.__dict__[name] for name in names}


class _Member:
    """The column where the class is asked; an instance has a value of its own, or none."""

    __slots__ = ("_column",)

    def __init__(self, column: AnyColumn) -> None:
        self._column = column

    def __get__(self, instance: object | None, owner: type[Any]) -> AnyColumn:
        if instance is None:
            return self._column
        raise AttributeError(
            f"{owner.__name__}.{self._column.path} has no value: it was not given, and the database"
            " makes it"
        )


def _is_column(value: object) -> bool:
    return isinstance(value, Column)


def _read_own_annotations(kind: type[Any]) -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        # a module of that version; names that are not there yet stay as they are
        lazy: Any = importlib.import_module("annotationlib")
        return dict(lazy.get_annotations(kind, format=lazy.Format.FORWARDREF))
    return dict(kind.__dict__.get("__annotations__", {}))  # noqa: RUF063 - of 3.11, without inspect


def _find_meta(kind: type[Any], columns: Iterable[AnyColumn]) -> Any:
    """Return the description of the model of all columns, the farthest from abstract bases."""
    found: Any = None
    for column in columns:
        meta: Any = column.meta
        if found is None or issubclass(meta.model, found.model):
            found = meta
    for column in columns:
        try:
            column.check_model(found)
        except FieldError:
            raise FieldError(
                f"{kind.__name__} must have columns of one model, got {found.name} and"
                f" {column.meta.name}; make a shape of each, and annotate the relation"
            ) from None
    return found


def _refuse_misplaced_members(kind: type[Any], columns: Mapping[str, AnyColumn]) -> None:
    for name, value in vars(kind).items():
        remedy = ""
        if isinstance(value, Reference):
            remedy = f"annotate {name}: S with a shape of the related row, or take {name}_id"
        elif isinstance(value, RelatedSet):
            remedy = f"annotate {name}: list[S] with a shape of the related rows"
        elif isinstance(value, type) and issubclass(value, Shape):
            remedy = f"annotate it, {name}: {value.__name__}"
        elif isinstance(value, (Field, ManyToManyField)):
            remedy = "take a column of a model, such as Book.title"
        elif name in columns and columns[name].path != name:
            path = columns[name].path
            remedy = f"name it {path!r}"
            if "__" in path:
                remedy = f"annotate {path.partition('__')[0]}: S with a shape of the related row"
        if remedy:
            raise FieldError(f"{kind.__name__}.{name} cannot be a member; {remedy}")


def _mark_read_only(kind: type[Any], name: str) -> None:
    """Mark an annotated member that no request sets; its default is kept."""
    given: Any = kind.__dict__.get(name, _MISSING)
    if not isinstance(given, dataclasses.Field):
        given = dataclasses.field(default=given, metadata={READ_ONLY: True})
        setattr(kind, name, given)
