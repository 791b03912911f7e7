"""From rows to results: one function is generated for each shape, and nothing else runs per row.

Generated code holds only identifiers that were checked when the model was defined; values, classes
and converters enter through its namespace.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, cast

from treefold_orm._fields._base import Field

AnyField = Field[Any]
Decode = Callable[[Sequence[Any]], list[Any]]


@dataclass(frozen=True, slots=True)
class Shape:
    """What one instance takes from a row.

    `fields` are its columns in order; `partial` says that the model has more; `related` are
    instances that hang on it, by attribute; `extras` are names and fields of annotations;
    `optional` says it may be missing.
    """

    model: type[Any]
    fields: tuple[AnyField, ...]
    partial: bool = False
    related: tuple[tuple[str, Shape], ...] = ()
    extras: tuple[tuple[str, AnyField | None], ...] = ()
    optional: bool = False
    key: int = 0


class _Code:
    def __init__(self, dialect: str, *, peers: bool) -> None:
        self.dialect = dialect
        self.peers = peers
        self.names: dict[str, Any] = {"new": object.__new__}
        self.lines: list[str] = []
        self.cells = 0
        self.objects = 0
        self.lists: list[str] = []

    def give(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def value(self, cell: str, field: AnyField | None) -> str:
        decode = None if field is None else field.decoder(self.dialect)
        if decode is None:
            return cell
        return f"None if {cell} is None else {self.give('d', decode)}({cell})"


def instances(shape: Shape, dialect: str, *, peers: bool) -> Decode:
    """Return the function that turns rows into instances; with `peers`, each knows its result
    list.
    """
    code = _Code(dialect, peers=peers)
    body = _simple(code, shape) or _general(code, shape)
    # all instances are made by one C loop first; then each row is unpacked straight into attributes
    code.names.update(map=map, repeat=repeat, zip=zip, list=list, len=len, m0=shape.model)
    keep = "    out = list(map(new, repeat(m0, len(rows))))\n" + "".join(
        f"    {name} = []\n" for name in code.lists
    )
    source = (
        f"def decode(rows):\n{keep}    for o0, row in zip(out, rows):\n"
        + "".join(f"        {line}\n" for line in body)
        + "    return out\n"
    )
    return _compiled(source, code.names)


def instance(shape: Shape, dialect: str) -> Callable[[Any], Any]:
    """Return the function that turns a row into an instance that is alone in its result."""
    code = _Code(dialect, peers=False)
    body = _simple(code, shape) or _general(code, shape)
    code.names.update(m0=shape.model)
    source = (
        "def decode(row):\n    o0 = new(m0)\n"
        + "".join(f"    {line}\n" for line in body)
        + "    return o0\n"
    )
    return _compiled(source, code.names)


def _simple(code: _Code, shape: Shape) -> list[str] | None:
    if shape.related or shape.extras or any(f.decoder(code.dialect) for f in shape.fields):
        return None
    targets = ", ".join(f"o0.{f.attname}" for f in shape.fields)
    return [*_start(code, "o0", shape, "row", "out"), f"{targets}, = row"]


def _start(code: _Code, name: str, shape: Shape, row: str, peers: str) -> list[str]:
    lines = [] if name == "o0" else [f"{name} = new({code.give('m', shape.model)})"]
    lines.append(f"{name}._row = {row}")
    if shape.partial:
        lines.append(f"{name}._shape = {code.give('s', shape.fields)}")
    if code.peers:
        lines.append(f"{name}._peers = {peers}")
    return lines


def _general(code: _Code, shape: Shape) -> list[str]:
    lines = _object(code, shape, "row", "out")
    cells = ", ".join(f"c{i}" for i in range(code.cells))
    return [f"{cells}, = row", *lines]


def _object(code: _Code, shape: Shape, row: str, peers: str) -> list[str]:
    name = f"o{code.objects}"
    code.objects += 1
    first = code.cells
    code.cells += len(shape.fields)
    cells = [f"c{first + i}" for i in range(len(shape.fields))]
    own_row = row if name == "o0" else f"({', '.join(cells)},)"
    lines = _start(code, name, shape, own_row, peers)
    lines += [
        f"{name}.{f.attname} = {code.value(c, f)}" for f, c in zip(shape.fields, cells, strict=True)
    ]
    for attribute, related in shape.related:
        child = f"o{code.objects}"
        key = f"c{code.cells + related.key}"
        child_list = f"p{code.objects}"
        if code.peers:
            code.lists.append(child_list)
        inner = _object(code, related, "row", child_list)
        if code.peers:
            inner.append(f"{child_list}.append({child})")
        if related.optional:
            lines += [
                f"if {key} is None:",
                f"    {child} = None",
                "else:",
                *(f"    {line}" for line in inner),
            ]
        else:
            lines += inner
        lines.append(f"{name}._cached_{attribute} = {child}")
    if shape.extras:
        for extra, field in shape.extras:
            lines.append(f"{name}.{extra} = {code.value(f'c{code.cells}', field)}")
            code.cells += 1
    return lines


def dicts(names: Sequence[str], fields: Sequence[AnyField | None], dialect: str) -> Decode:
    """Return the function that turns rows into dictionaries."""
    code = _Code(dialect, peers=False)
    cells = [f"c{i}" for i in range(len(names))]
    items = ", ".join(
        f"{n!r}: {code.value(c, f)}" for n, c, f in zip(names, cells, fields, strict=True)
    )
    return _compiled(
        f"def decode(rows):\n    return [{{{items}}} for {', '.join(cells)}, in rows]\n", code.names
    )


def tuples(fields: Sequence[AnyField | None], dialect: str) -> Decode:
    """Return the function that turns rows into tuples."""
    code = _Code(dialect, peers=False)
    cells = [f"c{i}" for i in range(len(fields))]
    values = [code.value(c, f) for c, f in zip(cells, fields, strict=True)]
    if values == cells:
        return lambda rows: list(map(tuple, rows))
    return _compiled(
        f"def decode(rows):\n    return [({', '.join(values)},) for {', '.join(cells)}, in rows]\n",
        code.names,
    )


def named(names: Sequence[str], fields: Sequence[AnyField | None], dialect: str) -> Decode:
    """Return the function that turns rows into named tuples."""
    plain = tuples(fields, dialect)
    make: Any = cast("Any", namedtuple)("Row", list(names), rename=True)._make
    return lambda rows: list(map(make, plain(rows)))


def flat(field: AnyField | None, dialect: str) -> Decode:
    """Return the function that turns rows of one column into a list of its values."""
    code = _Code(dialect, peers=False)
    return _compiled(
        f"def decode(rows):\n    return [{code.value('c0', field)} for c0, in rows]\n", code.names
    )


def first_of(decode: Decode) -> Callable[[Any], Any]:
    """Return the function that decodes a single row."""
    return lambda row: decode([row])[0]


def _compiled(source: str, names: dict[str, Any]) -> Any:
    exec(compile(source, "<treefold_orm rows>", "exec"), names)  # noqa: S102 - see the module's opening
    return names["decode"]
