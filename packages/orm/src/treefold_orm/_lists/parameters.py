"""A `FilterSet` as parameters of a handler: a function with one parameter for each name.

Example, of `fields = {"year": ["gte", "in"], "author__name": ["exact"]}`, `names = {"author":
"author__name"}` and `ordering = ("title",)`:

    read_shelf(*, year__gte: int | None = None, year__in: list[int] | None = None,
               author: str | None = None, order: list[Literal["title", "-title"]] | None = None,
               limit: int = 50, after: str | None = None, before: str | None = None)

Nothing of HTTP is known here: the caller reads the names from a query and documents the types and
the descriptions.
"""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal
from weakref import WeakKeyDictionary

from treefold_orm._base.errors import FieldError
from treefold_orm._fields.structured import EnumField
from treefold_orm._lists.filter_set import LIST_LOOKUPS, PAGE_NAMES, FilterSet, list_filters
from treefold_orm._lists.list_query import require_pageable
from treefold_orm._shapes.members import SCALAR_TYPES

if TYPE_CHECKING:
    from treefold_orm._expressions.lookups import Lookup
    from treefold_orm._lists.cursors import CursorSeal

_WORDS: Mapping[str, str] = {
    "exact": "is this value",
    "iexact": "is this text, in upper or lower case",
    "contains": "contains this",
    "icontains": "contains this text, in upper or lower case",
    "startswith": "starts with this text",
    "istartswith": "starts with this text, in upper or lower case",
    "endswith": "ends with this text",
    "iendswith": "ends with this text, in upper or lower case",
    "gt": "is more than this",
    "gte": "is this or more",
    "lt": "is less than this",
    "lte": "is this or less",
    "in": "is one of these values",
    "range": "is between two values, these included",
    "isnull": "has no value, or has one",
    "search": "matches this search",
}


class Description:
    """The description of a parameter, as `Doc` of PEP 727 says it."""

    def __init__(self, documentation: str) -> None:
        self.documentation = documentation


class PageSize(Description):
    """The limits of `limit`, under the names of annotated-types, which documents read.

    Args:
        most: the most items of a page.
    """

    def __init__(self, most: int) -> None:
        super().__init__(f"how many items a page has, at most {most}")
        self.ge, self.le = 1, most

    def check_field_value(self, value: int) -> int:
        """Return a size, or raise `ValueError`."""
        if not self.ge <= value <= self.le:
            raise ValueError(f"should be from {self.ge} to {self.le}")
        return value


def find_parameter_function(kind: type[FilterSet], seal: CursorSeal) -> Callable[..., FilterSet]:
    """Return the function that makes a `FilterSet` of its parameters, always the same for a seal.

    Raises:
        FieldError: for a name that no parameter can have, and an order that cannot be paged.
    """
    functions = _functions.setdefault(seal, {})
    if kind not in functions:
        functions[kind] = _build_parameter_function(kind, seal)
    return functions[kind]


_functions: WeakKeyDictionary[CursorSeal, dict[type[FilterSet], Callable[..., FilterSet]]]
_functions = WeakKeyDictionary()


def _build_parameter_function(kind: type[FilterSet], seal: CursorSeal) -> Callable[..., FilterSet]:

    def read_list(**values: Any) -> FilterSet:
        return kind({k: v for k, v in values.items() if v is not None}, seal=seal)

    meta = kind.model._meta
    require_pageable(kind.__name__, meta, (*kind.ordering, *meta.ordering))
    parameters = [*_list_filters(kind), *_list_page_parameters(kind)]
    read_list.__qualname__ = read_list.__name__ = kind.__name__

    def find_problems() -> Iterator[tuple[str, str]]:
        from treefold_orm._lists.index_findings import find_unindexed

        return find_unindexed(kind)

    read_list.find_problems = find_problems  # pyright: ignore[reportFunctionMemberAccess]
    # a function may have a signature of its own, which `inspect` reads
    read_list.__signature__ = inspect.Signature(parameters)
    return read_list


def _list_filters(kind: type[FilterSet]) -> Iterator[inspect.Parameter]:
    for name, lookup in list_filters(kind).items():
        if name in PAGE_NAMES or name in kind.ignore:
            raise FieldError(
                f"{kind.__name__} cannot have a filter {name!r}, which lists use themselves; give"
                " the field another name in `names`"
            )
        many = lookup.op in LIST_LOOKUPS
        words = f"{lookup.name.replace('__', ' ')} {_WORDS.get(lookup.op, lookup.op)}"
        if many:
            words += (
                "; two" if lookup.op == "range" else f"; at most {kind.max_list}"
            ) + ", separated by commas or repeated"
        yield _build_parameter(name, _find_type(lookup), words, many=many)
    # what the application reads itself
    for name in sorted(kind.ignore - FilterSet.ignore):
        yield _build_parameter(name, str, "")


def _list_page_parameters(kind: type[FilterSet]) -> Iterator[inspect.Parameter]:
    if kind.ordering:
        words = "the order of the rows: names, each with - for descending, separated by commas"
        terms = tuple(f"{sign}{name}" for name in kind.ordering for sign in ("", "-"))
        yield _build_parameter("order", Literal[terms], words, many=True)
    yield _build_parameter("limit", int, PageSize(kind.max_page_size), default=kind.page_size)
    for name, page in (("after", "next"), ("before", "previous")):
        words = f"the page {name} this cursor: `{page}` of a page with the same filters and order"
        yield _build_parameter(name, str, words)


def _build_parameter(
    name: str, kind: Any, words: str | Description, *, many: bool = False, default: Any = None
) -> inspect.Parameter:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise FieldError(
            f"{name!r} cannot be a parameter of a list: use a plain name that is no keyword"
        )
    annotation: Any = list[kind] if many else kind
    annotation = annotation if default is not None else annotation | None
    if words:
        words = Description(words) if isinstance(words, str) else words
        annotation = Annotated[annotation, words]
    place = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, place, default=default, annotation=annotation)


def _find_type(lookup: Lookup) -> Any:
    """Return the type of one value of a filter."""
    if lookup.op == "isnull":
        return bool
    field = lookup.field
    if lookup.custom is None and lookup.op in {"exact", "in"}:
        if isinstance(field, EnumField):
            return field.enum_class
        values = tuple(v for v in field.choices or () if isinstance(v, (str, int)))
        if values and len(values) == len(field.choices or ()):
            return Literal[values]
    # any other value is written as a text
    return str if lookup.keys is not None else SCALAR_TYPES.get(field.internal, str)
