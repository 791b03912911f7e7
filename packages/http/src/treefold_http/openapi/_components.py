"""Named schemas of one document, merged and named when the document is complete.

A named schema refers to others by node, and may refer to itself. At the end, nodes with one name
and identical graphs become one component; different ones get different names. The content of
schemas is made elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from treefold_http._description.class_origin import ClassOrigin
from treefold_http._wire.aliases import JSONObject
from treefold_http.openapi._component_names import Node, assign_schema_names

Schema: TypeAlias = JSONObject


class Components:
    """The schemas and the header fields of one document.

    Attributes:
        headers: name to Header Object.
    """

    def __init__(self) -> None:
        self.headers: dict[str, Schema] = {}
        self._nodes: list[Node] = []
        self._schemas: list[Schema] = []
        self._by_key: dict[Hashable, int] = {}
        self._references: list[tuple[Schema, str, int]] = []

    def find_reference(self, key: Hashable) -> Schema | None:
        """Return a reference to the schema added under a key, or None."""
        node = self._by_key.get(key)
        return None if node is None else self.make_reference(node)

    def add_node(
        self, key: Hashable, name: str, described_class: Any = None, *, is_input: bool = False
    ) -> int:
        """Add an empty node for a schema that may refer to itself; `set_schema` sets the schema.

        Args:
            described_class: the class that the schema describes; None for a schema of the
                framework.
            is_input: True for the input of a class, whose output takes the name of the class.
        """
        self._nodes.append(Node(_clean_name(name), ClassOrigin(described_class), is_input))
        self._schemas.append({})
        node = self._by_key[key] = len(self._nodes) - 1
        return node

    def set_schema(self, node: int, schema: Schema) -> None:
        """Set the schema of a node, without a title: readers take titles as names of classes."""
        schema.pop("title", None)
        self._schemas[node] = schema

    def find_node(self, key: Hashable) -> int:
        """Return the node that was added under a key."""
        return self._by_key[key]

    def add_alias(self, key: Hashable, node: int) -> None:
        """Register a node under an additional key."""
        self._by_key[key] = node

    def make_reference(self, node: int) -> Schema:
        """Return a reference to a node; `resolve_named_schemas` writes its target."""
        return self.add_pending_reference({}, "$ref", node)

    def add_pending_reference(self, schema: Schema, key: str, node: int) -> Schema:
        """Register `schema[key]` as a reference, and return the schema.

        `resolve_named_schemas` sets it to the address of a node.
        """
        schema[key] = f"#{node}"  # differs per node, so that unresolved references are not equal
        self._references.append((schema, key, node))
        return schema

    def add_and_reference_header(self, name: str, header: Schema) -> Schema:
        """Return a reference to a header field, or the object itself if the name is taken."""
        known = self.headers.setdefault(name, header)
        return {"$ref": f"#/components/headers/{name}"} if known == header else header

    def resolve_named_schemas(self) -> dict[str, Schema]:
        """Name every schema, write the targets of references, and return the schemas by name."""
        for table, key, _ in self._references:
            # equal schemas must have one text; where their references lead is compared by
            # `_group_equal_nodes`
            table[key] = ""
        groups = self._group_equal_nodes()
        names = assign_schema_names(self._nodes, groups)
        for table, key, node in self._references:
            table[key] = f"#/components/schemas/{names[groups[node]]}"
        found = {names[group]: self._schemas[node] for node, group in enumerate(groups)}
        return dict(sorted(found.items()))

    def _group_equal_nodes(self) -> list[int]:
        """Return the group of each node, splitting groups until all of their references agree."""
        targets = self._find_referenced_nodes()
        pairs = zip(self._nodes, self._schemas, strict=True)
        groups = _number_distinct_keys((node.name, json.dumps(schema)) for node, schema in pairs)
        # Schemas may contain themselves, so no comparison can follow the references. Groups are
        # split while two members lead to different groups, as when a finite automaton is minimized.
        while True:
            reached = [tuple(groups[target] for target in each) for each in targets]
            finer = _number_distinct_keys(zip(groups, reached, strict=True))
            if max(finer, default=0) == max(groups, default=0):
                return groups
            groups = finer

    def _find_referenced_nodes(self) -> list[list[int]]:
        known: dict[int, list[int]] = {}
        for table, _, node in self._references:
            # `_references` keeps the tables, so that no identity is used twice
            known.setdefault(id(table), []).append(node)
        return [
            [target for part in _iter_nested_objects(schema) for target in known.get(id(part), ())]
            for schema in self._schemas
        ]


def any_of(schemas: Iterable[Schema]) -> Schema:
    """Return a schema that accepts what one of these accepts; `{}` if one accepts everything."""
    found: list[Schema] = []
    for schema in schemas:
        if schema not in found:
            found.append(schema)
    if {} in found:
        return {}
    return found[0] if len(found) == 1 else {"anyOf": found}


def build_object_schema(properties: Mapping[str, Schema], required: Sequence[str]) -> Schema:
    """Return the schema of an object with these members."""
    made: Schema = {"type": "object", "properties": properties}
    return {**made, "required": required} if required else made


def add_keywords(schema: Schema, keywords: Mapping[str, Any]) -> Schema:
    """Return a schema with added keywords; a reference is kept as an object of its own."""
    if not keywords:
        return schema
    return {"allOf": [schema], **keywords} if "$ref" in schema else {**schema, **keywords}


def _number_distinct_keys(keys: Iterator[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _iter_nested_objects(value: object) -> Iterator[Schema]:
    """Yield every object in a schema, outer ones first."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            table = cast("Schema", part)
            yield table
            waiting.extend(table.values())
        elif isinstance(part, list):
            waiting.extend(cast("list[object]", part))


def _clean_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_")[:200] or "Model"
