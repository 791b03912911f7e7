"""Rows of a shape: a query that reads what the shape has, and the shape of a row.

    class BookOut(Shape):
        title = Book.title         Book.objects.only(BookOut) is
        author: AuthorOut          Book.objects.only(Book.title, Book.author.to.name)
        tags: list[TagOut]             .select_related("author")
                                       .prefetch_related(Prefetch("tags", Tag.objects.only(...)))

A member that is neither a column nor a relation is an attribute of the row: an annotation of the
query, or a property of the model, for which all columns are read.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import build_attribute_reader
from treefold_orm._building.sources import Prefetch
from treefold_orm._building.starting import build_default_manager_query
from treefold_orm._fields.meta import Meta, Relation
from treefold_orm._operations.prefetching import aprefetch_related_objects
from treefold_orm._shapes.members import has_default
from treefold_orm._terms.columns import AnyColumn, Column, Shaped

Around: TypeAlias = tuple[type[Any], ...]
"""The shapes whose related rows are read, the outermost first."""


class Related(NamedTuple):
    """A member that is the shape of related rows."""

    relation: Relation
    shape: Any


class _Reads(NamedTuple):
    """What a query of rows of one model reads, collected through its joins."""

    start: Meta
    columns: list[AnyColumn]
    joins: list[str]
    prefetches: list[Prefetch]


class RowPlan:
    """What one shape reads of the rows of its model.

    Attributes:
        meta: the model.
        columns: its columns by member.
        related: the shapes of related rows by member.
        attributes: the members that are attributes of the row.
        optional: those that keep their default where the row has no such attribute.
        reads_all: True if a member is a property, which may read any column.

    Raises:
        FieldError: for a relation whose type is no shape.
    """

    def __init__(self, shape: type[Shaped], meta: Meta, columns: Mapping[str, AnyColumn]) -> None:
        self.shape = shape
        self.meta = meta
        self.columns = columns
        self.related: dict[str, Related] = {}
        self.optional: list[dataclasses.Field[Any]] = []
        self.reads_all = False
        hints = read_member_types(shape)
        for field in list_fields(shape):
            relation = meta.relations.get(field.name)
            attribute = getattr(meta.model, field.name, None)
            self.reads_all |= isinstance(attribute, (property, cached_property))
            if relation is None or field.name in columns:
                if field.name not in columns and has_default(field):
                    self.optional.append(field)
                continue
            inner = find_item_class(hints[field.name], is_shape)
            if inner is None:
                raise FieldError(
                    f"{shape.__name__}.{field.name} must be a shape of {relation.target.name},"
                    f" got {hints[field.name]!r}"
                )
            self.related[field.name] = Related(relation, inner)
        others = {*self.related, *(field.name for field in self.optional)}
        names = [field.name for field in list_fields(shape) if field.name not in others]
        self.attributes = tuple(names)
        self.read_attributes = build_attribute_reader(names)

    def make_items(self, rows: Iterable[Any]) -> list[Any]:
        """Return the shapes of rows."""
        make = self.shape.of
        return [make(row) for row in rows]

    def select_rows(self, query: Any, around: Around = ()) -> Any:
        """Return a query that reads what the shape has.

        Args:
            around: the shapes whose related rows these are.

        Raises:
            FieldError: for a shape that contains itself: no query reads rows to any depth.
        """
        reads = _Reads(self.meta, [], [], [])
        self._collect_reads("", reads, around)
        made = query.only(*reads.columns)
        made = made.select_related(*reads.joins) if reads.joins else made
        return made.prefetch_related(*reads.prefetches) if reads.prefetches else made

    def _collect_reads(self, prefix: str, reads: _Reads, around: Around) -> None:
        around = enter_shape(self.shape, around, "only()")
        start, columns = reads.start, reads.columns
        own = {each.path: each.field for each in self.columns.values()}
        if self.reads_all:
            own |= {field.attname: field for field in self.meta.columns}
        columns.extend(Column(start, f"{prefix}{path}", own[path]) for path in own)
        for name, (relation, shape) in self.related.items():
            if relation.to_many:
                target = relation.target
                rows = build_default_manager_query(target, target.database)
                rows = shape.plan_rows().select_rows(rows, around)
                reads.prefetches.append(Prefetch(f"{prefix}{name}", rows))
                continue
            if relation.kind == "forward":
                field = relation.source_field
                columns.append(Column(start, f"{prefix}{field.attname}", field))
            reads.joins.append(f"{prefix}{name}")
            inner: RowPlan = shape.plan_rows()
            inner._collect_reads(f"{prefix}{name}__", reads, around)

    async def load_related_rows(self, row: Any) -> None:
        """Load what the shape has of other rows, where the row lacks it.

        Raises:
            FieldError: for a shape that contains itself.
        """
        if self.related:
            await aprefetch_related_objects([row], *self._list_related_paths("", ()))

    def _list_related_paths(self, prefix: str, around: Around) -> Iterator[str]:
        around = enter_shape(self.shape, around, "aof()")
        for name, (_, shape) in self.related.items():
            yield f"{prefix}{name}"
            yield from shape.plan_rows()._list_related_paths(f"{prefix}{name}__", around)

    def read_related(self, name: str, row: Any) -> Any:
        """Return the shape of a related row, None without one, or the list of several."""
        relation, shape = self.related[name]
        return read_related_items(relation, row, shape.plan_rows().make_items)


def enter_shape(shape: type[Any], around: Around, reader: str) -> Around:
    """Return the shapes around the members of a shape.

    Raises:
        FieldError: for a shape that contains itself; `reader` is what would read its rows.
    """
    if shape in around:
        raise FieldError(
            f"{shape.__name__} contains itself, and {reader} reads no rows to any depth; make a"
            " shape without the relation for the inner rows"
        )
    return (*around, shape)


def read_related_items(
    relation: Relation, row: Any, make_items: Callable[[Iterable[Any]], list[Any]]
) -> Any:
    """Return the item of a related row, None without one, or the list of several."""
    if relation.to_many:
        return make_items(getattr(row, relation.name).all())
    try:
        found = getattr(row, relation.name)
    except relation.target.model.DoesNotExist:  # the other way: no row points here
        return None
    return None if found is None else make_items([found])[0]


def read_member_types(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the members of a class.

    Raises:
        FieldError: for a name that its module does not have.
    """
    try:
        return typing.get_type_hints(kind)
    except NameError as error:
        raise FieldError(f"The types of {kind.__name__} cannot be read: {error}") from None


def find_item_class(annotation: Any, is_item_class: Callable[[Any], bool]) -> Any:
    """Return the class of items in a type: itself, beside None, or in a list."""
    if is_item_class(annotation):
        return annotation
    inner = [x for x in typing.get_args(annotation) if x not in (type(None), Ellipsis)]
    return find_item_class(inner[0], is_item_class) if len(inner) == 1 else None


def is_shape(annotation: Any) -> bool:
    """Return True for a `Shape`."""
    return isinstance(annotation, type) and issubclass(annotation, Shaped)


def list_fields(shape: Any) -> tuple[dataclasses.Field[Any], ...]:
    """Return the members of a shape as those of a dataclass."""
    return dataclasses.fields(shape)
