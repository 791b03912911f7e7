"""Types to JSON Schema (2020-12), matching the framework's JSON encoder and decoders.

Scalars, containers, enums, dataclasses, TypedDicts and their generics are described here; pydantic
models and msgspec structs by their own packages, which are never imported here: an application with
such a type has already imported its package. Any other type is `{}`, which accepts every value.
"""

from __future__ import annotations

import collections.abc
import datetime
import enum
import inspect
import math
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeAlias, cast

from treefold_http._description.constraint_keywords import to_json_value
from treefold_http._failures.error_format import ErrorFormat
from treefold_http._injection.contract import Contract
from treefold_http._json.json import msgspec
from treefold_http._types import tree
from treefold_http._types.constraints import PYDANTIC
from treefold_http._types.decode import is_checked_by_own_validator
from treefold_http._types.discriminators import (
    is_discriminated,
    list_options_merging_discriminated,
)
from treefold_http._types.parameters import EMPTY
from treefold_http._types.read import build_type_name, read_named_tuple_items
from treefold_http._types.scalars import SCALARS
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._components import (
    Components,
    Schema,
    add_keywords,
    any_of,
    build_object_schema,
)
from treefold_http.openapi._constraints import apply_constraints, lacks_offset, with_default
from treefold_http.openapi._definitions import (
    add_decimal_patterns,
    collect_classes_by_name,
    is_enum_without_pydantic_hooks,
    make_schema_generator_class,
)
from treefold_http.openapi._examples import rename_in_examples
from treefold_http.openapi._literals import build_literal_schema, split_mixed_enum
from treefold_http.openapi._symmetry import has_same_input_output_schema

Mode: TypeAlias = Literal["input", "checked", "output"]
"""Direction of a schema: values that are received or values that are sent; defaults differ.

`checked` is input that the framework validates itself, which refuses unknown members of a record.
"""

_SETS = (set, frozenset, collections.abc.Set)
_BASES: tuple[tuple[Any, Schema], ...] = (
    ((dict, collections.abc.Mapping), {"type": "object"}),
    ((list, tuple, *_SETS), {"type": "array", "items": {}}),
    *((kind, dict(SCALARS[kind].schema)) for kind in (int, float, str)),
    # before date, which is a base of datetime
    *((kind, dict(SCALARS[kind].schema)) for kind in (datetime.datetime, datetime.date)),
)
"""Schemas of classes that inherit from a type with a JSON form."""
_TARGET = "#/$defs/{%s}"


class Schemas:
    """Makes the schemas of one document; named types become its components.

    Attributes:
        components: the components of the document.
        error_format: the error format of the application; None for problem documents.
    """

    def __init__(self, components: Components, error_format: ErrorFormat | None = None) -> None:
        self.components = components
        self.error_format = error_format
        self._symmetric: dict[Any, bool] = {}

    def build_type_schema(self, node: tree.TypeNode, mode: Mode) -> Schema:
        """Return the schema of a type, or `{}` for a type that cannot be described."""
        try:
            return self._build_schema(node, mode)
        except Exception:  # the types are user code and may raise anything
            return {}

    def build_body_schema(self, node: tree.TypeNode) -> Schema:
        """Return the schema of a JSON body or message, as its validator accepts it."""
        try:
            mode: Mode = "checked" if is_checked_by_own_validator(node) else "input"
        except Exception:  # no validator accepts such a type
            return {}
        return self.build_type_schema(node, mode)

    def build_output_schema(self, contract: Contract) -> Schema:
        """Return the schema of the declared type of successful responses."""
        node = contract.find_output_type(None)
        return {} if node is None else self.build_type_schema(node, "output")

    def _build_schema(self, node: tree.TypeNode, mode: Mode) -> Schema:
        return apply_constraints(self._build_unconstrained(node, mode), node.markers)

    def _build_unconstrained(self, node: tree.TypeNode, mode: Mode) -> Schema:
        match node:
            case tree.AnyType():
                return {}
            case tree.Scalar():
                return dict(SCALARS[node.kind].schema)
            case tree.Choice(kind=None):
                return build_literal_schema([to_json_value(value) for value in node.json_values])
            case tree.Choice(kind=kind):
                name = build_type_name(kind)
                build = partial(_build_enum, node)
                return self._find_or_add_component(kind, kind, mode, build, name)
            case tree.PartialRecord():
                return self._build_schema(node.target_type, mode)
            case tree.TypeStatement(bare_annotation=bare):
                build = partial(self._build_schema, node.target_type, mode)
                return self._find_or_add_component(bare, bare, mode, build, build_type_name(bare))
            case tree.UnionType():
                return self._build_union(node, mode)
            case tree.ListType():
                unique = {"uniqueItems": True} if node.kind in _SETS else {}
                items = {} if node.item.annotation is EMPTY else self._build_schema(node.item, mode)
                return {"type": "array", "items": items, **unique}
            case tree.TupleType():
                return self._build_tuple(node.items, mode)
            case tree.Table():
                return self._build_table(node, mode)
            case tree.Record(family="dataclass" | "typed_dict"):
                return self._build_record(node, mode)
            case tree.ForeignType() if isinstance(node.kind, type) and not node.arguments:
                return self._build_subclass_schema(node, mode)
            case _:
                return self._build_library_schema(node, mode)

    def _build_table(self, node: tree.Table, mode: Mode) -> Schema:
        table: Schema = {"type": "object"}
        if node.value.annotation is not EMPTY:
            table["additionalProperties"] = self._build_schema(node.value, mode)
        if node.has_restricted_keys:
            table["propertyNames"] = self._build_schema(node.key, mode)
        return table

    def _build_union(self, node: tree.UnionType, mode: Mode) -> Schema:
        if is_discriminated(node) and (found := _generate_library_schema(node, mode)) is not None:
            return self._hoist_definitions(node, *found, mode=mode)
        options = list_options_merging_discriminated(node)
        return any_of(self._build_schema(option, mode) for option in options)

    def _build_tuple(self, items: Sequence[tree.TypeNode], mode: Mode) -> Schema:
        schema: Schema = {"type": "array", "minItems": len(items), "maxItems": len(items)}
        # no items before others are invalid (JSON Schema 2020-12, Core, 10.3.1.1)
        if not items:
            return {**schema, "items": {}}
        return {**schema, "prefixItems": [self._build_schema(item, mode) for item in items]}

    def _build_subclass_schema(self, node: tree.ForeignType, mode: Mode) -> Schema:
        kind: Any = node.kind
        if issubclass(kind, tuple) and hasattr(node.kind, "_fields"):
            return self._build_tuple(read_named_tuple_items(kind), mode)
        for bases, schema in _BASES:
            if issubclass(kind, bases):
                return dict(schema)
        return self._build_library_schema(node, mode)

    def _build_record(self, node: tree.Record, mode: Mode) -> Schema:
        if (
            mode == "input"
            and _needs_pydantic(node)
            and (found := self._build_library_schema(node, mode))
        ):
            return found
        key = node.record_type_key if node.arguments else node.kind
        name = "_".join([node.kind.__name__, *map(build_type_name, node.arguments)])
        build = partial(self._build_record_object, node, mode)
        return self._find_or_add_component(key, node.kind, mode, build, name)

    def _find_or_add_component(
        self, key: Any, described_class: Any, mode: Mode, make: Callable[[], Schema], name: str
    ) -> Schema:
        if (known := self.components.find_reference((key, mode))) is not None:
            return known
        # before `make`, in which the type may refer to itself
        node = self._add_node((key, mode), name, described_class, mode)
        try:
            self.components.set_schema(node, make())
        except Exception:  # as in `build_type_schema`; the component stays, without a schema
            self.components.set_schema(node, {})
        return self.components.make_reference(node)

    def _add_node(self, key: Hashable, name: str, described_class: Any, mode: Mode) -> int:
        return self.components.add_node(key, name, described_class, is_input=mode != "output")

    def _build_record_object(self, node: tree.Record, mode: Mode) -> Schema:
        properties: dict[str, Schema] = {}
        required: list[str] = []
        for member in node.declared_members:
            if not (member.is_output if mode == "output" else member.is_input):
                continue
            schema = self._build_schema(member.type, mode)
            has_default = member.default is not EMPTY
            properties[member.name] = (
                with_default(schema, member.default) if has_default else schema
            )
            # a response always has the member, whose default fills it; a body may leave it out
            is_filled = mode == "output" and (has_default or member.factory is not None)
            if member.required or is_filled:
                required.append(member.name)
        made = build_object_schema(properties, required)
        if mode == "checked" or hasattr(node.kind, "__is_partial__"):
            made["additionalProperties"] = False
        return {**_read_description(node.kind), **made}

    def _build_library_schema(self, node: tree.TypeNode, mode: Mode) -> Schema:
        annotation = node.bare_annotation
        known = self.components.find_reference((annotation, mode))
        if known is None and self._has_same_schemas_cached(node):
            other: Mode = "input" if mode == "output" else "output"
            known = self.components.find_reference((annotation, other))
        if known is not None:
            return known
        found = _generate_library_schema(node, mode)
        return {} if found is None else self._hoist_definitions(node, *found, mode=mode)

    def _has_same_schemas_cached(self, node: tree.TypeNode) -> bool:
        """Return the result of `has_same_input_output_schema`, which is asked once for each
        direction.
        """
        if (found := self._symmetric.get(node.bare_annotation)) is None:
            found = self._symmetric[node.bare_annotation] = has_same_input_output_schema(node)
        return found

    def _hoist_definitions(
        self, node: tree.TypeNode, schema: Schema, definitions: Mapping[str, Schema], *, mode: Mode
    ) -> Schema:
        """Make components of the definitions of a schema, and of a model itself."""
        annotation = node.bare_annotation
        nodes: dict[str, int] = {}
        made: dict[str, int] = {}
        classes = collect_classes_by_name(node) if definitions else {}
        for name, definition in definitions.items():
            known = classes.get(name)
            if isinstance(known, tree.Choice) and is_enum_without_pydantic_hooks(known.kind):
                nodes[name] = self._find_or_add_enum_node(known, mode)
                continue
            home = annotation if known is None else known.kind
            said = definition.get("title", name)
            if known is not None:
                said = build_type_name(known.bare_annotation)
            made[name] = nodes[name] = self._add_node((annotation, mode, name), said, home, mode)
        # only now: definitions refer to each other in circles, and all of them have nodes
        for name, added in made.items():
            described = self._link_references(definitions[name], nodes)
            if name in classes:
                rename_in_examples(classes[name], described, for_input=mode != "output")
            self.components.set_schema(added, described)
        linked = self._link_references(schema, nodes)
        if not isinstance(node, tree.Record):
            return linked
        if (target := schema.get("$ref")) is not None:
            self.components.add_alias((annotation, mode), nodes[_parse_definition_name(target)])
            return linked
        rename_in_examples(node, linked, for_input=mode != "output")
        added = self._add_node((annotation, mode), build_type_name(annotation), node.kind, mode)
        self.components.set_schema(added, linked)
        return self.components.make_reference(added)

    def _find_or_add_enum_node(self, node: tree.Choice, mode: Mode) -> int:
        """Return the node of an enum, described in one way whatever package refers to it."""
        self._build_unconstrained(node, mode)
        return self.components.find_node((node.kind, mode))

    def _link_references(self, value: Any, nodes: Mapping[str, int]) -> Any:
        """Return a copy of a schema whose references to definitions point at nodes."""
        if isinstance(value, list):
            return [self._link_references(item, nodes) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        # A default may be NaN, which JSON cannot represent.
        given = split_mixed_enum(cast("Schema", value))
        table = {key: each for key, each in given.items() if not _is_non_finite(each)}
        if lacks_offset(table, table.get("default")):
            del table["default"]
        if table.get("type") == "array" and not table.keys() & {"items", "prefixItems"}:
            table["items"] = {}
        target = table.get("$ref")
        if isinstance(target, str) and _parse_definition_name(target) in nodes:
            reference = self.components.make_reference(nodes[_parse_definition_name(target)])
            rest = {k: self._link_references(v, nodes) for k, v in table.items() if k != "$ref"}
            return add_keywords(reference, rest)
        linked = {key: self._link_references(item, nodes) for key, item in table.items()}
        if isinstance(table.get("discriminator"), dict):
            self._relink_discriminator(linked["discriminator"], nodes)
        return linked

    def _relink_discriminator(self, discriminator: Schema, nodes: Mapping[str, int]) -> None:
        mapping: Schema = discriminator.get("mapping", {})
        for value, target in mapping.items():
            if isinstance(target, str) and _parse_definition_name(target) in nodes:
                target_node = nodes[_parse_definition_name(target)]
                self.components.add_pending_reference(mapping, value, target_node)


def _is_non_finite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _parse_definition_name(target: str) -> str:
    return target.removeprefix("#/$defs/")


def _generate_library_schema(
    node: tree.TypeNode, mode: Mode
) -> tuple[JSONObject, Mapping[str, JSONObject]] | None:
    """The schema of a type and its definitions, referenced as `#/$defs/...`, made by its package.

    None for a type that neither package can describe.
    """
    first = node.options[0] if isinstance(node, tree.UnionType) else node
    family = first.family if isinstance(first, tree.Record) else ""
    if family == "struct" and msgspec is not None:
        template = _TARGET % "name"
        annotations = [node.bare_annotation]
        (schema,), inner = msgspec.json.schema_components(annotations, ref_template=template)
        add_decimal_patterns([schema, inner])
        return schema, inner
    if (pydantic := sys.modules.get("pydantic")) is None:
        return None
    try:
        # The discriminator of a union is in its metadata.
        annotation = node.annotation if isinstance(node, tree.UnionType) else node.bare_annotation
        make = getattr(annotation, "model_json_schema", None)
        make = make or pydantic.TypeAdapter(annotation).json_schema
        schema = make(
            mode="serialization" if mode == "output" else "validation",
            by_alias=True,
            ref_template=_TARGET % "model",
            schema_generator=make_schema_generator_class(),
        )
        return schema, schema.pop("$defs", {})
    except (pydantic.PydanticUserError, AttributeError):
        return None


def _needs_pydantic(node: tree.Record) -> bool:
    """Return True if a dataclass or TypedDict has settings that only pydantic evaluates.

    These are a configuration, and a `Field(...)` as default or with a validation alias.
    """
    members = node.declared_members
    return node.reader == PYDANTIC or any(_has_validation_alias(each.type) for each in members)


def _has_validation_alias(node: tree.TypeNode) -> bool:
    renamed = any(getattr(marker, "validation_alias", None) for marker in node.markers)
    parts = () if isinstance(node, tree.TypeStatement) else node.inner_types
    return renamed or any(map(_has_validation_alias, parts))


def _build_enum(node: tree.Choice) -> Schema:
    kind = cast("type[enum.Enum]", node.kind)
    if issubclass(kind, enum.Flag):  # its values are combinations of the members
        return {**_read_description(kind), "type": "integer"}
    values = [to_json_value(value) for value in node.json_values]
    schema = build_literal_schema(values, [member.name for member in node.members])
    if isinstance(schema.get("const"), (str, int)):
        schema = {"enum": [schema["const"]]}
    return {**_read_description(kind), **schema}


_ENUM_BASES = (enum.Enum, enum.IntEnum, enum.Flag, enum.IntFlag)
_PLAIN_DOCS = frozenset(each.__doc__ for each in _ENUM_BASES if each.__doc__)


def _read_description(kind: type) -> Schema:
    """Return the docstring of a class as a description, unless a decorator generated it."""
    text = kind.__doc__ if "__doc__" in kind.__dict__ else None  # Python 3.15 makes it when read
    if not text or text.startswith(f"{kind.__name__}(") or text in _PLAIN_DOCS:
        return {}
    return {"description": inspect.cleandoc(text)}
