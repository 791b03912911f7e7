"""From rows to results: one function is generated for each layout, and it does all work per row,
except for named tuples, which are made of the tuples that it returns.

Generated code holds only identifiers, checked when the model was defined or by `annotate()`, and
the labels of dictionaries as literals; classes and converters enter through its namespace.

Example, a query on SQLite, of which one row is `(1, "Ants", 7, "1961-05-04")`:

    Article.objects.select_related("writer").only("title", "writer__born")

The layout of a writer in it, `writer`, is `InstanceLayout(Writer, (id, born), partial=True,
repeated=True)`, that of an article `InstanceLayout(Article, (id, title), partial=True,
related=(("writer", writer),))`. For it `compile_instance_list_decoder` generates

    def decode(rows):
        out = list(map(new, repeat(model, len(rows))))
        seen_o1 = {}
        try:
            for o0, row in zip(out, rows):
                o0.id, o0.title, c2, c3, = row
                o0._row = row
                o0._shape = fields2
                o1 = seen_o1.get(c2)
                if o1 is None:
                    o1 = new(model3)
                    o1._row = (c2, c3,)
                    o1._shape = fields4
                    o1.id = c2
                    o1.born = None if c3 is None else decode5(c3)
                    seen_o1[c2] = o1
                o0._cached_writer = o1
        except Exception as error:
            raise locate12(error, rows) from None
        return out

`o0` is the main instance and `o1` the first that hangs on it, `c2` the third cell of the row, and
`value_c2` what it decodes to. Other names end in a number that keeps them apart, and say what the
namespace holds under them: `model3` a class, `fields2` columns, `decode5` the decoder of a column,
`unexpected6` what reads a value of another type, `alias7` a database, `LazyBatch8` that class; and
`batch1` is an instance of it, for sync code, which the instances of one branch share.
"""

from __future__ import annotations

import datetime as dt
from collections import namedtuple
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, cast

from treefold_orm._base.errors import ORMError
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.batch import LazyBatch

Output = AnyField | tuple[AnyField | None, ...] | None  # several cells make one tuple
Decode = Callable[[Sequence[Any]], list[Any]]


@frozen_record
class InstanceLayout(Record):
    """The columns that one instance takes from a row.

    `fields` are its columns in order; `partial` says that the model has more; `related` are
    instances that hang on it, by attribute; `extras` are names and fields of annotations;
    `optional` says it may be missing, `repeated` that several rows may hold the same one: they
    share an instance then. `spare` counts cells at the end of a row that belong to nothing.
    """

    model: type[Any]
    fields: Fields
    partial: bool = False
    related: tuple[tuple[str, InstanceLayout], ...] = ()
    extras: tuple[tuple[str, AnyField | None], ...] = ()
    optional: bool = False
    key: int = 0
    repeated: bool = False
    spare: int = 0


class _DecoderSource:
    """What the parts of one generated function have in common.

    Attributes:
        names: the namespace of the function: what its source cannot say.
        readings: cells that may fail to decode, with their fields, for the message.
        cells, objects: how many cells and instances have a name so far.
        targets: cells of which nothing is read but one attribute, by their index; the row is
            unpacked straight into it.
        prologue: lines before the loop.
        several: True for a function that decodes the rows of a whole result.
    """

    def __init__(
        self,
        dialect: str,
        *,
        batch_lazy: bool = False,
        several: bool = False,
        alias: str = "default",
    ) -> None:
        self.dialect = dialect
        self.alias = alias
        self.several = several
        self.batch_lazy = batch_lazy
        # rows pass the model's `__init__` by, which would fill in a default for each column
        self.names: dict[str, Any] = {"new": object.__new__, "utc": dt.UTC}
        self.readings: list[tuple[int, AnyField]] = []
        self.cells = 0
        self.targets: dict[int, str] = {}
        self.objects = 0
        self.prologue: list[str] = []

    def add_namespace_value(self, prefix: str, value: Any) -> str:
        name = f"{prefix}{len(self.names)}"
        self.names[name] = value
        return name

    def build_decode_expression(self, cell: str, field: AnyField | None) -> str:
        reading = None if field is None else field.build_read_rule(self.dialect)
        if field is None or reading is None or (reading.decode is None and not reading.raw):
            return cell
        self.readings.append((int(cell[1:]), field))
        made = cell
        if reading.decode is not None:
            made = f"{self.add_namespace_value('decode', reading.decode)}({cell})"
        if reading.raw:
            wrong = self._build_unexpected_value(cell, field)
            made = f"{made} if {reading.raw.format(cell)} else {wrong}"
        elif reading.value:
            wrong, kept = self._build_unexpected_value(cell, field), f"value_{cell}"
            # bound on the way, so that the test does not decode the cell a second time
            made = f"{kept} if {reading.value.format(f'({kept} := {made})')} else {wrong}"
        return f"None if {cell} is None else {made}"

    def _build_unexpected_value(self, cell: str, field: AnyField) -> str:
        return f"{self.add_namespace_value('unexpected', field.read_unexpected_value)}({cell})"

    def add_error_locator(self) -> str:
        """The name of what finds the row and the column that could not be read."""
        return self.add_namespace_value("locate", _make_error_locator(self.readings, self.dialect))


def compile_async_and_sync_decoders(
    shape: InstanceLayout, dialect: str, *, alias: str
) -> tuple[Decode, Decode]:
    """Return the functions that turn rows into instances, for async and for sync code."""
    decode = compile_instance_list_decoder(shape, dialect, batch_lazy=False, alias=alias)
    if not can_load_lazily(shape):
        return decode, decode
    return decode, compile_instance_list_decoder(shape, dialect, batch_lazy=True, alias=alias)


def compile_instance_list_decoder(
    shape: InstanceLayout, dialect: str, *, batch_lazy: bool, alias: str = "default"
) -> Decode:
    """Return the function that turns rows of the database `alias` into instances; with
    `batch_lazy`, each knows the rows of its result.
    """
    code = _DecoderSource(dialect, batch_lazy=batch_lazy, several=True, alias=alias)
    body = _build_unpacking_lines(code, shape) or _build_decoding_lines(code, shape)
    # all instances are made by one C loop first; then each row is unpacked straight into attributes
    code.names.update(map=map, repeat=repeat, zip=zip, list=list, len=len, model=shape.model)
    prologue = ["out = list(map(new, repeat(model, len(rows))))", *code.prologue]
    loop = ["for o0, row in zip(out, rows):", *(f"    {line}" for line in body)]
    return _compile_decoder(code, "rows", prologue, loop, "out")


def compile_single_instance_decoder(
    shape: InstanceLayout, dialect: str, *, alias: str
) -> Callable[[Any], Any]:
    """Return the function that turns a row into an instance that is alone in its result."""
    code = _DecoderSource(dialect, alias=alias)
    body = _build_unpacking_lines(code, shape) or _build_decoding_lines(code, shape)
    code.names.update(model=shape.model)
    return _compile_decoder(code, "row", ["o0 = new(model)"], body, "o0")


def can_load_lazily(shape: InstanceLayout) -> bool:
    """True if instances of this shape may load columns or relations when they are read."""
    return _has_lazy_attributes(shape) or any(can_load_lazily(child) for _, child in shape.related)


def _has_lazy_attributes(shape: InstanceLayout) -> bool:
    return shape.partial or bool(shape.model._meta.relations)


def _build_unpacking_lines(code: _DecoderSource, shape: InstanceLayout) -> list[str] | None:
    if shape.related or shape.extras or any(_needs_decoding(f, code.dialect) for f in shape.fields):
        return None
    targets = ", ".join([*(f"o0.{f.attname}" for f in shape.fields), *["_"] * shape.spare])
    # the comma makes it an unpacking also where the row has a single column
    return [*_build_instance_setup(code, "o0", shape, "row", 0), f"{targets}, = row"]


def _build_instance_setup(
    code: _DecoderSource, name: str, shape: InstanceLayout, row: str, first: int
) -> list[str]:
    lines = (
        [] if name == "o0" else [f"{name} = new({code.add_namespace_value('model', shape.model)})"]
    )
    # save() compares attributes with the row as it came, and writes those that differ
    lines.append(f"{name}._row = {row}")
    # the class has its own database as `_alias`: most rows need no attribute for it
    if code.alias != shape.model._meta.database:
        lines.append(f"{name}._alias = {code.add_namespace_value('alias', code.alias)}")
    if shape.partial:
        lines.append(f"{name}._shape = {code.add_namespace_value('fields', shape.fields)}")
    if code.batch_lazy and _has_lazy_attributes(shape):
        # one batch for each branch of a result, made before the loop and shared by its instances
        batch, kind = f"batch{code.objects}", code.add_namespace_value("LazyBatch", LazyBatch)
        own_fields = code.add_namespace_value("fields", shape.fields)
        code.prologue.append(f"{batch} = {kind}(rows, {own_fields}, {first})")
        lines.append(f"{name}._batch = {batch}")
    return lines


def _build_decoding_lines(code: _DecoderSource, shape: InstanceLayout) -> list[str]:
    lines = _build_instance_lines(code, shape, "row")
    cells = [code.targets.get(i, f"c{i}") for i in range(code.cells)]
    return [f"{', '.join([*cells, *['_'] * shape.spare])}, = row", *lines]


def _build_instance_lines(code: _DecoderSource, shape: InstanceLayout, row: str) -> list[str]:
    name = f"o{code.objects}"
    code.objects += 1
    first = code.cells
    code.cells += len(shape.fields)
    cells = [f"c{first + i}" for i in range(len(shape.fields))]
    # the main model's columns are the first of the row, which serves as it is: no copy for each
    own_row = row if name == "o0" else f"({', '.join(cells)},)"
    lines = _build_instance_setup(code, name, shape, own_row, first)
    for field, cell in zip(shape.fields, cells, strict=True):
        lines += _build_assignment(code, name, field.attname, cell, field)
    for attribute, related in shape.related:
        child = f"o{code.objects}"
        key = f"c{code.cells + related.key}"
        inner = _build_deduplicated_instance_lines(code, related, child)
        if related.optional:
            lines += [f"if {key} is None:", f"    {child} = None", "else:"]
            lines += [f"    {line}" for line in inner]
        else:
            lines += inner
        lines.append(f"{name}._cached_{attribute} = {child}")
    if shape.extras:
        for extra, field in shape.extras:
            lines += _build_assignment(code, name, extra, f"c{code.cells}", field)
            code.cells += 1
    return lines


def _build_assignment(
    code: _DecoderSource, name: str, attribute: str, cell: str, field: AnyField | None
) -> list[str]:
    value = code.build_decode_expression(cell, field)
    if name == "o0" and value == cell:  # unpacked straight into the attribute
        code.targets[int(cell[1:])] = f"o0.{attribute}"
        return []
    return [f"{name}.{attribute} = {value}"]


def _build_deduplicated_instance_lines(
    code: _DecoderSource, shape: InstanceLayout, child: str
) -> list[str]:
    first = code.cells
    lines = _build_instance_lines(code, shape, "row")
    if not (code.several and shape.repeated):
        return lines
    places = [first + shape.fields.index(key) for key in shape.model._meta.keys]
    key = f"c{places[0]}" if len(places) == 1 else f"({', '.join(f'c{i}' for i in places)})"
    # one dictionary for each branch: `only()` may load other columns of the same model in another
    seen = f"seen_{child}"
    code.prologue.append(f"{seen} = {{}}")
    return [
        f"{child} = {seen}.get({key})",
        f"if {child} is None:",
        *(f"    {line}" for line in lines),
        f"    {seen}[{key}] = {child}",
    ]


def _build_row_expressions(
    code: _DecoderSource, fields: Sequence[Output]
) -> tuple[list[str], list[str]]:
    cells: list[str] = []
    values: list[str] = []
    for output in fields:
        parts = output if isinstance(output, tuple) else (output,)
        named = [f"c{len(cells) + i}" for i in range(len(parts))]
        build = code.build_decode_expression
        made = [build(cell, part) for cell, part in zip(named, parts, strict=True)]
        cells += named
        together = f"None if {named[0]} is None else ({', '.join(made)},)"
        values.append(together if isinstance(output, tuple) else made[0])
    return cells, values


def compile_dict_decoder(names: Sequence[str], fields: Sequence[Output], dialect: str) -> Decode:
    """Return the function that turns rows into dictionaries."""
    code = _DecoderSource(dialect)
    cells, values = _build_row_expressions(code, fields)
    items = ", ".join(f"{name!r}: {value}" for name, value in zip(names, values, strict=True))
    made = f"[{{{items}}} for {', '.join(cells)}, in rows]"
    return _compile_decoder(code, "rows", [], [f"out = {made}"], "out")


def compile_tuple_decoder(fields: Sequence[Output], dialect: str) -> Decode:
    """Return the function that turns rows into tuples."""
    code = _DecoderSource(dialect)
    cells, values = _build_row_expressions(code, fields)
    if values == cells:
        # records of asyncpg are no tuples; of a tuple, tuple() is the tuple itself
        return lambda rows: list(map(tuple, rows))
    made = f"[({', '.join(values)},) for {', '.join(cells)}, in rows]"
    return _compile_decoder(code, "rows", [], [f"out = {made}"], "out")


def compile_named_tuple_decoder(
    names: Sequence[str], fields: Sequence[Output], dialect: str
) -> Decode:
    """Return the function that turns rows into named tuples."""
    plain = compile_tuple_decoder(fields, dialect)
    # namedtuple() refuses names that come twice, as in `values_list("id", "id")`, unless renamed
    make: Any = cast("Any", namedtuple)("Row", list(names), rename=True)._make
    return lambda rows: list(map(make, plain(rows)))


def compile_flat_decoder(field: Output, dialect: str) -> Decode:
    """Return the function that turns rows of one value into a list of these values."""
    code = _DecoderSource(dialect)
    cells, (value,) = _build_row_expressions(code, [field])
    made = f"[{value} for {', '.join(cells)}, in rows]"
    return _compile_decoder(code, "rows", [], [f"out = {made}"], "out")


def make_single_row_decoder(decode: Decode) -> Callable[[Any], Any]:
    """Return the function that decodes a single row."""
    return lambda row: decode([row])[0]


def _compile_decoder(
    code: _DecoderSource,
    argument_name: str,
    prologue: Sequence[str],
    body: Sequence[str],
    result: str,
) -> Any:
    """Compile `decode`, whose errors name the column; without decoders it has nothing to fail."""
    lines = [f"def decode({argument_name}):", *(f"    {line}" for line in prologue)]
    if code.readings:
        rows = "rows" if argument_name == "rows" else "[row]"
        lines += [
            "    try:",
            *(f"        {line}" for line in body),
            "    except Exception as error:",
            # `from None`: the error of a decoder quotes the stored value, which may be a secret
            f"        raise {code.add_error_locator()}(error, {rows}) from None",
        ]
    else:
        lines += [f"    {line}" for line in body]
    return _execute_decoder_source("\n".join([*lines, f"    return {result}", ""]), code.names)


def _needs_decoding(field: AnyField, dialect: str) -> bool:
    reading = field.build_read_rule(dialect)
    return reading.decode is not None or bool(reading.raw)


def _make_error_locator(
    readings: Sequence[tuple[int, AnyField]], dialect: str
) -> Callable[[Exception, Sequence[Any]], Exception]:
    # the loop keeps no record of its place, which would cost every row: values are tried once more
    def build_located_error(error: Exception, rows: Sequence[Any]) -> Exception:
        if isinstance(error, ORMError):
            # an error of this package names its field already
            return error
        for row in rows:
            for place, field in readings:
                decode = field.build_read_rule(dialect).decode
                if decode is None or row[place] is None:
                    continue
                try:
                    decode(row[place])
                except Exception:  # noqa: BLE001, RUF100 - whatever it is, this value is the reason
                    return field.build_unreadable_error(row[place])
        # each value decodes by itself: it was something else, such as a MemoryError
        return error

    return build_located_error


def _execute_decoder_source(source: str, names: dict[str, Any]) -> Any:
    exec(compile(source, "<treefold_orm rows>", "exec"), names)  # noqa: S102 - see the module's opening
    return names["decode"]
