"""Named schemas of one document, merged and named when the document is complete.

A named schema refers to others by node, and may refer to itself. At the end, nodes with one name
and identical graphs become one component; different ones get different names. The content of
schemas is made elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any, TypeAlias, cast

Schema: TypeAlias = dict[str, Any]


@dataclass(slots=True)
class _Node:
    """A schema before it becomes a component; `others` are alternative names, in order."""

    name: str
    others: Sequence[str]
    late: bool
    schema: Schema = field(default_factory=dict[str, Any])


class Components:
    """The schemas and the header fields of one document.

    Attributes:
        headers: name to Header Object.
    """

    def __init__(self) -> None:
        self.headers: dict[str, Schema] = {}
        self._nodes: list[_Node] = []
        self._by_key: dict[Hashable, int] = {}
        self._references: list[tuple[Schema, str, int]] = []

    def known(self, key: Hashable) -> Schema | None:
        """Return a reference to the schema added under a key, or None."""
        node = self._by_key.get(key)
        return None if node is None else self.refer(node)

    def add(
        self, key: Hashable, name: str, *, others: Sequence[str] = (), late: bool = False
    ) -> int:
        """Add an empty node for a schema that may refer to itself; `fill` sets the schema.

        Args:
            others: alternative names where another schema has the name.
            late: True if a node that is not late takes the name first.
        """
        self._nodes.append(_Node(_clean(name), [_clean(other) for other in others], late))
        node = self._by_key[key] = len(self._nodes) - 1
        return node

    def fill(self, node: int, schema: Schema) -> None:
        """Set the schema of a node."""
        self._nodes[node].schema = schema

    def alias(self, key: Hashable, node: int) -> None:
        """Register a node under an additional key."""
        self._by_key[key] = node

    def refer(self, node: int) -> Schema:
        """Return a reference to a node; `finish` writes its target."""
        return self.point({}, "$ref", node)

    def point(self, table: Schema, key: str, node: int) -> Schema:
        """Register `table[key]`, which `finish` sets to the address of a node; return the table."""
        table[key] = f"#{node}"  # differs per node, so that unresolved references are not equal
        self._references.append((table, key, node))
        return table

    def header(self, name: str, made: Schema) -> Schema:
        """Return a reference to a header field, or the object itself if the name is taken."""
        known = self.headers.setdefault(name, made)
        return {"$ref": f"#/components/headers/{name}"} if known == made else made

    def finish(self) -> dict[str, Schema]:
        """Name every schema, write the targets of references, and return the schemas by name."""
        for table, key, _ in self._references:
            table[key] = ""
        groups = self._groups()
        names = self._names(groups)
        for table, key, node in self._references:
            table[key] = f"#/components/schemas/{names[groups[node]]}"
        found = {names[group]: self._nodes[node].schema for node, group in enumerate(groups)}
        return dict(sorted(found.items()))

    def _groups(self) -> list[int]:
        """Return the group of each node, splitting groups until all of their references agree."""
        targets = self._targets()
        groups = _numbered((node.name, json.dumps(node.schema)) for node in self._nodes)
        while True:
            finer = _numbered(
                (group, tuple(groups[target] for target in targets[node]))
                for node, group in enumerate(groups)
            )
            if max(finer, default=0) == max(groups, default=0):
                return groups
            groups = finer

    def _targets(self) -> list[list[int]]:
        known: dict[int, list[int]] = {}
        for table, _, node in self._references:
            known.setdefault(id(table), []).append(node)
        return [
            [target for part in _parts(node.schema) for target in known.get(id(part), ())]
            for node in self._nodes
        ]

    def _names(self, groups: Sequence[int]) -> dict[int, str]:
        first: dict[int, _Node] = {}
        for node, group in enumerate(groups):
            known = first.setdefault(group, self._nodes[node])
            if known.late and not self._nodes[node].late:
                first[group] = self._nodes[node]
        names: dict[int, str] = {}
        taken = {node.name for node in self._nodes}
        free = set(taken)
        for group in sorted(first, key=lambda group: first[group].late):
            node = first[group]
            if node.name in free:
                free.discard(node.name)
                names[group] = node.name
                continue
            names[group] = free_name(node.name, taken, *node.others)
            taken.add(names[group])
        return names


def any_of(schemas: Iterable[Schema]) -> Schema:
    """Return a schema that accepts what one of these accepts; `{}` if one accepts everything."""
    found: list[Schema] = []
    for schema in schemas:
        if schema not in found:
            found.append(schema)
    if {} in found:
        return {}
    return found[0] if len(found) == 1 else {"anyOf": found}


def object_of(properties: Mapping[str, Schema], required: Sequence[str]) -> Schema:
    """Return the schema of an object with these members."""
    made: Schema = {"type": "object", "properties": properties}
    return {**made, "required": required} if required else made


def free_name(name: str, taken: Container[str], *wanted: str) -> str:
    """Return the first name that is not taken: the wanted ones, then a numbered one."""
    numbered = (f"{name}_{number}" for number in count(2))
    return next(each for each in chain(wanted, numbered) if each not in taken)


def beside(schema: Schema, said: Mapping[str, Any]) -> Schema:
    """Return a schema with added keywords; a reference is kept as an object of its own."""
    if not said:
        return schema
    return {"allOf": [schema], **said} if "$ref" in schema else {**schema, **said}


def _numbered(keys: Iterator[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _parts(value: object) -> Iterator[Schema]:
    """Yield every table in a schema, outer ones first."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            table = cast("Schema", part)
            yield table
            waiting.extend(table.values())
        elif isinstance(part, list):
            waiting.extend(cast("list[object]", part))


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_")[:200] or "Model"
