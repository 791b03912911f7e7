"""Serialization by `response_model`: reduce a value to plain data with the declared fields only.

A type becomes a tree of serializers once, at boot. A serializer takes a handler's return value and
returns its declared fields, read from members of mappings or attributes of objects. A value of
another type raises `SerializationError`, which reports the place and the reason but never the
value: it may be a secret. pydantic reads and writes its own models; all other records are
serialized here, even if msgspec or pydantic is installed.
"""

from __future__ import annotations

import collections.abc
import datetime
import enum
import importlib
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from treefold_http._json.json import msgspec
from treefold_http._json.pydantic_json import build_base64_json_functions
from treefold_http._types import tree
from treefold_http._types.constraints import (
    OWN,
    build_constraint_check,
    find_constraint_packages,
    import_pydantic_or_none,
)
from treefold_http._types.parameters import EMPTY, InjectionError, format_annotation
from treefold_http._types.validate import Errors, build_json_check
from treefold_http._wire.aliases import JSONObject

Serializer: TypeAlias = Callable[[Any], Any]
"""Takes a value and returns its serializable form; raises `SerializationError` for another type."""

_BYTES = (bytes, bytearray, memoryview)
_NO_OBJECTS = (str, int, float, type(None), *_BYTES, list, tuple, set, frozenset)
_ABSENT = object()
_UNSET = None if msgspec is None else msgspec.UnsetType
"""A field with this value is left out of the response, so it is no member of a union here."""


class SerializationError(Exception):
    """A value is not of the declared type.

    Attributes:
        words: the expected type, as a text such as "should be an object".
        steps: the path to the value, the innermost step last.
    """

    def __init__(self, words: str, steps: tuple[str | int, ...] = ()) -> None:
        super().__init__(words, steps)
        self.words = words
        self.steps = steps

    def with_outer_step(self, step: str | int) -> SerializationError:
        """Return the same error with one outer step added to the path."""
        return SerializationError(self.words, (step, *self.steps))

    def __str__(self) -> str:
        where = ".".join(map(str, self.steps))
        return f"{where!r} {self.words}" if where else f"it {self.words}"


def build_serializer(node: tree.TypeNode) -> Serializer:
    """Return the serializer of a type.

    Raises:
        InjectionError: for a type that cannot be checked.
    """
    return _Planner().plan_node(node)


class _Planner:
    """Plans each record once, so that a record may be recursive."""

    def __init__(self) -> None:
        self._records: dict[Any, _Record] = {}
        self._named: dict[Any, Serializer] = {}

    def plan_node(self, node: tree.TypeNode) -> Serializer:
        kinds = list(tree.iter_leaf_types(node))
        if kinds and all(isinstance(e, tree.Record) and e.family == "model" for e in kinds):
            return _build_pydantic_serializer(node)
        inner = self._plan_unconstrained(node)
        packages = find_constraint_packages(node, include_items=False)
        # those of a class of its own are about what a request sends
        if not node.markers or packages <= {OWN}:
            return inner
        check = build_constraint_check(node)
        return inner if check is None else _with_check(inner, check)

    def _plan_unconstrained(self, node: tree.TypeNode) -> Serializer:
        match node:
            case tree.AnyType():
                return _accept_any
            case tree.UnionType():
                return self._plan_union(node)
            case tree.Record():
                return self._plan_record(node)
            case tree.PartialRecord():
                raise InjectionError("Changes are read from a body and never sent")
            case tree.TypeStatement():
                return tree.build_recursive_type_proxy(node, self._named, self.plan_node)
            case tree.TupleType():
                return _build_tuple_serializer([self.plan_node(item) for item in node.items])
            case tree.ListType():
                return _build_list_serializer(self.plan_node(node.item))
            case tree.Table():
                write_value = self.plan_node(node.value)
                write_key = self.plan_node(node.key) if node.has_restricted_keys else _accept_any
                return _build_mapping_serializer(write_value, write_key)
            case _:
                return _build_leaf_serializer(node)

    def _plan_union(self, node: tree.UnionType) -> Serializer:
        options = tree.list_options_without_none(node)
        chosen = [option for option in options if option.annotation is not _UNSET]
        serializers = [self.plan_node(option) for option in chosen]
        may_be_none = any(map(tree.is_none, node.options))
        pairs = zip(chosen, serializers, strict=True)
        by_kind = ((option.bare_annotation, made) for option, made in pairs)
        exact = {kind: made for kind, made in by_kind if isinstance(kind, type)}
        shown = ", ".join(format_annotation(option.bare_annotation) for option in node.options)
        words = f"should be one of {shown}"

        def serialize_value(value: Any) -> Any:
            if value is None and may_be_none:
                return None
            # by its class first: records are read by their members, so that an earlier option with
            # fewer of them would take the value and drop the rest
            own = exact.get(value.__class__)
            if own is not None or len(serializers) == 1:
                return (own or serializers[0])(value)
            for serialize in serializers:
                try:
                    return serialize(value)
                except SerializationError:
                    continue
            raise SerializationError(words)

        return serialize_value

    def _plan_record(self, node: tree.Record) -> Serializer:
        if (known := self._records.get(node.record_type_key)) is None:
            # before its members are planned, one of which may be of the record itself
            known = self._records[node.record_type_key] = _Record(node.kind)
            written = [member for member in node.declared_members if member.is_output]
            known.members = [(member, self.plan_node(member.type)) for member in written]
        return known


class _Record:
    """The serializer of one dataclass, TypedDict or struct."""

    def __init__(self, kind: Any) -> None:
        self.members: list[tuple[tree.Member, Serializer]] = []
        config: Any = getattr(kind, "__struct_config__", None)
        self._tag_field: str | None = config.tag_field if config else None
        self._tag: Any = config.tag if config else None
        self._is_array: bool = config is not None and config.array_like

    def __call__(self, value: Any) -> Any:
        read = self._build_member_reader(value)
        made: JSONObject = {} if self._tag_field is None else {self._tag_field: self._tag}
        for member, serialize in self.members:
            if (part := read(member)) is _ABSENT:
                if member.required:
                    raise SerializationError("is required", (member.written_as,))
                if member.factory is None and member.default is EMPTY:
                    continue
                part = member.default if member.factory is None else member.factory()
            if msgspec is not None and part is msgspec.UNSET:
                continue
            try:
                made[member.written_as] = serialize(part)
            except SerializationError as error:
                raise error.with_outer_step(member.written_as) from None
        return list(made.values()) if self._is_array else made

    def _build_member_reader(self, value: Any) -> Callable[[tree.Member], Any]:
        if isinstance(value, Mapping):
            members = cast("Mapping[str, Any]", value)
            if self._tag_field is not None and members.get(self._tag_field, self._tag) != self._tag:
                raise SerializationError(f"should be {self._tag!r}", (self._tag_field,))
            # a handler may write the names of the document or those of the class
            return lambda each: members.get(each.written_as, members.get(each.name, _ABSENT))
        has_parts = hasattr(value, "_fields")  # a named tuple
        if not has_parts and isinstance(value, _NO_OBJECTS):
            raise SerializationError("should be an object")
        return lambda each: getattr(value, each.name, _ABSENT)


def _accept_any(value: Any) -> Any:
    return value


def _with_check(serialize: Serializer, check: Callable[[Any], Any]) -> Serializer:
    def serialize_and_check(value: Any) -> Any:
        made = serialize(value)
        try:
            check(made)
        except ValueError as error:
            raise SerializationError(str(error)) from None
        return made

    return serialize_and_check


def _require_items(value: Any) -> list[Any]:
    # text and bytes are sequences as well
    if isinstance(value, (str, *_BYTES)) or not isinstance(
        value, (collections.abc.Sequence, collections.abc.Set)
    ):
        raise SerializationError("should be a list")
    return list(cast("collections.abc.Collection[Any]", value))


def _build_list_serializer(item: Serializer) -> Serializer:
    def serialize_value(value: Any) -> Any:
        made: list[Any] = []
        for index, each in enumerate(_require_items(value)):
            try:
                made.append(item(each))
            except SerializationError as error:
                raise error.with_outer_step(index) from None
        return made

    return serialize_value


def _build_tuple_serializer(serializers: list[Serializer]) -> Serializer:
    def serialize_value(value: Any) -> Any:
        items = _require_items(value)
        if len(items) != len(serializers):
            raise SerializationError(f"should have {len(serializers)} items")
        return [serialize(each) for serialize, each in zip(serializers, items, strict=True)]

    return serialize_value


def _build_mapping_serializer(member: Serializer, key: Serializer) -> Serializer:
    def serialize_value(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise SerializationError("should be an object")
        made: dict[Any, Any] = {}
        for name, each in cast("Mapping[Any, Any]", value).items():
            try:
                made[key(name)] = member(each)
            except SerializationError as error:
                raise error.with_outer_step(str(name)) from None
        return made

    return serialize_value


_AS_THEY_ARE: Mapping[Any, tuple[type, ...]] = {
    bytes: _BYTES,
    bytearray: _BYTES,
    datetime.timedelta: (datetime.timedelta,),
}
_NOT_MEANT = {(int, bool), (float, bool), (datetime.date, datetime.datetime)}
"""Subclasses whose JSON form differs from that of the declared type."""


def _build_leaf_serializer(node: tree.TypeNode) -> Serializer:
    """The serializer of a scalar: takes an instance of the class, or its JSON form."""
    kind = node.kind if isinstance(node, (tree.Scalar, tree.Choice)) else node.bare_annotation
    if (kinds := _AS_THEY_ARE.get(kind)) is not None:
        refuse = _build_refusing_serializer(f"should be {format_annotation(kind)}")
        return _build_instance_passthrough(kinds, refuse)
    if not isinstance(node, (tree.Scalar, tree.Choice)) and import_pydantic_or_none() is not None:
        return _build_pydantic_serializer(node)
    check = build_json_check(node)  # raises InjectionError for an unknown type

    def serialize_value(value: Any) -> Any:
        if isinstance(value, enum.Enum):
            value = value.value
        errors: Errors = []
        made = check(value, ["answer"], errors)
        if errors:
            raise SerializationError(str(errors[0]["msg"]).removeprefix("answer "))
        return made

    if isinstance(kind, type):
        return _build_instance_passthrough((kind,), serialize_value)
    return serialize_value


def _build_instance_passthrough(kinds: tuple[type, ...], fallback: Serializer) -> Serializer:
    def serialize_value(value: Any) -> Any:
        kind = value.__class__
        if kind in kinds:
            return value
        if isinstance(value, kinds) and not any((base, kind) in _NOT_MEANT for base in kinds):
            return value
        return fallback(value)

    return serialize_value


def _build_refusing_serializer(words: str) -> Serializer:
    def refuse_value(value: Any) -> Any:
        raise SerializationError(words)

    return refuse_value


def _build_pydantic_serializer(node: tree.TypeNode) -> Serializer:
    pydantic = import_pydantic_or_none()
    try:
        form = build_base64_json_functions(pydantic.TypeAdapter(node.annotation))
    except pydantic.PydanticUserError as error:
        raise InjectionError(
            f"pydantic does not support {format_annotation(node.bare_annotation)}: "
            f"{str(error).splitlines()[0]}"
        ) from error
    invalid = pydantic.ValidationError
    unfit = importlib.import_module("pydantic_core").PydanticSerializationError
    options: JSONObject = {"from_attributes": True}
    if tuple(map(int, pydantic.VERSION.split(".")[:2])) >= (2, 11):
        options |= {"by_alias": True, "by_name": True}  # a handler may use either

    def serialize_value(value: Any) -> Any:
        try:
            return form.dump_python(
                form.validate_python(value, **options),
                mode="json",
                by_alias=True,
                # without it pydantic writes a value of another type as it is, and only warns
                warnings="error",
            )
        except invalid as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            raise SerializationError(first["msg"], tuple(first["loc"])) from None
        except unfit:  # its message contains the value, which may be a secret
            raise SerializationError("has a field of another type than the model says") from None

    return serialize_value
