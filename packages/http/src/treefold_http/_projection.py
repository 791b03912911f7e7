"""Serialization by `response_model`: reduce a value to plain data with the declared fields only.

A type becomes a tree of shapes once, at boot. A shape takes a handler's return value and returns
its declared fields, read from members of mappings or attributes of objects. A value of another type
raises `Mismatch`, which reports the place and the reason but never the value: it may be a secret.
pydantic reads and writes its own models; all other records are serialized here, even if msgspec or
pydantic is installed.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import importlib
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias, TypeVar, cast

from treefold_http._binding import converter
from treefold_http._constraints import families, value_check
from treefold_http._json import msgspec
from treefold_http._member_constraints import is_struct
from treefold_http._parameters import (
    EMPTY,
    InjectionError,
    is_alias,
    named,
    options_of,
    shown,
    split,
)
from treefold_http._records import is_record, is_typed_dict, record_check, required_in
from treefold_http._sources import Errors

Shape: TypeAlias = Callable[[Any], Any]
"""Takes a value and returns its serializable form; raises `Mismatch` for another type."""

_LISTS = (
    list,
    set,
    frozenset,
    collections.abc.Sequence,
    collections.abc.Set,
    collections.abc.Iterable,
    collections.abc.Collection,
)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_BYTES = (bytes, bytearray, memoryview)
_NO_OBJECTS = (str, int, float, type(None), *_BYTES, list, tuple, set, frozenset)
_QUALIFIERS = (typing.Required, typing.NotRequired, typing.Final)
_NOTHING: Mapping[Any, Any] = {}
_ABSENT = object()
_UNSET = None if msgspec is None else msgspec.UnsetType
"""A field with this value is left out of the response, so it is no member of a union here."""


class Mismatch(Exception):
    """A value is not of the declared type.

    Attributes:
        words: the expected type, as a text such as "should be an object".
        steps: the path to the value, the innermost step last.
    """

    def __init__(self, words: str, steps: tuple[str | int, ...] = ()) -> None:
        super().__init__(words, steps)
        self.words = words
        self.steps = steps

    def below(self, step: str | int) -> Mismatch:
        """Return the same error with one outer step added to the path."""
        return Mismatch(self.words, (step, *self.steps))

    def __str__(self) -> str:
        where = ".".join(map(str, self.steps))
        return f"{where!r} {self.words}" if where else f"it {self.words}"


def shape_of(annotation: Any) -> Shape:
    """Return the shape of a type.

    Raises:
        InjectionError: for a type that cannot be checked.
    """
    return _Planner().shape(annotation, _NOTHING)


class _Planner:
    """Plans each record once, so that a record may be recursive."""

    def __init__(self) -> None:
        self._records: dict[Any, _Record] = {}
        self._named: dict[Any, Shape] = {}

    def shape(self, annotation: Any, given: Mapping[Any, Any]) -> Shape:
        if isinstance(annotation, TypeVar):
            annotation = given.get(annotation, annotation.__bound__ or Any)
        if _is_pydantic(annotation):
            return _by_pydantic(annotation)
        bare, markers = split(annotation)
        if markers:
            inner = self.shape(bare, given)
            check = value_check(annotation) if families(annotation, items=False) else None
            return inner if check is None else _checked(inner, check)
        options = options_of(annotation)
        if len(options) > 1:
            return self._union(options, given)
        if annotation in (Any, object, EMPTY):
            return _anything
        origin = typing.get_origin(annotation) or annotation
        if origin in _QUALIFIERS:
            return self.shape(typing.get_args(annotation)[0], given)
        if is_record(origin) or is_struct(origin):
            return self._record(annotation, origin, given)
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.shape(annotation.__supertype__, given)
        if is_alias(annotation):  # it may be recursive
            return self._alias(annotation, given)
        return self._container(annotation, origin, given)

    def _container(self, annotation: Any, origin: Any, given: Mapping[Any, Any]) -> Shape:
        arguments = [
            given.get(each, each) if isinstance(each, TypeVar) else each
            for each in typing.get_args(annotation)
        ]
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            return _fixed([self.shape(each, given) for each in arguments])
        if origin in _LISTS or origin is tuple:
            return _list(self.shape(arguments[0] if arguments else Any, given))
        if origin in _TABLES:
            return _table(self.shape(arguments[1] if arguments else Any, given))
        return _leaf(annotation, origin)

    def _union(self, options: tuple[Any, ...], given: Mapping[Any, Any]) -> Shape:
        none = (None, type(None), _UNSET)
        chosen = [option for option in options if option not in none]
        shapes = [self.shape(option, given) for option in chosen]
        may_be_none = type(None) in options
        exact = dict(zip(chosen, shapes, strict=True))
        words = f"should be one of {', '.join(map(shown, options))}"

        def choose(value: Any) -> Any:
            if value is None and may_be_none:
                return None
            own = exact.get(value.__class__)
            if own is not None or len(shapes) == 1:
                return (own or shapes[0])(value)
            for shape in shapes:
                try:
                    return shape(value)
                except Mismatch:
                    continue
            raise Mismatch(words)

        return choose

    def _alias(self, annotation: Any, given: Mapping[Any, Any]) -> Shape:
        def later(value: Any) -> Any:
            return self._named[annotation](value)

        if annotation not in self._named:
            self._named[annotation] = later
            self._named[annotation] = self.shape(named(annotation), given)
        return later

    def _record(self, annotation: Any, origin: Any, given: Mapping[Any, Any]) -> Shape:
        arguments = tuple(given.get(each, each) for each in typing.get_args(annotation))
        key = origin, arguments
        known = self._records.get(key)
        if known is None:
            known = self._records[key] = _Record(origin)
            parameters = getattr(origin, "__parameters__", ())
            inner = _bound(origin, dict(zip(parameters, arguments, strict=False)))
            try:
                fields = list(_fields(annotation, origin))
            except InjectionError:
                raise
            except Exception as error:
                raise InjectionError(
                    f"The annotations of {shown(origin)} cannot be resolved: {error};"
                    " import the names that they use"
                ) from error
            known.fields = [
                field._replace(shape=self.shape(field.shape, inner)) for field in fields
            ]
        return known


class _Field(typing.NamedTuple):
    """A field of a record: attribute, member name, type (later shape), default and requiredness."""

    attribute: str
    member: str
    shape: Any
    default: Callable[[], Any] | None
    required: bool


class _Record:
    """The shape of one dataclass, TypedDict or struct."""

    def __init__(self, kind: Any) -> None:
        self.fields: list[_Field] = []
        config: Any = getattr(kind, "__struct_config__", None)
        self._tag_field: str | None = config.tag_field if config else None
        self._tag: Any = config.tag if config else None
        self._is_array: bool = config is not None and config.array_like

    def __call__(self, value: Any) -> Any:
        read = self._reader(value)
        made: dict[str, Any] = {} if self._tag_field is None else {self._tag_field: self._tag}
        for field in self.fields:
            part = read(field)
            if part is _ABSENT:
                if field.required:
                    raise Mismatch("is required", (field.member,))
                if field.default is None:
                    continue
                part = field.default()
            if msgspec is not None and part is msgspec.UNSET:
                continue
            try:
                made[field.member] = field.shape(part)
            except Mismatch as error:
                raise error.below(field.member) from None
        return list(made.values()) if self._is_array else made

    def _reader(self, value: Any) -> Callable[[_Field], Any]:
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            if self._tag_field is not None and members.get(self._tag_field, self._tag) != self._tag:
                raise Mismatch(f"should be {self._tag!r}", (self._tag_field,))
            return lambda field: members.get(field.member, members.get(field.attribute, _ABSENT))
        has_parts = hasattr(value, "_fields")  # a named tuple
        if not has_parts and isinstance(value, _NO_OBJECTS):
            raise Mismatch("should be an object")
        return lambda field: getattr(value, field.attribute, _ABSENT)


def _fields(annotation: Any, kind: Any) -> Iterator[_Field]:
    """The fields of a record, in order of declaration."""
    if is_struct(kind):
        assert msgspec is not None  # noqa: S101 - there would be no struct
        for field in msgspec.structs.fields(annotation):
            default = _default(field.default, field.default_factory, msgspec.NODEFAULT)
            yield _Field(field.name, field.encode_name, field.type, default, field.required)
        return
    hints = typing.get_type_hints(kind, include_extras=True)
    if is_typed_dict(kind):
        required = required_in(kind)
        for name, hint in hints.items():
            yield _Field(name, name, hint, None, required(name))
        return
    for field in dataclasses.fields(kind):
        default = _default(field.default, field.default_factory, dataclasses.MISSING)
        yield _Field(field.name, field.name, hints[field.name], default, default is None)


def _default(value: Any, factory: Any, missing: Any) -> Callable[[], Any] | None:
    if factory is not missing:
        return factory
    return None if value is missing else lambda: value


def _bound(kind: Any, given: Mapping[Any, Any]) -> dict[Any, Any]:
    """The types bound to the type variables of a record and of its generic bases."""
    found = dict(given)
    for base in getattr(kind, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        parameters = getattr(origin, "__parameters__", ())
        arguments = [found.get(each, each) for each in typing.get_args(base)]
        if origin is not None and origin is not typing.Generic:
            found |= _bound(origin, dict(zip(parameters, arguments, strict=False)))
    return found


def _anything(value: Any) -> Any:
    return value


def _checked(shape: Shape, check: Callable[[Any], Any]) -> Shape:
    def shaped(value: Any) -> Any:
        made = shape(value)
        try:
            check(made)
        except ValueError as error:
            raise Mismatch(str(error)) from None
        return made

    return shaped


def _items(value: Any) -> list[Any]:
    if isinstance(value, (str, *_BYTES)) or not isinstance(
        value, (collections.abc.Sequence, collections.abc.Set)
    ):
        raise Mismatch("should be a list")
    return list(cast("collections.abc.Collection[Any]", value))


def _list(item: Shape) -> Shape:
    def shaped(value: Any) -> Any:
        made: list[Any] = []
        for index, each in enumerate(_items(value)):
            try:
                made.append(item(each))
            except Mismatch as error:
                raise error.below(index) from None
        return made

    return shaped


def _fixed(shapes: list[Shape]) -> Shape:
    def shaped(value: Any) -> Any:
        items = _items(value)
        if len(items) != len(shapes):
            raise Mismatch(f"should have {len(shapes)} items")
        return [shape(each) for shape, each in zip(shapes, items, strict=True)]

    return shaped


def _table(member: Shape) -> Shape:
    def shaped(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise Mismatch("should be an object")
        made: dict[Any, Any] = {}
        for name, each in cast("Mapping[Any, Any]", value).items():
            try:
                made[name] = member(each)
            except Mismatch as error:
                raise error.below(str(name)) from None
        return made

    return shaped


_AS_THEY_ARE: Mapping[Any, tuple[type, ...]] = {
    bytes: _BYTES,
    bytearray: _BYTES,
    datetime.timedelta: (datetime.timedelta,),
}
_NOT_MEANT = {(int, bool), (float, bool), (datetime.date, datetime.datetime)}
"""Subclasses whose JSON form differs from that of the declared type."""


def _leaf(annotation: Any, kind: Any) -> Shape:
    """The shape of a scalar: an instance of the class, or its JSON form."""
    kinds = _AS_THEY_ARE.get(kind)
    if kinds is not None:
        return _instance(kinds, _refuse(f"should be {shown(kind)}"))
    known = kind in (None, type(None)) or kind is Literal or converter(annotation) is not None
    if not known and _pydantic() is not None:
        return _by_pydantic(annotation)
    check = record_check(annotation)  # raises InjectionError for an unknown type

    def parsed(value: Any) -> Any:
        if isinstance(value, enum.Enum):
            value = value.value
        errors: Errors = []
        made = check(value, ["answer"], errors)
        if errors:
            raise Mismatch(str(errors[0]["msg"]).removeprefix("answer "))
        return made

    if kind is Literal or not isinstance(kind, type):
        return parsed
    return _instance((cast("type", kind),), parsed)


def _instance(kinds: tuple[type, ...], other: Shape) -> Shape:
    def shaped(value: Any) -> Any:
        kind = value.__class__
        if kind in kinds:
            return value
        if isinstance(value, kinds) and not any((base, kind) in _NOT_MEANT for base in kinds):
            return value
        return other(value)

    return shaped


def _refuse(words: str) -> Shape:
    def refuse(value: Any) -> Any:
        raise Mismatch(words)

    return refuse


def _is_pydantic(annotation: Any) -> bool:
    """Return True for pydantic models, lists and unions of them: pydantic serializes them."""
    kinds = list(_kinds(annotation))
    return bool(kinds) and all(hasattr(kind, "__pydantic_validator__") for kind in kinds)


def _kinds(annotation: Any) -> Iterator[Any]:
    bare, _ = split(annotation)
    for option in options_of(bare):
        if typing.get_origin(option) is list:
            yield from _kinds(typing.get_args(option)[0])
        elif option is not type(None):
            yield split(option)[0]


def _pydantic() -> Any:
    try:
        return importlib.import_module("pydantic")
    except ImportError:
        return None


def _by_pydantic(annotation: Any) -> Shape:
    pydantic = _pydantic()
    try:
        adapter = pydantic.TypeAdapter(annotation)
    except pydantic.PydanticUserError as error:
        raise InjectionError(
            f"{shown(annotation)} is no type that an answer can be held to:"
            f" {str(error).splitlines()[0]}"
        ) from error
    invalid = pydantic.ValidationError
    unfit = importlib.import_module("pydantic_core").PydanticSerializationError
    options: dict[str, Any] = {"from_attributes": True}
    if tuple(map(int, pydantic.VERSION.split(".")[:2])) >= (2, 11):
        options |= {"by_alias": True, "by_name": True}  # a handler may use either

    def shaped(value: Any) -> Any:
        try:
            return adapter.dump_python(
                adapter.validate_python(value, **options), mode="json", warnings="error"
            )
        except invalid as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise Mismatch(first["msg"], tuple(first["loc"])) from None
        except unfit:  # its message contains the value, which may be a secret
            raise Mismatch("has a field of another type than the model says") from None

    return shaped
