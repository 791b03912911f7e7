"""From asyncpg's errors to this package's own. Its messages and details quote rows, so none is
passed on.
"""

from __future__ import annotations

from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information

from treefold_orm import _errors
from treefold_orm._meta import Meta, registry
from treefold_orm._names import constraint_name

_driver: Any = asyncpg
# what the server itself answered
POSTGRES: type[Exception] = _driver.PostgresError
# the driver lost track of the conversation, as when the server ended it between two calls
CONFUSED: type[Exception] = _driver.InternalClientError
# what a driver call can raise that is not a fault of this process
FOREIGN: tuple[type[Exception], ...] = (
    POSTGRES,
    CONFUSED,
    _driver.InterfaceError,
    OSError,
    TimeoutError,
    EOFError,
)


def translate(error: BaseException) -> _errors.ORMError:
    """Return the error to raise; it names models, columns and constraints, never values."""
    code: str | None = getattr(error, "sqlstate", None)
    if not isinstance(error, _driver.PostgresError):
        if isinstance(error, ValueError):  # the driver could not encode an argument
            return _errors.DatabaseError("An argument has a type the statement does not take")
        if isinstance(error, _driver.InterfaceError) and "connection" not in str(error):
            return _errors.DatabaseError("The driver refused the call")
        return _errors.ConnectionFailed("The connection to PostgreSQL failed or broke")
    if code is None:
        return _errors.DatabaseError("PostgreSQL refused the statement")
    if code.startswith("23"):
        return _integrity(error, code)
    if code in {"40001", "40P01"}:
        return _errors.TransactionConflict(
            "The transaction collided with another one and was undone: try again", code=code
        )
    if code == "57014":
        return _errors.StatementTimeout("The statement ran too long and was stopped", code=code)
    if code == "55P03":
        return _errors.DatabaseLocked("The row is locked by another transaction", code=code)
    if code == "25P02":
        return _errors.DatabaseError(
            "A statement failed before, and PostgreSQL runs no other one in this transaction: put "
            "what may fail into a nested transaction() and catch its error around that",
            code=code,
        )
    if code == "21000":
        return _errors.DatabaseError(
            "A statement met one row twice, or more than one row where it takes one: in a bulk "
            "upsert, give each row once",
            code=code,
        )
    if code == "25006":
        return _errors.ReadOnlyViolation("The connection is read-only", code=code)
    if code.startswith(("08", "57P", "53")) or code == "28000":
        return _errors.ConnectionFailed(
            f"PostgreSQL closed or refused the connection ({code})", code=code
        )
    if code.startswith("22"):
        return _errors.DatabaseError(
            f"A value does not fit its column or function ({code})", code=code
        )
    if code.startswith("28"):
        return _errors.ConnectionFailed("PostgreSQL refused the user or password", code=code)
    if code.startswith("42"):  # names and syntax only; these messages carry no values
        return _errors.DatabaseError(
            f"PostgreSQL refused the statement: {_headline(error)}", code=code
        )
    return _errors.DatabaseError(f"PostgreSQL refused the statement ({code})", code=code)


def _headline(error: Any) -> str:
    return (
        str(getattr(error, "message", "")).splitlines()[0]
        if getattr(error, "message", "")
        else type(error).__name__
    )


def _integrity(error: Any, code: str) -> _errors.IntegrityError:
    constraint: str | None = error.constraint_name
    model, fields = _named(error.table_name, constraint, error.column_name)
    where = f"{model}.{', '.join(fields)}" if model and fields else model or "a row"
    facts: dict[str, Any] = {
        "model": model,
        "fields": fields,
        "constraint": constraint,
        "code": code,
    }
    match code:
        case "23505":
            return _errors.UniqueViolation(f"{where} exists already", **facts)
        case "23503":
            return _errors.ForeignKeyViolation(
                "A referenced row is missing, or this one is still referenced", **facts
            )
        case "23502":
            return _errors.NotNullViolation(f"{where} may not be null", **facts)
        case "23514":
            return _errors.CheckViolation("A check constraint is not met", **facts)
        case _:
            return _errors.IntegrityError("A constraint is not met", **facts)


def _named(
    table: str | None, constraint: str | None, column: str | None
) -> tuple[str | None, tuple[str, ...]]:
    for meta in registry:
        if meta.table_name == table:
            return meta.name, _fields(meta, constraint, column)
    return None, ()


def _fields(meta: Meta, constraint: str | None, column: str | None) -> tuple[str, ...]:
    if column is not None:
        return tuple(f.name for f in meta.columns if f.column_name == column)
    if constraint == f"{meta.table_name}_pkey":
        return (meta.pk.name,)
    for field in meta.columns:
        prefixes = ("uq", "fk")
        if constraint in {constraint_name(p, meta.table_name, field.column_name) for p in prefixes}:
            return (field.name,)
    for declared in meta.constraints:
        names: tuple[str, ...] = getattr(declared, "fields", ())
        columns = [f.column_name for n in names for f in meta.columns if n in {f.name, f.attname}]
        if constraint == (declared.name or constraint_name("uq", meta.table_name, *columns)):
            return names
    return ()
