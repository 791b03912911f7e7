"""Every exception this package raises.

Each error that a caller can act on has a class of its own. Messages name models and fields, never
stored values: a driver's own message quotes rows, so driver errors are translated (see
`_drivers`) and not chained. Nothing here imports another module of the package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any


class ORMError(Exception):
    """Base of everything raised by this package."""


class ConfigurationError(ORMError):
    """A database is not configured, or configured with something it cannot do."""


class ModelError(ORMError):
    """A model class is declared in a way that cannot work."""


class FieldError(ORMError):
    """A query names something that is not there, or may not be named that way."""


class FieldValueError(ORMError, ValueError):
    """A value does not fit its field; found before any SQL is sent.

    Attributes: `model` and `field` are names, `reason` is the text after the colon, `limits` the
    limits that the value missed by their names: `{"max_length": 20}`.
    """

    def __init__(
        self, model: str, field: str, *, reason: str, limits: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{model}.{field}: {reason}" if field else f"{model}: {reason}")
        self.model = model
        self.field = field
        self.reason = reason
        self.limits: Mapping[str, Any] = limits or {}

    # an exception is unpickled with its message alone, which this class does not take
    def __reduce__(self) -> tuple[object, ...]:
        said = {"reason": self.reason, "limits": self.limits}
        return partial(type(self), self.model, self.field, **said), ()


class ValidationError(ORMError, ValueError):
    """Several values do not fit their fields, or do not fit each other.

    Raised by `full_clean()`; a model's own `clean()` raises it with one message, or with messages
    by field: `ValidationError({"ends": "before it starts"})`. Attributes: `message_dict` maps names
    of fields to lists of messages, "__all__" to those of no single field; `model` is a name.
    """

    def __init__(
        self, messages: str | Sequence[str] | Mapping[str, str | Sequence[str]], *, model: str = ""
    ) -> None:
        by_field = messages if isinstance(messages, Mapping) else {"__all__": messages}
        self.model = model
        self.message_dict = {
            name: [given] if isinstance(given, str) else list(given)
            for name, given in by_field.items()
        }
        parts = [
            f"{'' if name == '__all__' else f'{name}: '}{', '.join(texts)}"
            for name, texts in self.message_dict.items()
        ]
        super().__init__("; ".join([f"{model}.{part}" if model else part for part in parts]))

    @property
    def messages(self) -> list[str]:
        """All messages, without the names of their fields."""
        return [text for texts in self.message_dict.values() for text in texts]

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), self.message_dict, model=self.model), ()


class InvalidParameter(FieldError, FieldValueError):
    """A request asks a `FilterSet` for what it does not declare, or with a value that does not fit.

    Attributes: `field` is the parameter, `model` the name of the `FilterSet`.
    """

    def __init__(self, model: str, field: str, *, reason: str) -> None:
        super().__init__(model, field, reason=reason)
        self.args = (f"Parameter {_truncate_repr(field)} {reason}",)


def _truncate_repr(text: str) -> str:
    # the name comes from a request: repr() leaves no line end in a log, and it may be long
    return repr(str(text) if len(text) <= 60 else f"{text[:57]}...")


class TaintedInput(ORMError):
    """Keys taken from a request were used as names of fields or lookups."""


class NotLoaded(ORMError):
    """An attribute was not part of the query, and is not loaded where it is read: in async code
    never, in sync code not after `raiseload()`.
    """


class SyncCallInAsync(ORMError):
    """A blocking call was made on a thread that runs an event loop."""


class DoesNotExist(ORMError):
    """No row matches; every model has its own subclass."""


class MultipleObjectsReturned(ORMError):
    """More than one row matches; every model has its own subclass."""


class StaleObject(ORMError):
    """The row was changed or deleted by someone else since it was read."""


class TooManyRows(ORMError):
    """A query returned more rows than `max_rows` allows."""


class TransactionRequired(ORMError):
    """A call needs a transaction that stays open behind it, and there is none."""


class TransactionClosed(ORMError):
    """A transaction that has ended was used again, usually by a task that outlived it."""


class UnsupportedFeature(ORMError):
    """The database in use has no such feature."""


class DatabaseError(ORMError):
    """The database refused or failed; `code` is its own error code where it has one."""

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message)
        self.code = code


class ZoneMismatch(DatabaseError):
    """A time with a zone was given to a column without one; `place` is the argument's number.

    Not public: calls that know the argument's field say it by `with_field_name`.
    """

    _REMEDY = (
        "takes times with a zone, and its column is a timestamp without one: declare the field "
        "with zone=None, or make the column a timestamptz by a migration"
    )

    def __init__(self, place: int) -> None:
        super().__init__(f"Argument {place} of the statement {self._REMEDY}")
        self.place = place

    def with_field_name(self, ordered_argument_names: Sequence[str]) -> DatabaseError:
        """The error with the name of the argument's field, of those that the statement takes."""
        if self.place > len(ordered_argument_names):
            return self
        return DatabaseError(f"{ordered_argument_names[self.place - 1]} {self._REMEDY}")


class DataError(DatabaseError):
    """A statement met a value that it cannot compute with: a division by zero, a text that is not
    the number it is cast to, a result outside of its type's range.
    """


class IntegrityError(DatabaseError):
    """A constraint would be broken; `model` and `fields` say which, as far as the database told."""

    def __init__(
        self,
        message: str,
        *,
        model: str | None = None,
        fields: tuple[str, ...] = (),
        constraint: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.model = model
        self.fields = fields
        self.constraint = constraint


class UniqueViolation(IntegrityError):
    """A row with the same unique value exists."""


class ForeignKeyViolation(IntegrityError):
    """The referenced row is missing, or the row is still referenced."""


class ProtectedError(ForeignKeyViolation):
    """Rows that `on_delete=PROTECT` keeps point to what was to be deleted; nothing was.

    Attributes: `protected_objects` are the first of these rows, `count` is the number of all;
    `model` and `fields` name the foreign key of the first.
    """

    def __init__(
        self, message: str, *, protected_objects: Sequence[Any] = (), count: int = 0, **facts: Any
    ) -> None:
        super().__init__(message, **facts)
        self.protected_objects = tuple(protected_objects)
        self.count = count


class NotNullViolation(IntegrityError):
    """A column that must have a value got none."""


class CheckViolation(IntegrityError):
    """A check constraint is not met."""


class ExclusionViolation(IntegrityError):
    """A row that an exclusion constraint does not allow beside this one exists."""


class TransactionAborted(DatabaseError):
    """The transaction was undone, or can only be undone: nothing of it was or will be committed."""


class OperationalError(DatabaseError):
    """The database could not do its work now; the request was not necessarily wrong."""


class ConnectionFailed(OperationalError):
    """No connection could be made, or it broke."""


def build_unanswered_commit_error(error: ConnectionFailed) -> ConnectionFailed:
    """Return the error for a COMMIT that may have been done."""
    return ConnectionFailed(
        f"{error}; its COMMIT was not answered: look whether it was done before you run it again",
        code=error.code,
    )


class PoolTimeout(OperationalError):
    """All connections stayed busy for the whole waiting time."""


class StatementTimeout(OperationalError):
    """A statement ran longer than allowed and was stopped."""


class DatabaseLocked(OperationalError):
    """Another connection held a lock for longer than the waiting time."""


class TransactionConflict(OperationalError):
    """Serialisation failure, deadlock, or a table that another process changed: the transaction was
    undone and may be tried again.
    """


class ReadOnlyViolation(DatabaseError):
    """A write was tried where only reading is allowed."""
