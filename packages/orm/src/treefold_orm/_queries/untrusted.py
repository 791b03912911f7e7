"""Data from outside: `FilterSet` for query strings, `assign` for bodies, `Tainted` for both.

Nothing from a request names a field or lookup unless code listed it. Keys of a `Tainted` mapping
are marked, and every query method, constructor and `update` refuses marked names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar, cast

from treefold_orm._base.errors import FieldError, FieldValueError, InvalidParameter
from treefold_orm._expressions.lookups import Lookup, parse_lookup
from treefold_orm._expressions.ordering import resolve_order
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Instance, Meta
from treefold_orm._terms.operators import Q

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery

M = TypeVar("M", bound=Instance)
V = TypeVar("V")


class Assignable(Protocol):
    """Values of a request under names that code allowed, such as `Changes` of a handler."""

    def assignable_values(self) -> Mapping[str, Any]:
        """Return the value of each name that was sent."""
        ...


class TaintedKey(str):
    """A name that came from a request; it stays marked on its way through `**`."""

    __slots__ = ()


class Tainted(dict[str, V], Generic[V]):
    """A mapping from a request: reads like a dictionary, but its keys may not name anything in a
    query.
    """

    def keys(self) -> Any:
        """The keys, marked."""
        return [TaintedKey(key) for key in super().__iter__()]

    # with keys() alone, f(**tainted) would take the plain names: CPython copies a subclass of dict
    # directly unless it has an __iter__ of its own
    def __iter__(self) -> Any:
        return iter(self.keys())

    def items(self) -> Any:
        """Pairs with marked keys."""
        return [(TaintedKey(key), value) for key, value in super().items()]


def taint(mapping: Mapping[str, V]) -> Tainted[V]:
    """Return a copy of a mapping whose keys are marked as coming from a request."""
    return Tainted({str(key): value for key, value in mapping.items()})


def assign_untrusted_data(
    instance: Instance, data: Any, *, fields: Sequence[str] | None
) -> list[str]:
    """Set fields of an instance from untrusted data; see `Model.assign`."""
    if isinstance(fields, str):
        raise FieldError("assign(fields=...) takes a list of names, not one text")
    meta = instance._meta
    # of the class: a request can make any attribute of an instance, and no method
    kind: type[Any] = data.__class__
    is_assignable = hasattr(kind, "assignable_values")
    values: Mapping[str, Any] = data.assignable_values() if is_assignable else data
    if fields is None:
        if not is_assignable:
            raise FieldError(
                f"assign() cannot set any name of a {kind.__name__}; name those that a"
                " request may set, assign(data, fields=[...]), or annotate the body Changes[...]"
            )
        fields = tuple(values)
        if key := next((name for name in fields if _is_key(meta, name)), None):
            raise FieldValueError(meta.name, key, reason="is the key, which cannot be changed")
    allowed = [(name, meta.pk if name == "pk" else meta.require_column(name)) for name in fields]
    given = {str(key): value for key, value in values.items()}
    # all are checked before the first is set
    changes = [(name, field, field.clean(given[name])) for name, field in allowed if name in given]
    for _, field, value in changes:
        setattr(instance, field.attname, value)
        instance.__dict__.pop(f"_cached_{field.name}", None)
    return [name for name, _, _ in changes]


def _is_key(meta: Meta, name: str) -> bool:
    return name == "pk" or meta.require_column(name) in meta.keys


class FilterSet:
    """The filters and orders that a request may use on a model: declare it, then `apply` the query
    string.

    `model` is the model; `fields` maps a path to the lookups it may be used with (`{"title":
    ["exact", "icontains"], "author__name": ["exact"]}`); `names` gives a path another name in the
    address (`{"author": "author__name"}`); `ordering` lists names for the `order` parameter;
    `max_list` limits values of `in`, `page_size` and `max_page_size` the page. Declared names are
    checked when the class is made. Parameters that are not declared, and values that do not fit,
    are refused with `InvalidParameter`: the request is wrong.
    """

    model: ClassVar[type[Any]]
    fields: ClassVar[Mapping[str, Sequence[str]]] = {}
    names: ClassVar[Mapping[str, str]] = {}
    ordering: ClassVar[Sequence[str]] = ()
    max_list: ClassVar[int] = 100
    page_size: ClassVar[int] = 50
    max_page_size: ClassVar[int] = 100
    ignore: ClassVar[frozenset[str]] = frozenset({"order", "page", "page_size"})

    _lookups: ClassVar[dict[str, Lookup]] = {}
    _paths: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        meta = cls.model._meta
        cls._lookups, cls._paths = {}, {}
        if unknown := set(cls.names.values()) - set(cls.fields):
            raise FieldError(f"{cls.__name__}.names has {min(unknown)!r}, which is not in fields")
        shown = {path: name for name, path in cls.names.items()}
        for name, operators in cls.fields.items():
            if isinstance(operators, str):
                raise FieldError(
                    f"{cls.__name__}.fields[{name!r}] takes a list of lookups, not one text"
                )
            for op in operators:
                lookup = parse_lookup(meta, f"{name}__{op}")
                parameter = shown.get(name, name)
                cls._lookups[parameter if op == "exact" else f"{parameter}__{op}"] = lookup
                cls._paths[parameter if op == "exact" else f"{parameter}__{op}"] = f"{name}__{op}"
        resolve_order(Scope(meta, []), cls.ordering)

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._pairs = _list_parameters(data)

    def conditions(self) -> Q:
        """The conditions the parameters stand for."""
        lookups: dict[str, Any] = {}
        for name, texts in self._pairs:
            if name in self.ignore:
                continue
            lookup = self._lookups.get(name)
            if lookup is None:
                known = ", ".join(sorted(self._lookups)) or "none"
                raise _build_parameter_error(
                    self, name, f"is not a parameter of {type(self).__name__}: it takes {known}"
                )
            lookups[self._paths[name]] = self._parse_parameter(lookup, name, texts)
        return Q(**lookups)

    def _parse_parameter(self, lookup: Lookup, name: str, texts: list[Any]) -> Any:
        field = lookup.field
        if lookup.op in {"in", "range", "has_keys", "has_any_keys"}:
            parts = [part for text in texts for part in str(text).split(",")]
            if len(parts) > self.max_list:
                raise _build_parameter_error(self, name, f"takes at most {self.max_list} values")
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
        terms: list[str] = []
        for name, texts in self._pairs:
            if name == "order":
                terms += [part for text in texts for part in str(text).split(",") if part]
        for term in terms:
            if term.removeprefix("-") not in self.ordering or term.startswith("--"):
                known = ", ".join(self.ordering) or "nothing"
                raise _build_parameter_error(
                    self, "order", f"is wrong: {term!r} cannot order this: use {known}"
                )
        return [str(term) for term in terms]

    def page(self) -> tuple[int, int]:
        """Offset and size of the page asked for by `page` (from 1) and `page_size`."""
        number = self._read_positive_parameter("page", 1, limit=10**6)
        size = self._read_positive_parameter("page_size", self.page_size, limit=self.max_page_size)
        return (number - 1) * size, size

    def _read_positive_parameter(self, name: str, default: int, *, limit: int) -> int:
        for known, texts in self._pairs:
            if known == name:
                text = str(texts[0])
                # "²".isdigit() is True and int("²") fails
                plain = text.isascii() and text.isdigit() and len(text) <= 9
                if len(texts) != 1 or not plain or int(text) < 1:
                    raise _build_parameter_error(self, name, "takes a whole number of at least 1")
                if int(text) > limit:
                    raise _build_parameter_error(self, name, f"is at most {limit}")
                return int(text)
        return default

    def apply(self, query: Any = None) -> Any:
        """Return `query` (or all rows) with the conditions, ordering and page of the request."""
        base: AnyQuery = self.model.objects.all() if query is None else query
        base = base.filter(self.conditions())
        if terms := self.order():
            base = base.order_by(*terms)
        offset, size = self.page()
        return base._slice_rows(offset, offset + size)


def filter_from(query: Any, data: Mapping[str, Any], *, allow: Mapping[str, Sequence[str]]) -> Any:
    """Filter a query by untrusted parameters, of which only those in `allow` (name to lookups) may
    be used.
    """
    made = type("Allowed", (FilterSet,), {"model": query._meta.model, "fields": dict(allow)})
    return query.filter(made(data).conditions())


def _list_parameters(data: Mapping[str, Any]) -> list[tuple[str, list[Any]]]:
    getlist = getattr(data, "getlist", None)
    pairs: list[tuple[str, list[Any]]] = []
    for key in dict.fromkeys(str(k) for k in data):
        if getlist is not None:
            pairs.append((key, list(cast("Iterable[Any]", getlist(key)))))
        else:
            value = data[key]
            pairs.append((key, cast("list[Any]", value) if isinstance(value, list) else [value]))
    return pairs


def _build_parameter_error(owner: FilterSet, name: str, reason: str) -> InvalidParameter:
    return InvalidParameter(type(owner).__name__, name, reason=reason)
