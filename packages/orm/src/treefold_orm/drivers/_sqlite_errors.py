"""From sqlite3's errors to this package's own."""

from __future__ import annotations

import re
import sqlite3

from treefold_orm import _errors
from treefold_orm._meta import registry

_COLUMNS = re.compile(r"(?:UNIQUE|NOT NULL) constraint failed: (.+)", re.DOTALL)


def translate(error: BaseException) -> _errors.ORMError:
    """Return the error to raise; it names tables and columns, never values."""
    text = str(error)
    code: str | None = getattr(error, "sqlite_errorname", None)
    if isinstance(error, OverflowError):
        return _errors.DatabaseError("An integer does not fit into 64 bits", code=code)
    if isinstance(error, sqlite3.IntegrityError):
        return _integrity(text, code)
    if code is not None and code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return _errors.DatabaseLocked("The database stayed locked by another connection", code=code)
    if code == "SQLITE_INTERRUPT":
        return _errors.StatementTimeout("The statement was interrupted", code=code)
    if code is not None and (code.startswith("SQLITE_READONLY") or code == "SQLITE_AUTH"):
        return _errors.ReadOnlyViolation("The connection is read-only", code=code)
    if code is not None and code.startswith(
        ("SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_FULL", "SQLITE_NOTADB", "SQLITE_CORRUPT")
    ):
        return _errors.ConnectionFailed(f"The database file cannot be used ({code})", code=code)
    return _errors.DatabaseError(f"SQLite refused the statement: {text}", code=code)


def _integrity(text: str, code: str | None) -> _errors.IntegrityError:
    model, fields = _named(text)
    where = f"{model}.{', '.join(fields)}" if model else "a constraint"
    if (
        text == "FOREIGN KEY constraint failed"
    ):  # RESTRICT reports itself under the code of triggers
        code = "SQLITE_CONSTRAINT_FOREIGNKEY"
    match code:
        case (
            "SQLITE_CONSTRAINT_UNIQUE" | "SQLITE_CONSTRAINT_PRIMARYKEY" | "SQLITE_CONSTRAINT_ROWID"
        ):
            return _errors.UniqueViolation(
                f"{where} exists already", model=model, fields=fields, code=code
            )
        case "SQLITE_CONSTRAINT_NOTNULL":
            return _errors.NotNullViolation(
                f"{where} may not be null", model=model, fields=fields, code=code
            )
        case "SQLITE_CONSTRAINT_FOREIGNKEY":
            return _errors.ForeignKeyViolation(
                "A referenced row is missing, or this one is still referenced", code=code
            )
        case "SQLITE_CONSTRAINT_CHECK":
            name = text.removeprefix("CHECK constraint failed: ")
            return _errors.CheckViolation(
                "A check constraint is not met", constraint=name, code=code
            )
        case _:
            return _errors.IntegrityError("A constraint is not met", code=code)


def _named(text: str) -> tuple[str | None, tuple[str, ...]]:
    found = _COLUMNS.fullmatch(text)
    if found is None:
        return None, ()
    pairs = [part.rpartition(".") for part in found[1].split(", ")]
    for meta in registry:
        if meta.table_name == pairs[0][0]:
            names = {field.column_name: field.name for field in meta.columns}
            return meta.name, tuple(names.get(column, column) for _, _, column in pairs)
    return None, ()
