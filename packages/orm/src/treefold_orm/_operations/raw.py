"""SQL of the caller's own: literal text, values bound by name, never concatenated.

Connections that ran raw SQL count as tainted and are reset before anyone else uses them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._base.journal import active
from treefold_orm._base.names import check_untainted
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._decode.hydrate import InstanceLayout, compile_instance_list_decoder
from treefold_orm._dialects.sql import SQL, StatementBuilder
from treefold_orm._fields.base import Fields
from treefold_orm._fields.carriers import infer_value_field
from treefold_orm._fields.meta import Meta
from treefold_orm._operations.loading import mark_read_in_transaction
from treefold_orm._runtime.connections import database_for
from treefold_orm._runtime.run import arun, run

# text in quotes, comments, casts, and then names: only the last are placeholders
_TOKENS = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|/\*.*?\*/|::|:([A-Za-z_][A-Za-z0-9_]*)""", re.DOTALL
)


def bind_placeholders(sql: Any, values: Mapping[str, Any], alias: str) -> Statement:
    """Turn `:name` placeholders into the driver's own and put the values in order."""
    if not isinstance(sql, str):
        raise FieldError(f"Raw SQL takes literal text, not {type(sql).__name__}")
    check_untainted(sql)
    dialect = database_for(alias).dialect
    builder = StatementBuilder()
    pieces: list[str] = []
    order: list[Any] = []
    used: set[str] = set()
    position = 0
    if "\0" in sql:
        raise FieldError("Raw SQL may not contain a NUL character")
    for found in _TOKENS.finditer(sql):
        name = found[1]
        if name is None:
            continue
        if name not in values:
            raise FieldError(f"Raw SQL uses :{name}, which is not given: pass {name}=...")
        pieces.append(sql[position : found.start()])
        pieces.append(builder.bind_param(len(order), None).text)
        order.append(values[name])
        used.add(name)
        position = found.end()
    if unused := sorted(set(values) - used):
        raise FieldError(f"Raw SQL does not use {unused[0]!r}: write :{unused[0]} in the text")
    pieces.append(sql[position:])
    statement = SQL("")
    statement.text = "".join(pieces)
    text, slots = builder.finish_statement(statement, dialect)
    return Statement(
        "rows", text, [_encode_value(order[index], dialect.name) for index, _ in slots]
    )


def _encode_value(value: Any, dialect: str) -> Any:
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    if isinstance(value, (list, tuple)) and dialect == "postgres":
        return list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - the driver checks the items
    field = infer_value_field(value)
    encode = field.encoder(dialect)
    checked = field.coerce(value)
    return checked if encode is None else encode(checked)


def select_instances(
    meta: Meta, alias: str, sql: Any, values: Mapping[str, Any], *, batch_lazy: bool
) -> Operation[list[Any]]:
    """Instances from raw SQL; the key must be among the columns."""
    statement = bind_placeholders(sql, values, alias)
    statement.kind = "raw"
    names, rows = yield statement
    by_column = {field.column_name: field for field in meta.columns}
    for name in names:
        if name not in by_column:
            raise FieldError(
                f"Raw SQL gives a column {name!r}, which {meta.name} does not have: select its "
                "columns only"
            )
    fields = tuple(by_column[name] for name in names)
    if not set(meta.keys) <= set(fields) or len(set(fields)) != len(fields):
        keys = " and ".join(repr(key.column_name) for key in meta.keys)
        raise FieldError(f"Raw SQL for {meta.name} must give {keys}, and each column once")
    shape = InstanceLayout(meta.model, fields, partial=fields != meta.columns)
    dialect = database_for(alias).dialect.name
    decode = compile_instance_list_decoder(shape, dialect, batch_lazy=batch_lazy, alias=alias)
    found = decode([_convert_raw_row(row, fields, dialect) for row in rows])
    if active.journal is not None:
        mark_read_in_transaction(found, active.journal)
    return found


def _convert_raw_row(row: Any, fields: Fields, dialect: str) -> tuple[Any, ...]:
    """A row of raw SQL with the columns of other tools as any other query gives them."""
    if not any(field.storage for field in fields):
        return tuple(row)
    return tuple(
        field.convert_stored_value(value, dialect) if field.storage and value is not None else value
        for field, value in zip(fields, row, strict=True)
    )


def _fetch_dictionaries(
    sql: str, values: Mapping[str, Any], alias: str
) -> Operation[list[dict[str, Any]]]:
    statement = bind_placeholders(sql, values, alias)
    statement.kind = "raw"
    names, rows = yield statement
    return [dict(zip(names, row, strict=True)) for row in rows]


def raw(sql: LiteralString, /, *, using: str = "default", **values: Any) -> list[dict[str, Any]]:
    """Run one statement of your own and return its rows as dictionaries.

    `sql` is literal text with `:name` placeholders; `values` are bound. It runs where writes may
    run.
    """
    return run(using, _fetch_dictionaries(sql, values, using), "await araw()", write=True)


async def araw(
    sql: LiteralString, /, *, using: str = "default", **values: Any
) -> list[dict[str, Any]]:
    """`raw` for async code."""
    return await arun(using, _fetch_dictionaries(sql, values, using), write=True)
