"""Shapes of items: which columns of a model they need, and how a row becomes one.

    class AuthorOut(TypedDict):          @dataclass
        name: str                        class BookOut:
                                             id: int
                                             title: str
                                             author: AuthorOut

    compile_row_shape(Book, BookOut) loads

    Book.objects.only("id", "title").prefetch_related(
        Prefetch("author", Author.objects.only("name"))
    )

and makes `BookOut(id=1, title="Ants", author={"name": "Ann"})` of a row. A member is, the first
that applies: an annotation of the query, a relation (with a shape as its type), a column, a
property of the model (the row is then loaded whole). One that is none of these keeps its default.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._building.own_rows import load_only_fields
from treefold_orm._building.sources import Prefetch
from treefold_orm._building.starting import build_default_manager_query, build_unfiltered_query
from treefold_orm._expressions.lookups import refuse_sensitive
from treefold_orm._shapes import rows
from treefold_orm._shapes.members import has_default
from treefold_orm._shapes.rows import Around, RowPlan, enter_shape, find_item_class, is_shape

if TYPE_CHECKING:
    from treefold_orm._fields.base import AnyField
    from treefold_orm._fields.meta import Meta, Relation

T = TypeVar("T")
_Read = Callable[[Any], Any]


@dataclasses.dataclass(frozen=True, slots=True)
class _Record:
    """A class of items: its members with their types, those that may be missing, how it is made:
    of one dictionary, or of keywords.
    """

    members: Mapping[str, Any]
    optional: Collection[str]
    make: Callable[..., Any]
    takes_keywords: bool = True


def plan_items(
    meta: Meta, shape: type[T], notes: Collection[str] = (), around: Around = ()
) -> RowShape[T] | RowPlan:
    """Return how rows of a model become items of a shape; a `Shape` knows it.

    Args:
        notes: the annotations of the rows.
        around: the shapes whose related rows these are.

    Raises:
        FieldError: for a shape that the rows do not have, or that contains itself.
    """
    kind: Any = shape
    return kind.plan_rows() if is_shape(shape) else RowShape(meta, shape, notes, around)


class RowShape(Generic[T]):
    """How rows of a model become items of a shape.

    Attributes:
        columns: the columns that it reads; None for all.
        prefetches: the relations that it reads.
        make_items: makes the items of rows.
    """

    make_items: Callable[[Iterable[Any]], list[T]]

    def __init__(self, meta: Meta, shape: type[T], notes: Collection[str], around: Around) -> None:
        self._meta, self._shape, self._notes = meta, shape, notes
        self._around = enter_shape(shape, around, "a page")
        self.columns: list[AnyField] | None = []
        self.prefetches: list[Prefetch] = []
        reads: dict[str, str | _Read] = {}
        record = _read_record(shape)
        if record is None:
            raise FieldError(
                f"A page takes a dataclass, TypedDict, struct or model as its shape, got {shape!r}"
            )
        for name, annotation in record.members.items():
            read = self._plan_member(name, annotation)
            if read is not None:
                reads[name] = read
            elif name not in record.optional:
                error = meta.build_unknown_name_error(name)
                raise FieldError(f"{shape.__name__} does not fit: {error}")
        self.make_items = _compile_maker(record, reads)

    def select_rows(self, query: Any) -> Any:
        """Load only what the shape reads."""
        made = query if self.columns is None else load_only_fields(query, self.columns)
        return made.prefetch_related(*self.prefetches) if self.prefetches else made

    def _plan_member(self, name: str, annotation: Any) -> str | _Read | None:
        """Return the attribute of a row, or a function of it, that a member is; None for none."""
        meta = self._meta
        if name in self._notes or name == "pk":  # the key is always loaded
            return name
        if (relation := meta.relations.get(name)) is not None:
            return self._plan_relation(relation, annotation)
        if name in meta.fields or name in meta.by_attname:
            column = meta.require_column(name)
            refuse_sensitive(meta, column, name)
            if self.columns is not None:
                self.columns.append(column)
            return name
        if isinstance(getattr(meta.model, name, None), (property, cached_property)):
            self.columns = None
            return name
        return None

    def _plan_relation(self, relation: Relation, annotation: Any) -> _Read:
        inner = find_item_class(annotation, _is_record_class)
        if inner is None:
            key = "" if relation.to_many else f"; the key is {relation.source_field.attname!r}"
            raise FieldError(
                f"{self._shape.__name__}.{relation.name} must have a shape as its type, since it"
                f" leads to {relation.target.name}{key}"
            )
        part = plan_items(relation.target, inner, (), self._around)
        alias = relation.target.database
        build = build_default_manager_query if relation.to_many else build_unfiltered_query
        related = part.select_rows(build(relation.target, alias))
        self.prefetches.append(Prefetch(relation.name, related))
        if self.columns is not None and relation.kind == "forward":
            self.columns.append(relation.source_field)
        return lambda row: rows.read_related_items(relation, row, part.make_items)


def _compile_maker(
    record: _Record, reads: Mapping[str, str | _Read]
) -> Callable[[Iterable[Any]], Any]:
    """Return the function from rows to items: `[make(id=row.id, author=r0(row)) for row in rows]`.

    A loop over the members of each row would take four times as long.
    """
    functions: dict[str, Any] = {"make": record.make}
    parts: list[tuple[str, str]] = []
    for name, read in reads.items():
        if isinstance(read, str):
            parts.append((name, f"row.{read}"))
        else:
            functions[key := f"r{len(functions)}"] = read
            parts.append((name, f"{key}(row)"))
    # members of a class are identifiers, and so are names of a model
    if record.make is dict:
        made = f"{{{', '.join(f'{name!r}: {value}' for name, value in parts)}}}"
    elif record.takes_keywords:
        made = f"make({', '.join(f'{name}={value}' for name, value in parts)})"
    else:
        made = f"make({{{', '.join(f'{name!r}: {value}' for name, value in parts)}}})"
    return eval(f"lambda rows: [{made} for row in rows]", functions)  # noqa: S307 - see above


def _read_record(shape: Any) -> _Record | None:
    """Return the members of a class of items; None for any other type."""
    if not isinstance(shape, type):
        return None
    kind: Any = shape
    if (fields := getattr(kind, "model_fields", None)) is not None:  # pydantic
        return _read_pydantic_record(kind, fields)
    if dataclasses.is_dataclass(kind):
        own = [field for field in dataclasses.fields(kind) if field.init]
        optional = [field.name for field in own if has_default(field)]
        return _Record(_read_types(kind, [f.name for f in own]), optional, cast("Any", kind))
    if typing.is_typeddict(kind):
        return _Record(_read_types(kind), kind.__optional_keys__, dict, takes_keywords=False)
    if (names := getattr(kind, "__struct_fields__", None)) is not None:  # msgspec
        defaults = kind.__struct_defaults__
        optional = names[len(names) - len(defaults) :]
        return _Record(_read_types(kind, names), optional, kind)
    return None


def _read_pydantic_record(kind: Any, fields: Mapping[str, Any]) -> _Record:
    aliases = {
        name: alias
        for name, info in fields.items()
        if isinstance(alias := info.validation_alias or info.alias, str)
    }

    def make_model(values: dict[str, Any]) -> Any:
        try:
            return kind.model_validate({aliases.get(k, k): v for k, v in values.items()})
        except ValueError as error:
            # its text has the values, which may be secrets
            found = cast("Any", error).errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, found["loc"]))
            reason = f"{kind.__name__}.{place} does not fit: {found['msg']}"
        raise FieldError(reason)

    optional = [name for name, info in fields.items() if not info.is_required()]
    return _Record(_read_types(kind, fields), optional, make_model, takes_keywords=False)


def _read_types(kind: Any, names: Collection[str] | None = None) -> dict[str, Any]:
    found = rows.read_member_types(kind)
    return found if names is None else {name: found.get(name, Any) for name in names}


def _is_record_class(annotation: Any) -> bool:
    return _read_record(annotation) is not None
