"""Field: one column of a model, as seen from Python and from each database.

A field knows how to check a value (`coerce` for conditions, `clean` for writes) and how to carry
it over (`encoder`, `decoder` per dialect). It never builds SQL text beyond its column type and
never does I/O. Fields are non-data descriptors: instance attributes live in the instance
dictionary at full speed, and access on the class gives an expression.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypedDict, TypeVar, overload

from treefold_orm._errors import FieldValueError, ModelError, UnsupportedFeature
from treefold_orm._names import is_sensitive_name, quote

if TYPE_CHECKING:
    from treefold_orm._expressions import Column
    from treefold_orm._meta import Meta
    from treefold_orm._model import Model

T = TypeVar("T")
Codec = Callable[[Any], Any]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


class Options(TypedDict, total=False):
    """Keyword options that every column field takes."""

    default: Any
    primary_key: bool
    unique: bool
    db_index: bool
    db_column: str
    choices: Sequence[Any]
    validators: Sequence[Callable[[Any], object]]
    sensitive: bool


class Field(Generic[T]):
    """Base of all column fields.

    `null` allows NULL; `default` is a value or a callable; `unique`, `db_index`, `db_column` speak
    of the column; `choices` limits values (plain, or pairs of value and label); `validators` are
    called with each value written and raise `ValueError`; `sensitive` hides the field from string
    lookups, `values()`, `repr()` and errors (default: decided by the name).
    """

    types: ClassVar[dict[str, str]] = {}
    internal: ClassVar[str] = ""  # what the database holds, for results of functions and parameters

    def __init__(
        self,
        *,
        null: bool = False,
        default: Any = MISSING,
        primary_key: bool = False,
        unique: bool = False,
        db_index: bool = False,
        db_column: str | None = None,
        choices: Sequence[Any] | None = None,
        validators: Sequence[Callable[[Any], object]] = (),
        sensitive: bool | None = None,
    ) -> None:
        if primary_key and null:
            raise ModelError("A primary key cannot be null: drop null=True")
        self.null = null
        self.default = default
        self.primary_key = primary_key
        self.unique = unique or primary_key
        self.db_index = db_index
        self.db_column = db_column
        self.choices = _choice_values(choices)
        self.validators = tuple(validators)
        # no choices or validators: type and range are all there is to check
        self.plain = choices is None and not validators
        self._sensitive = sensitive
        self.name = self.column_name = self.quoted = self.attname = ""
        self.meta: Meta = MISSING
        self.column: Any = None

    def _init(self, null: bool, options: Options) -> None:  # the overloads of subclasses fix null
        base: Any = Field
        base.__init__(self, null=null, **options)

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Column[T]: ...
    @overload
    def __get__(self, instance: Model, owner: type[Any]) -> T: ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> Self: ...
    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if instance is None:
            return self.column
        return instance._missing_field(self)

    if TYPE_CHECKING:

        def __set__(self, instance: Model, value: T) -> None: ...

    # -- definition -------------------------------------------------------------------------------

    def bind(self, meta: Meta, name: str) -> None:
        """Take the place `name` in the model described by `meta`."""
        if (
            not name.isidentifier()
            or keyword.iskeyword(name)
            or "__" in name
            or name.startswith("_")
            or name.endswith("_")
        ):
            raise ModelError(
                f"{meta.name}.{name} cannot be a field name: use a plain name without outer or "
                "double underscores"
            )
        if name == "pk":
            raise ModelError(
                f"{meta.name}.pk cannot be a field name: pk always means the primary key"
            )
        self.meta = meta
        self.name = name
        self.attname = self.attribute()
        self.column_name = self.db_column or self.attname
        self.quoted = quote(self.column_name)

    def attribute(self) -> str:
        """Name of the instance attribute that holds the column's value."""
        return self.name

    def copy(self) -> Self:
        """An unbound twin for a model that inherits from an abstract one."""
        import copy

        return copy.copy(self)

    @property
    def sensitive(self) -> bool:
        """Whether this field holds a secret."""
        return is_sensitive_name(self.name) if self._sensitive is None else self._sensitive

    @property
    def generated(self) -> bool:
        """Whether the database gives the value when none is given."""
        return False

    def column_type(self, dialect: str) -> str:
        """The column's type in the named dialect."""
        try:
            return self.types[dialect]
        except KeyError:
            raise UnsupportedFeature(
                f"{type(self).__name__} is not available on {dialect}"
            ) from None

    def checks(self, dialect: str) -> list[str]:
        """Conditions for the table's CHECK constraints, with `{0}` for the quoted column."""
        return []

    # -- values -----------------------------------------------------------------------------------

    def wrong(self, reason: str) -> FieldValueError:
        """Return the error for a value that does not fit; the value itself is never quoted."""
        return FieldValueError(
            self.meta.name if self.meta is not MISSING else "value", self.name, reason=reason
        )

    def coerce(self, value: Any) -> Any:
        """Return `value` as this field's Python type, or raise `FieldValueError`. Never given
        None.
        """
        return value

    def clean(self, value: Any) -> Any:
        """Return `value` ready to be written: coerced, within length and choices, accepted by
        validators.
        """
        if value is None:
            if self.null:
                return None
            raise self.wrong("may not be null")
        value = self.coerce(value)
        if self.choices is not None and value not in self.choices:
            raise self.wrong("not one of the choices")
        for validate in self.validators:
            try:
                validate(value)
            except FieldValueError:
                raise
            except ValueError as error:
                raise self.wrong(
                    "refused by a validator" if self.sensitive else str(error)
                ) from None
        return value

    def fits_all(self, values: list[Any]) -> bool:
        """Tell cheaply whether every value is certainly fine as it is. False only means: look at
        each.
        """
        return False

    def parse(self, text: str) -> Any:
        """Read a value from text, as it comes in a query string."""
        return self.coerce(text)

    def get_default(self) -> Any:
        """The value of an attribute that was not given."""
        if self.default is MISSING:
            return None
        return self.default() if callable(self.default) else self.default

    def encoder(self, dialect: str) -> Codec | None:
        """What turns a coerced value into what the driver takes, or None where nothing is to be
        done.
        """
        return None

    def decoder(self, dialect: str) -> Codec | None:
        """What turns a driver's value into the Python value, or None where it is one already."""
        return None

    def __repr__(self) -> str:
        owner = self.meta.name if self.meta is not MISSING else "unbound"
        return f"<{type(self).__name__} {owner}.{self.name}>"


def _choice_values(choices: Iterable[Any] | None) -> frozenset[Any] | None:
    if choices is None:
        return None
    values: list[Any] = []
    for choice in choices:
        pair: Any = choice
        values.append(pair[0] if isinstance(pair, (tuple, list)) else pair)
    return frozenset(values)
