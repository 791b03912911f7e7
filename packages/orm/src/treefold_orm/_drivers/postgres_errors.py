"""From asyncpg's errors to this package's own. Its messages and details quote rows, so they are
passed on for schema statements only, in the classes that speak of tables, columns and types, and
where resources do not suffice, which speaks of files and limits:

| statement | error | shown |
|---|---|---|
| `ALTER TABLE ... DROP COLUMN` | 2BP01, a view uses the column | message, detail and hint |
| the same, inside of a function | 2BP01, raised by `RAISE` with a value | the code |
| `ALTER TABLE ... ADD CHECK` | 23514, a row violates it | the constraint |
| `SELECT` | 42703, no such column | the message |
| `INSERT` | 53100, no room for a file | message, detail and hint |
"""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information

from treefold_orm._base import errors
from treefold_orm._base.data_errors import BY_SQLSTATE
from treefold_orm._expressions.naming import map_constraints_to_fields
from treefold_orm._fields.meta import registry

_driver: Any = asyncpg
# errors that the server itself answered
POSTGRES: type[Exception] = _driver.PostgresError
# the driver lost track of the conversation, as when the server ended it between two calls
CONFUSED: type[Exception] = _driver.InternalClientError
# a table has changed since the statement was prepared; outside of a transaction the driver prepares
# it again by itself
OUTDATED: type[Exception] = _driver.InvalidCachedStatementError
# errors of a driver call that are no fault of this process
FOREIGN: tuple[type[Exception], ...] = (
    POSTGRES,
    CONFUSED,
    _driver.InterfaceError,
    OSError,
    TimeoutError,
    EOFError,
    ValueError,  # it reads dates and times of years that Python does not have
    OverflowError,
)


def translate_error(
    error: BaseException, place: str = "", *, is_schema_statement: bool = False
) -> errors.ORMError:
    """Return the error to raise; it names models, columns and constraints, never values.

    `place` is the server and the database, for connections that fail. `is_schema_statement` is True
    for a schema statement.
    """
    code: str | None = getattr(error, "sqlstate", None)
    if not isinstance(error, _driver.PostgresError):
        if isinstance(error, (ValueError, OverflowError)):
            return _translate_value_error(error)
        # one class for a lost connection and for misuse of the driver, told apart by the text alone
        if isinstance(error, _driver.InterfaceError) and "connection" not in str(error):
            return errors.DatabaseError("The driver refused the call")
        return _build_connection_error(place, describe_connection_failure(error))
    if code is None:
        return errors.DatabaseError("PostgreSQL refused the statement")
    if code.startswith("23"):
        return _translate_integrity_error(error, code)
    if isinstance(error, OUTDATED):
        return errors.TransactionConflict(
            "A table of this statement was changed, as by a migration, since the statement was "
            "prepared, and the transaction was undone: try again",
            code=code,
        )
    if code in _ANSWERS:
        kind, text = _ANSWERS[code]
        return kind(text, code=code)
    if code.startswith("53") and code not in _CONNECTION and not _ends_connection(error):
        return _translate_resource_error(error, code)
    # classes: connection, shutdown of the server, its resources, authorisation
    if code in _CONNECTION or code.startswith(("08", "57P", "53", "28")):
        return _build_connection_error(
            place, _CONNECTION.get(code, "the server has ended it"), code
        )
    if code == "22000" and (found := _ZONE_MISMATCH.search(str(error))):  # of the driver itself
        return errors.ZoneMismatch(int(found[1]))
    if code.startswith("22") or code in BY_SQLSTATE:
        reason = BY_SQLSTATE.get(code, "A value does not fit its column or function")
        return errors.DataError(f"{reason} ({code})", code=code)
    of_schema = is_schema_statement and code.startswith(_SCHEMA_CLASSES)
    if of_schema and not _is_raised_in_function(error):
        return errors.DatabaseError(
            f"PostgreSQL refused the statement: {_format_server_message(error)}", code=code
        )
    if code.startswith("42"):  # names and syntax only; these messages carry no values
        return errors.DatabaseError(
            f"PostgreSQL refused the statement: {_read_first_message_line(error)}", code=code
        )
    return errors.DatabaseError(f"PostgreSQL refused the statement ({code})", code=code)


def translate_connect_error(error: BaseException, place: str) -> errors.ORMError:
    """Return the error to raise where a connection could not be opened."""
    if isinstance(error, (ValueError, OverflowError)):  # no row was read yet
        return _build_connection_error(place, describe_connection_failure(error))
    return translate_error(error, place)


_SCHEMA_CLASSES = ("0A", "2B", "3F", "42", "55")
"""Errors of these classes name objects of the schema. A `context` tells that a function has run,
which may raise any class with any text."""


_LACKS = {
    "53100": "its disk is full",
    "53200": "its memory does not suffice",
    "53400": "a limit of its configuration is exceeded",
}


def _ends_connection(error: Any) -> bool:
    return error.severity_en in ("FATAL", "PANIC")


def _translate_resource_error(error: Any, code: str) -> errors.OperationalError:
    if _is_raised_in_function(error):
        reason = f"{_LACKS.get(code, 'its resources do not suffice')} ({code})"
    else:
        reason = _format_server_message(error)
    return errors.OperationalError(f"PostgreSQL refused the statement: {reason}", code=code)


def _is_raised_in_function(error: Any) -> bool:
    return bool(error.context)


def _format_server_message(error: Any) -> str:
    parts = [error.detail, error.hint]
    rest = "; ".join(line.rstrip(".") for part in parts if part for line in part.splitlines())
    return (
        f"{_read_first_message_line(error)} ({rest})" if rest else _read_first_message_line(error)
    )


def _translate_value_error(error: BaseException) -> errors.ORMError:
    if isinstance(error, _driver.InterfaceError):  # the driver could not encode an argument
        return errors.DatabaseError("An argument has a type the statement does not take")
    return errors.DataError(
        "A row holds a date or time outside of the years 1 to 9999, which Python cannot hold: "
        "leave the column or the row out"
    )


_ZONE_MISMATCH = re.compile(r"(?s)query argument \$(\d+).*offset-naive and offset-aware")
_COLLIDED = "The transaction collided with another one and was undone: try again"
_ANSWERS: dict[str, tuple[type[errors.DatabaseError], str]] = {
    "40001": (errors.TransactionConflict, _COLLIDED),
    "40P01": (errors.TransactionConflict, _COLLIDED),
    "57014": (errors.StatementTimeout, "The statement ran too long and was stopped"),
    "55P03": (errors.DatabaseLocked, "The row is locked by another transaction"),
    "25P02": (
        errors.TransactionAborted,
        "A statement failed before, and PostgreSQL runs no other one in this transaction: put "
        "what may fail into a nested transaction() and catch its error around that",
    ),
    "21000": (
        errors.DatabaseError,
        "A statement met one row twice, or more than one row where it takes one: in a bulk "
        "upsert, give each row once",
    ),
    "25006": (errors.ReadOnlyViolation, "The connection is read-only"),
}
_CONNECTION = {
    "28P01": "the server refuses the user or the password",
    "28000": "the server refuses the user, or connections from here",
    "3D000": "the server has no such database",
    "53300": "the server has no connection left",
    "57P01": "the server has ended it",
    "57P02": "the server has crashed",
    "57P03": "the server takes no connections now",
    "57P05": "the server has ended it after an idle time",
    "08003": "it was closed in the middle of a statement",
    "08006": "it was closed in the middle of a statement",
}


def _build_connection_error(
    place: str, reason: str, code: str | None = None
) -> errors.ConnectionFailed:
    where = f" at {place}" if place else ""
    shown = f" ({code})" if code else ""
    return errors.ConnectionFailed(
        f"The connection to PostgreSQL{where} failed: {reason}{shown}", code=code
    )


def describe_connection_failure(error: BaseException) -> str:
    """Return why a connection failed, in words that hold nothing of the address."""
    # the most special first, for all of these are OSErrors too; str() of an OSError of asyncio
    # names the host, so that the text comes from the number
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed ({error.reason or type(error).__name__})"
    if isinstance(error, socket.gaierror):
        return "its host name cannot be resolved"
    if isinstance(error, TimeoutError):
        return "no answer within the waiting time"
    if isinstance(error, OSError):
        if error.errno:
            return os.strerror(error.errno).lower()
        # asyncio's "Multiple exceptions: ...", of a name with several addresses, has no number
        return "it cannot be reached" if "Multiple" in str(error) else "it was closed"
    if isinstance(error, UnicodeError):
        return "its host name is not valid"
    if isinstance(error, (ValueError, OverflowError)):
        return "its options are not valid"
    return "it was closed"


def _read_first_message_line(error: Any) -> str:
    message = str(getattr(error, "message", ""))
    return message.splitlines()[0] if message else type(error).__name__


def _translate_integrity_error(error: Any, code: str) -> errors.IntegrityError:
    constraint: str | None = error.constraint_name
    model, fields = _find_violated_fields(error.table_name, constraint, error.column_name)
    where = f"{model}.{', '.join(fields)}" if model and fields else model or "a row"
    facts: Any = {"model": model, "fields": fields, "constraint": constraint, "code": code}
    called = f" {constraint!r}" if constraint else ""
    match code:
        case "23505":
            return errors.UniqueViolation(f"{where} exists already", **facts)
        case "23503" | "23001":  # the second of ON DELETE RESTRICT since PostgreSQL 18
            return errors.ForeignKeyViolation(
                "A referenced row is missing, or this one is still referenced", **facts
            )
        case "23502":
            return errors.NotNullViolation(f"{where} may not be null", **facts)
        case "23514":
            return errors.CheckViolation(f"The check constraint{called} is not met", **facts)
        case "23P01":
            return errors.ExclusionViolation(
                f"The exclusion constraint{called} does not allow this row beside another", **facts
            )
        case _:
            return errors.IntegrityError("A constraint is not met", **facts)


def _find_violated_fields(
    table: str | None, constraint: str | None, column: str | None
) -> tuple[str | None, tuple[str, ...]]:
    found: tuple[str | None, tuple[str, ...]] = None, ()
    for meta in registry:
        if meta.table_name != table:
            continue
        if column is not None:
            return meta.name, tuple(f.name for f in meta.columns if f.column_name == column)
        fields = map_constraints_to_fields(meta).get(constraint or "")
        if fields is not None:
            return meta.name, fields
        # several models may share a table: one that knows the constraint is preferred to the first
        found = found if found[0] else (meta.name, ())
    return found
