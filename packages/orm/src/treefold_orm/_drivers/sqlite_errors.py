"""From sqlite3's errors to this package's own."""

from __future__ import annotations

import re
import sqlite3
from typing import Any

from treefold_orm._base import errors
from treefold_orm._base.data_errors import RANGE, TOO_LONG
from treefold_orm._expressions.naming import (
    build_check_constraint_name,
    find_unique_constraint_name,
    map_constraints_to_fields,
)
from treefold_orm._fields.meta import registry
from treefold_orm._fields.text import TextField
from treefold_orm._sqlite.refusals import take_failure_reason

_FOREIGN_KEY = "FOREIGN KEY constraint failed"
_COLUMNS = re.compile(r"(?:UNIQUE|NOT NULL) constraint failed: (.+)", re.DOTALL)
_NAME = re.compile(
    r"UNIQUE constraint failed: index '(.+)'|CHECK constraint failed: (.+)", re.DOTALL
)


def _translate_function_error(text: str, code: str | None) -> errors.DataError | None:
    reason = take_failure_reason()
    if reason is not None and text.startswith("user-defined "):
        return errors.DataError(reason, code=code)
    if text == "integer overflow":
        return errors.DataError(RANGE, code=code)
    return None


def translate_error(error: BaseException, file: str = "") -> errors.ORMError:
    """Return the error to raise; it names tables and columns, never values.

    `file` is the database that could not be opened.
    """
    text = str(error)
    code: str | None = getattr(error, "sqlite_errorname", None)
    if isinstance(error, OverflowError):
        return errors.DataError("An integer does not fit into 64 bits", code=code)
    # SQLite before 3.39 reports it as SQLITE_ERROR where the statement has RETURNING
    if isinstance(error, sqlite3.IntegrityError) or text == _FOREIGN_KEY:
        return _translate_length_violation(text, code) or _translate_integrity_error(text, code)
    if code is not None and code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return errors.DatabaseLocked("The database stayed locked by another connection", code=code)
    if code == "SQLITE_INTERRUPT":
        return errors.StatementTimeout("The statement was interrupted", code=code)
    # SQLITE_AUTH is the answer of a reader's authorizer
    if code is not None and (code.startswith("SQLITE_READONLY") or code == "SQLITE_AUTH"):
        return errors.ReadOnlyViolation("The connection is read-only", code=code)
    if code is not None and code.startswith(
        ("SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_NOTADB", "SQLITE_CORRUPT")
    ):
        named = f" {file}" if file else ""
        return errors.ConnectionFailed(
            f"The database file{named} cannot be used ({code})", code=code
        )
    if text.startswith(("parser stack overflow", "Expression tree is too large")):
        return errors.DatabaseError(
            "SQLite refused the statement: it holds too many queries or conditions inside of each "
            "other; run the inner queries first, and give their keys as a list",
            code=code,
        )
    return _translate_function_error(text, code) or errors.DatabaseError(
        f"SQLite refused the statement: {text}", code=code
    )


def _translate_length_violation(text: str, code: str | None) -> errors.DataError | None:
    """The error for text longer than its column: other databases check the type."""
    check = _NAME.fullmatch(text)
    name = None if check is None else check[2]
    if name is None:
        return None
    for meta in registry:
        for field in meta.columns:
            limited = isinstance(field, TextField) and field.max_length is not None
            if limited and build_check_constraint_name(meta, field) == name:
                return errors.DataError(TOO_LONG, code=code)
    return None


def _translate_integrity_error(text: str, code: str | None) -> errors.IntegrityError:
    model, fields, constraint = _parse_violated_constraint(text)
    where = f"{model}.{', '.join(fields)}" if model else "a constraint"
    facts: dict[str, Any] = {"model": model, "fields": fields, "constraint": constraint}
    if text == _FOREIGN_KEY:  # RESTRICT reports itself under the code of triggers
        code = "SQLITE_CONSTRAINT_FOREIGNKEY"
    match code:
        case (
            "SQLITE_CONSTRAINT_UNIQUE" | "SQLITE_CONSTRAINT_PRIMARYKEY" | "SQLITE_CONSTRAINT_ROWID"
        ):
            return errors.UniqueViolation(f"{where} exists already", code=code, **facts)
        case "SQLITE_CONSTRAINT_NOTNULL":
            return errors.NotNullViolation(f"{where} may not be null", code=code, **facts)
        case "SQLITE_CONSTRAINT_FOREIGNKEY":
            return errors.ForeignKeyViolation(
                "A referenced row is missing, or this one is still referenced", code=code
            )
        case "SQLITE_CONSTRAINT_CHECK":
            called = f" {constraint!r}" if constraint else ""
            return errors.CheckViolation(
                f"The check constraint{called} is not met", code=code, **facts
            )
        case _:
            return errors.IntegrityError("A constraint is not met", code=code)


def _parse_violated_constraint(text: str) -> tuple[str | None, tuple[str, ...], str | None]:
    """The model, the fields and the constraint that an error of SQLite speaks of."""
    by_name = _NAME.fullmatch(text)
    if by_name is not None:
        name = by_name[1] or by_name[2]
        found = [
            (m.name, known[name])
            for m in registry
            if name in (known := map_constraints_to_fields(m))
        ]
        # SQLite does not tell the table, and several may have a constraint of this name
        model, fields = found[0] if len(found) == 1 else (None, ())
        return model, fields, name
    by_columns = _COLUMNS.fullmatch(text)
    if by_columns is None:
        return None, (), None
    pairs = [part.rpartition(".") for part in by_columns[1].split(", ")]
    columns = [column for _, _, column in pairs]
    for meta in registry:
        if meta.table_name == pairs[0][0]:
            names = {field.column_name: field.name for field in meta.columns}
            fields = tuple(names.get(column, column) for column in columns)
            unique = (
                None if text.startswith("NOT") else find_unique_constraint_name(meta, set(columns))
            )
            return meta.name, fields, unique
    return None, (), None
