"""Convert types into JSON Schema (2020-12), matching the framework's JSON encoder and decoder.

Scalars, containers, enums, dataclasses, TypedDicts and their generics are described here; pydantic
models and msgspec structs by their own packages (`_foreign`). Any other type is `{}`, which accepts
every value.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import inspect
import math
import types
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, cast

from treefold_http._models import is_checked_here
from treefold_http._parameters import EMPTY, options_of, split
from treefold_http._records import is_record, is_typed_dict, required_in
from treefold_http.openapi._components import Components, Schema, beside
from treefold_http.openapi._constraints import constrain, plain, with_default
from treefold_http.openapi._foreign import asks_pydantic, foreign_schema
from treefold_http.openapi._symmetry import is_symmetric

Mode: TypeAlias = Literal["input", "checked", "output"]
"""Direction of a schema: values that are received or values that are sent; defaults differ.

`checked` is input that the framework validates itself, which refuses unknown members of a record.
"""

_SCALARS: Mapping[Any, Schema] = {
    Any: {},
    object: {},
    EMPTY: {},
    None: {"type": "null"},
    type(None): {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    bytearray: {"type": "string", "contentEncoding": "base64"},
    decimal.Decimal: {"type": "string", "format": "decimal"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_SETS = (set, frozenset, collections.abc.Set)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_QUALIFIERS = tuple(
    getattr(typing, name)
    for name in ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")
    if hasattr(typing, name)
)

Arguments: TypeAlias = Mapping[Any, Any]
_NONE: Arguments = types.MappingProxyType({})


class Schemas:
    """Makes the schemas of one document; named types become its components."""

    def __init__(self, components: Components) -> None:
        self.components = components

    def of(self, annotation: Any, mode: Mode) -> Schema:
        """Return the schema of a type, or `{}` for a type that cannot be described."""
        try:
            return self._of(annotation, mode, _NONE)
        except Exception:  # the types are user code and may raise anything
            return {}

    def of_body(self, annotation: Any) -> Schema:
        """Return the schema of a JSON body or message, as its validator accepts it."""
        try:
            mode: Mode = "checked" if is_checked_here(annotation) else "input"
        except Exception:  # no validator accepts such a type
            return {}
        return self.of(annotation, mode)

    def _of(self, annotation: Any, mode: Mode, given: Arguments) -> Schema:
        try:
            known = _SCALARS.get(annotation)
        except TypeError:  # metadata that cannot be hashed
            known = None
        if known is not None:
            return dict(known)
        if isinstance(annotation, TypeVar):
            bound = given.get(annotation, annotation.__bound__)
            return {} if bound is None else self._of(bound, mode, _NONE)
        origin = typing.get_origin(annotation)
        if origin is not None:
            return self._special(annotation, origin, mode, given)
        if isinstance(annotation, type):
            return self._class(annotation, mode)
        if hasattr(annotation, "__supertype__"):  # NewType
            return self._of(annotation.__supertype__, mode, given)
        if hasattr(annotation, "__value__"):  # a `type` statement: it may refer to itself
            return self._named(
                annotation, annotation, mode, lambda: self._of(annotation.__value__, mode, given)
            )
        return self._foreign(annotation, mode)

    def _special(self, annotation: Any, origin: Any, mode: Mode, given: Arguments) -> Schema:
        arguments = typing.get_args(annotation)
        if origin is Annotated:
            return constrain(self._of(arguments[0], mode, given), arguments[1:])
        if origin is Literal:
            return _choices(arguments)
        if origin in _QUALIFIERS:
            return self._of(arguments[0], mode, given)
        options = options_of(annotation)
        if options != (annotation,):
            return self._union(options, mode, given)
        if origin in _LISTS or origin in _SETS:
            unique = {"uniqueItems": True} if origin in _SETS else {}
            return {"type": "array", "items": self._of(arguments[0], mode, given), **unique}
        if origin is tuple:
            return self._tuple(arguments, mode, given)
        if origin in _TABLES:
            return self._table(arguments, mode, given)
        if is_record(origin) and not _is_foreign(origin):
            return self._generic(annotation, origin, arguments, mode, given)
        return self._foreign(annotation, mode)

    def _table(self, arguments: Sequence[Any], mode: Mode, given: Arguments) -> Schema:
        names, values = arguments
        table: Schema = {"type": "object", "additionalProperties": self._of(values, mode, given)}
        if _are_texts(names):
            table["propertyNames"] = self._of(names, mode, given)
        return table

    def _union(self, options: Sequence[Any], mode: Mode, given: Arguments) -> Schema:
        schemas: list[Schema] = []
        for option in options:
            schema = self._of(option, mode, given)
            if schema not in schemas:
                schemas.append(schema)
        if {} in schemas:
            return {}
        return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}

    def _tuple(self, arguments: Sequence[Any], mode: Mode, given: Arguments) -> Schema:
        if len(arguments) == 2 and arguments[1] is Ellipsis:
            return {"type": "array", "items": self._of(arguments[0], mode, given)}
        size = len(arguments)
        schema: Schema = {"type": "array", "minItems": size, "maxItems": size}
        if arguments:
            schema["prefixItems"] = [self._of(item, mode, given) for item in arguments]
        return schema

    def _class(self, kind: type, mode: Mode) -> Schema:
        if issubclass(kind, enum.Enum):
            return self._named(kind, kind, mode, lambda: _enum(kind))
        if _is_foreign(kind):
            return self._foreign(kind, mode)
        if is_record(kind):
            if mode == "input" and asks_pydantic(kind) and (found := self._foreign(kind, mode)):
                return found
            return self._named(kind, kind, mode, lambda: self._record(kind, mode, _NONE))
        if (names := _tuple_fields(kind)) is not None:
            hints = typing.get_type_hints(cast("Any", kind), include_extras=True)
            return self._tuple([hints.get(name, Any) for name in names], mode, _NONE)
        for bases, schema in (
            (_TABLES, {"type": "object"}),
            ((list, tuple, *_SETS), {"type": "array"}),
        ):
            if issubclass(kind, bases):
                return dict(schema)
        for base in (int, float, str, datetime.datetime, datetime.date):
            if issubclass(kind, base):
                return dict(_SCALARS[base])
        return self._foreign(kind, mode)

    def _generic(
        self, annotation: Any, origin: Any, arguments: Sequence[Any], mode: Mode, given: Arguments
    ) -> Schema:
        filled = [given.get(a, a) if isinstance(a, TypeVar) else a for a in arguments]
        parameters = getattr(origin, "__parameters__", ())
        inner = dict(zip(parameters, filled, strict=False))
        key = (origin, *filled)
        name = "_".join([origin.__name__, *map(_label, filled)])
        return self._named(key, origin, mode, lambda: self._record(origin, mode, inner), name)

    def _named(
        self,
        key: Any,
        home: Any,
        mode: Mode,
        make: Callable[[], Schema],
        name: str | None = None,
    ) -> Schema:
        known = self.components.known((key, mode))
        if known is not None:
            return known
        chosen: str = name or home.__name__
        others = other_names(chosen, home, mode)
        node = self.components.add((key, mode), chosen, others=others, late=mode != "output")
        try:
            self.components.fill(node, make())
        except Exception:  # as in `of`; the component stays, without a schema
            self.components.fill(node, {})
        return self.components.refer(node)

    def _record(self, kind: Any, mode: Mode, given: Arguments) -> Schema:
        hints = typing.get_type_hints(kind, include_extras=True)
        if is_typed_dict(kind):
            names = list(hints)
            required = [name for name in names if required_in(kind)(name)]
            defaults: dict[str, Any] = {}
        else:
            fields = [f for f in dataclasses.fields(kind) if f.init or mode == "output"]
            names = [f.name for f in fields]
            defaults = {f.name: f.default for f in fields if f.default is not dataclasses.MISSING}
            needed = bool if mode == "output" else required_in(kind)
            required = [name for name in names if needed(name)]
        properties: dict[str, Schema] = {}
        for name in names:
            schema = self._of(hints[name], mode, given)
            properties[name] = with_default(schema, defaults[name]) if name in defaults else schema
        made: Schema = {"type": "object", "properties": properties}
        if required:
            made["required"] = required
        if mode == "checked":
            made["additionalProperties"] = False
        return {**_described(kind), **made}

    def _foreign(self, annotation: Any, mode: Mode) -> Schema:
        known = self.components.known((annotation, mode))
        if known is None and is_symmetric(annotation):
            known = self.components.known((annotation, "input" if mode == "output" else "output"))
        if known is not None:
            return known
        found = foreign_schema(annotation, mode)
        if found is None:
            return {}
        return self._hoist(annotation, *found, mode=mode)

    def _hoist(
        self, annotation: Any, schema: Schema, inner: Mapping[str, Schema], *, mode: Mode
    ) -> Schema:
        """Make components of the definitions of a schema, and of a model itself."""
        nodes: dict[str, int] = {}
        for name in inner:
            key = (annotation, mode, name)
            others = other_names(name, annotation, mode)
            nodes[name] = self.components.add(key, name, others=others, late=mode != "output")
        for name, definition in inner.items():
            self.components.fill(nodes[name], self._linked(definition, nodes))
        linked = self._linked(schema, nodes)
        named = isinstance(annotation, type) and _is_foreign(annotation)
        if not named and not is_record(annotation):
            return linked
        target = schema.get("$ref")
        if target is not None:
            self.components.alias((annotation, mode), nodes[_local(target)])
            return linked
        name = annotation.__name__
        others = other_names(name, annotation, mode)
        node = self.components.add((annotation, mode), name, others=others, late=mode != "output")
        self.components.fill(node, linked)
        return self.components.refer(node)

    def _linked(self, value: Any, nodes: Mapping[str, int]) -> Any:
        """Return a copy of a schema whose references to definitions point at nodes."""
        if isinstance(value, list):
            return [self._linked(item, nodes) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        # A default may be NaN, which JSON cannot represent.
        table = {k: v for k, v in cast("Schema", value).items() if not _is_endless(v)}
        target = table.get("$ref")
        if isinstance(target, str) and _local(target) in nodes:
            reference = self.components.refer(nodes[_local(target)])
            rest = {k: self._linked(v, nodes) for k, v in table.items() if k != "$ref"}
            return beside(reference, rest)
        linked = {key: self._linked(item, nodes) for key, item in table.items()}
        if isinstance(table.get("discriminator"), dict):
            self._point_mapping(linked["discriminator"], nodes)
        return linked

    def _point_mapping(self, discriminator: Schema, nodes: Mapping[str, int]) -> None:
        mapping: Schema = discriminator.get("mapping", {})
        for value, target in mapping.items():
            if isinstance(target, str) and _local(target) in nodes:
                self.components.point(mapping, value, nodes[_local(target)])


def _is_endless(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _local(target: str) -> str:
    return target.removeprefix("#/$defs/")


def other_names(name: str, home: Any, mode: Mode) -> list[str]:
    """Return alternative names of a schema, in order, for a name that is taken."""
    names = [] if mode == "output" else [f"{name}Input"]
    module = str(getattr(home, "__module__", "")).split(".")
    if module[0] == "Api" and len(module) > 1:
        names += [f"{name}_{module[1]}", "_".join([name, *module[1:]])]
    else:
        names.append("_".join([*module, name]))
    return names


def _are_texts(names: Any) -> bool:
    """Return True if the keys of a mapping are strings restricted to some values."""
    bare, markers = split(names)
    if isinstance(bare, type) and issubclass(bare, enum.Enum):
        return all(isinstance(member.value, str) for member in bare)
    if typing.get_origin(bare) is Literal:
        return all(isinstance(choice, str) for choice in typing.get_args(bare))
    return bare is str and bool(markers)


def _is_foreign(kind: Any) -> bool:
    markers = ("model_json_schema", "__struct_fields__", "__pydantic_validator__")
    return any(hasattr(kind, marker) for marker in markers)


def _label(argument: Any) -> str:
    arguments = typing.get_args(argument)
    if isinstance(argument, type) and not arguments:
        return argument.__name__
    name = getattr(typing.get_origin(argument), "__name__", "") or str(argument)
    return "_".join([name, *map(_label, arguments)])


def _tuple_fields(kind: Any) -> Sequence[str] | None:
    fields: Sequence[str] | None = getattr(kind, "_fields", None)
    return fields if issubclass(kind, tuple) else None


def _choices(values: Sequence[Any]) -> Schema:
    given = [plain(value) for value in values]
    if len(given) == 1:
        return {"const": given[0]}
    kinds: set[Any] = {type(value) for value in given}
    words = [word for kind, word in ((str, "string"), (int, "integer")) if kinds == {kind}]
    return {"type": words[0], "enum": given} if words else {"enum": given}


def _enum(kind: type[enum.Enum]) -> Schema:
    if issubclass(kind, enum.Flag):  # its values are combinations of the members
        return {**_described(kind), "type": "integer"}
    schema = _choices([member.value for member in kind])
    if "const" in schema:
        schema = {"enum": [schema["const"]]}
    return {**_described(kind), **schema}


_PLAIN_DOCS = frozenset(
    filter(None, (each.__doc__ for each in (enum.Enum, enum.IntEnum, enum.Flag, enum.IntFlag)))
)


def _described(kind: type) -> Schema:
    """Return the docstring of a class as a description, unless a decorator generated it."""
    text = kind.__dict__.get("__doc__")
    if not text or text.startswith(f"{kind.__name__}(") or text in _PLAIN_DOCS:
        return {}
    return {"description": inspect.cleandoc(text)}
