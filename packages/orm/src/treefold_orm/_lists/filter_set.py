"""`FilterSet`: what a request may ask of a list.

Example, of `class Shelf(FilterSet)` with `fields = {"year": ["exact", "in"]}` and `ordering =
("title",)`, in a handler `async def handler(shelf: Shelf) -> Page[BookOut]`:

    ?year__in=1969,1974&order=-title&limit=20

    shelf.conditions()           Q(year__in=[1969, 1974])
    shelf.order()                ["-title"]
    await shelf.apage(BookOut)   Page(items=[BookOut(...), ...], next="WyI3...", previous=None)

`parameters` describes the same class as parameters of a handler, `list_query` makes the query.
"""

from __future__ import annotations

import datetime as dt
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from treefold_orm._base.errors import FieldError, FieldValueError, InvalidParameter
from treefold_orm._expressions.lookups import Lookup, parse_lookup
from treefold_orm._expressions.ordering import resolve_order
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._lists.list_query import AskedPage, build_cursor_error, order_by_names
from treefold_orm._lists.row_shapes import RowShape, plan_items
from treefold_orm._shapes.rows import RowPlan
from treefold_orm._terms.operators import Q

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery
    from treefold_orm._lists.cursors import CursorSeal
    from treefold_orm._operations.paging import Page
    from treefold_orm._queries.base_query import BaseQuery

T = TypeVar("T")
R = TypeVar("R", bound="BaseQuery[Any, Any]")

LIST_LOOKUPS = frozenset({"in", "range", "has_keys", "has_any_keys"})
"""Lookups that take several values."""
PAGE_NAMES = frozenset({"limit", "after", "before"})
"""The parameters of `page()`, beside `order`."""
_SLICE_NAMES = frozenset({"page", "page_size"})
"""Those of `apply()`."""


class FilterSet:
    """The filters and orders that a request may use on a model: declare it, take it as a parameter
    of a handler, and return a `page` of it.

    `model` is the model; `fields` maps a path to the lookups it may be used with (`{"title":
    ["exact", "icontains"], "author__name": ["exact"]}`); `names` gives a path another name in the
    address (`{"author": "author__name"}`); `ordering` lists names for the `order` parameter;
    `max_list` limits values of `in`, `page_size` and `max_page_size` the page; with `total`, each
    page counts all rows; `unindexed` names filters and orders that need no index, about which
    `treefold check --strict` says nothing then. Declared names are checked when the class is made.
    Parameters that are not declared, and values that do not fit, are refused with
    `InvalidParameter`: the request is wrong.
    """

    model: ClassVar[type[Any]]
    fields: ClassVar[Mapping[str, Sequence[str]]] = {}
    names: ClassVar[Mapping[str, str]] = {}
    ordering: ClassVar[Sequence[str]] = ()
    max_list: ClassVar[int] = 100
    page_size: ClassVar[int] = 50
    max_page_size: ClassVar[int] = 100
    total: ClassVar[bool] = False
    unindexed: ClassVar[Sequence[str]] = ()
    ignore: ClassVar[frozenset[str]] = frozenset({"order", "page", "page_size"})

    _lookups: ClassVar[dict[str, Lookup]] = {}
    _paths: ClassVar[dict[str, str]] = {}
    _shapes: ClassVar[dict[Any, RowShape[Any] | RowPlan]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        meta = cls.model._meta
        cls._lookups, cls._paths, cls._shapes = {}, {}, {}
        if unknown := set(cls.names.values()) - set(cls.fields):
            raise FieldError(f"{cls.__name__}.names has {min(unknown)!r}, which is not in fields")
        shown = {path: name for name, path in cls.names.items()}
        for name, operators in cls.fields.items():
            if isinstance(operators, str):
                raise FieldError(
                    f"{cls.__name__}.fields[{name!r}] takes a list of lookups, not one text"
                )
            for op in operators:
                parameter = f"{shown.get(name, name)}__{op}".removesuffix("__exact")
                cls._paths[parameter] = f"{name}__{op}"
                cls._lookups[parameter] = parse_lookup(meta, f"{name}__{op}")
        resolve_order(Scope(meta, []), cls.ordering)

    def __init__(self, data: Mapping[str, Any], *, seal: CursorSeal | None = None) -> None:
        """Take the parameters of `data`, such as `request.query`; `seal` signs cursors."""
        self._given = _read_parameters(data)
        self._seal = seal

    def conditions(self) -> Q:
        """The conditions the parameters stand for."""
        return Q(**self._collect_lookups())

    def _collect_lookups(self) -> dict[str, Any]:
        lookups: dict[str, Any] = {}
        for name, texts in self._given.items():
            lookup = self._lookups.get(name)
            if name in self.ignore or (lookup is None and name in PAGE_NAMES):
                continue
            if lookup is None:
                known = ", ".join(sorted(self._lookups)) or "none"
                raise _build_parameter_error(
                    self, name, f"is not a parameter of {type(self).__name__}: it takes {known}"
                )
            lookups[self._paths[name]] = self._parse_parameter(lookup, name, texts)
        return lookups

    def _parse_parameter(self, lookup: Lookup, name: str, texts: list[Any]) -> Any:
        field = lookup.field
        if lookup.op in LIST_LOOKUPS:
            parts = [part for text in texts for part in _split_list(text)]
            if len(parts) > self.max_list:
                raise _build_parameter_error(self, name, f"takes at most {self.max_list} values")
            if lookup.op == "range" and len(parts) != 2:
                raise _build_parameter_error(self, name, "takes two values")
            return [self._parse_value(field, name, part) for part in parts]
        if len(texts) != 1:
            raise _build_parameter_error(self, name, "is given more than once")
        if lookup.op == "isnull":
            if texts[0] not in {"true", "false", True, False}:
                raise _build_parameter_error(self, name, "takes true or false")
            return texts[0] in {"true", True}
        return self._parse_value(field, name, texts[0])

    def _parse_value(self, field: AnyField, name: str, value: Any) -> Any:
        try:
            return field.parse(value) if isinstance(value, str) else field.coerce(value)
        except FieldValueError as error:
            reason = error.reason
        except (ValueError, TypeError):
            reason = "is not a value of this field"
        raise _build_parameter_error(self, name, reason)

    def order(self) -> list[str]:
        """The ordering asked for by the `order` parameter: declared names, `-` for descending."""
        texts = map(str, self._given.get("order", ()))
        terms = [part for text in texts for part in text.split(",") if part]
        for term in terms:
            if term.removeprefix("-") not in self.ordering or term.startswith("--"):
                known = ", ".join(self.ordering) or "nothing"
                raise _build_parameter_error(
                    self, "order", f"is wrong: {term!r} cannot order this: use {known}"
                )
        return terms

    def as_json(self) -> dict[str, list[str]]:
        """The filters and the order as texts: `Shelf(shelf.as_json())` asks for the same rows, in a
        job for instance. The page is left out.

        Raises:
            InvalidParameter: for a value that does not fit.
        """
        self.conditions()  # raises before anything is kept
        made: dict[str, list[str]] = {}
        for name, values in self._given.items():
            if (lookup := self._lookups.get(name)) is not None:
                many = lookup.op in LIST_LOOKUPS
                parts = [p for v in values for p in (_split_list(v) if many else [v])]
                made[name] = [_format_value(part) for part in parts]
        return made | ({"order": order} if (order := self.order()) else {})

    def rows(self, query: R) -> R:
        """Return all rows of a query that match, in the order that is asked for: `limit`, `after`
        and `before` do not count, as for an export.

        Args:
            query: the rows of the list, such as `Book.objects.all()`.

        Raises:
            InvalidParameter: for a value that does not fit.
        """
        found = query.filter(self.conditions())
        terms = self.order()
        made: R = order_by_names(found, terms) if terms else found
        return made

    def page(self, shape: type[T], query: Any = None) -> Page[T]:
        """Return the page that the request asks for, as items of a shape: the first, or that after
        or before a cursor.

        Args:
            shape: a dataclass, TypedDict, struct or model of pydantic. Its members are columns,
                annotations, properties and relations of the model, those as shapes of their own;
                only their columns are read.
            query: the rows of the list, such as `Book.objects.filter(shop=shop)`; all by default.

        Raises:
            InvalidParameter: for a value that does not fit, and a cursor of another list.
            FieldError: for a shape that the rows do not have.
        """
        asked = self._prepare_page(shape, query)
        try:
            found = asked.query.keyset(asked.size, after=asked.after, before=asked.before)
        except FieldValueError as error:
            raise asked.find_list_error(error) from None
        return asked.finish_page(found, asked.counted.count() if self.total else None)

    async def apage(self, shape: type[T], query: Any = None) -> Page[T]:
        """`page` for async code."""
        asked = self._prepare_page(shape, query)
        try:
            found = await asked.query.akeyset(asked.size, after=asked.after, before=asked.before)
        except FieldValueError as error:
            raise asked.find_list_error(error) from None
        return asked.finish_page(found, await asked.counted.acount() if self.total else None)

    def _prepare_page(self, shape: type[T], query: Any) -> AskedPage[T]:
        self._refuse_parameters(_SLICE_NAMES - self._lookups.keys(), "limit, after and before")
        found: AnyQuery = self.model.objects.all() if query is None else query
        # keywords take a shorter way than conditions, which a class may have of its own
        if type(self).conditions is FilterSet.conditions:
            lookups = self._collect_lookups()
            found = found.filter(**lookups) if lookups else found
        else:
            found = found.filter(self.conditions())
        counted, asked = found, self.order()
        terms = asked
        if not terms and found._find_order_terms() is None:
            terms = list(found._meta.ordering)
        if terms:
            found = order_by_names(found, terms)
        notes: frozenset[str] = frozenset()
        if found._notes is not None:
            notes = frozenset(found._notes) - found._find_unloaded_annotations()
        rows = self._shapes.get((shape, notes))
        if rows is None:
            rows = self._shapes[shape, notes] = plan_items(found._meta, shape, notes)
        context = self._describe_list(asked) if self._seal is not None else ()
        after, before = self._read_cursor("after", context), self._read_cursor("before", context)
        if after is not None and before is not None:
            raise _build_parameter_error(self, "before", "cannot be given beside 'after'")
        return AskedPage(
            owner=type(self).__name__,
            query=rows.select_rows(found),
            counted=counted,
            shape=rows,
            size=self._read_positive_parameter("limit", self.page_size, limit=self.max_page_size),
            after=after,
            before=before,
            seal=self._seal,
            context=context,
        )

    def _describe_list(self, order: Sequence[str]) -> tuple[str, ...]:
        """The class, the order and the filters, as texts that a cursor is signed with."""
        given = sorted((n, repr(texts)) for n, texts in self._given.items() if n in self._lookups)
        name = f"{type(self).__module__}.{type(self).__qualname__}"
        return name, ",".join(order), *[part for pair in given for part in pair]

    def _read_cursor(self, name: str, context: tuple[str, ...]) -> str | None:
        if (texts := self._given.get(name)) is None:
            return None
        if len(texts) != 1:
            raise _build_parameter_error(self, name, "is given more than once")
        cursor = str(texts[0])
        opened = cursor if self._seal is None else self._seal.open_cursor(cursor, context)
        if opened is None:
            raise build_cursor_error(type(self).__name__, is_before=name == "before")
        return opened

    def slice_bounds(self) -> tuple[int, int]:
        """Offset and size of the page asked for by `page` (from 1) and `page_size`."""
        number = self._read_positive_parameter("page", 1, limit=10**6)
        size = self._read_positive_parameter("page_size", self.page_size, limit=self.max_page_size)
        return (number - 1) * size, size

    def _read_positive_parameter(self, name: str, default: int, *, limit: int) -> int:
        if (texts := self._given.get(name)) is None:
            return default
        text = str(texts[0])
        # "²".isdigit() is True and int("²") fails
        plain = text.isascii() and text.isdigit() and len(text) <= 9
        if len(texts) != 1 or not plain or int(text) < 1:
            raise _build_parameter_error(self, name, "takes a whole number of at least 1")
        if int(text) > limit:
            raise _build_parameter_error(self, name, f"is at most {limit}")
        return int(text)

    def apply(self, query: Any = None) -> Any:
        """Return `query` (or all rows) with the conditions, ordering and page of the request, which
        is counted by `page` and `page_size`.
        """
        self._refuse_parameters(PAGE_NAMES - self._lookups.keys(), "page and page_size")
        base: AnyQuery = self.model.objects.all() if query is None else query
        base = base.filter(self.conditions())
        if terms := self.order():
            base = base.order_by(*terms)
        offset, size = self.slice_bounds()
        return base._slice_rows(offset, offset + size)

    def _refuse_parameters(self, names: frozenset[str], instead: str) -> None:
        for name in self._given:
            if name in names:
                raise _build_parameter_error(self, name, f"is not known here: use {instead}")


def list_filters(kind: type[FilterSet]) -> Mapping[str, Lookup]:
    """Return the lookups of a `FilterSet` by the names of their parameters."""
    return kind._lookups


def filter_from(query: Any, data: Mapping[str, Any], *, allow: Mapping[str, Sequence[str]]) -> Any:
    """Filter a query by untrusted parameters, of which only those in `allow` (name to lookups) may
    be used.
    """
    made = type("Allowed", (FilterSet,), {"model": query._meta.model, "fields": dict(allow)})
    return query.filter(made(data).conditions())


def _split_list(text: Any) -> list[Any]:
    return text.split(",") if isinstance(text, str) else [text]


def _format_value(value: Any) -> str:
    """Return a value of a parameter as the text from which its field reads it."""
    if isinstance(value, enum.Enum):
        return _format_value(value.value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.timedelta):
        return repr(value.total_seconds())
    return value.isoformat() if isinstance(value, (dt.date, dt.time)) else str(value)


def _read_parameters(data: Mapping[str, Any]) -> dict[str, list[Any]]:
    names = dict.fromkeys(map(str, data))
    getlist: Callable[[str], Iterable[Any]] | None = getattr(data, "getlist", None)
    if getlist is not None:
        return {name: list(getlist(name)) for name in names}
    values = {name: data[name] for name in names}
    return {n: cast("list[Any]", v) if isinstance(v, list) else [v] for n, v in values.items()}


def _build_parameter_error(owner: FilterSet, name: str, reason: str) -> InvalidParameter:
    return InvalidParameter(type(owner).__name__, name, reason=reason)
