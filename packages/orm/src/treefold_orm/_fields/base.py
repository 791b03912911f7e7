"""Field: one column of a model, as seen from Python and from each database.

A field knows how to check a value (`coerce` for conditions, `clean` for writes) and how to carry
it over (`encoder`, `decoder` per dialect). Its only SQL text is that of its column: the type and
the conditions of a CHECK. It never does I/O. Fields are non-data descriptors: instance attributes
live in the instance dictionary at full speed, and access on the class gives an expression.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterator, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    LiteralString,
    Protocol,
    Required,
    Self,
    TypedDict,
    TypeVar,
    overload,
)

from treefold_orm._base.errors import DataError, FieldValueError, ModelError, UnsupportedFeature
from treefold_orm._base.names import is_sensitive_name, quote
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._fields.labels import Choices, collect_choice_labels

if TYPE_CHECKING:
    import inspect

    from treefold_orm._terms.columns import Column

T = TypeVar("T")


class Owner(Protocol):
    """The description of a model, as far as its fields know it."""

    name: str
    keys: tuple[Field[Any], ...]


class Stored(Protocol):
    """An instance of a model, as far as its fields know it."""

    _row: Any


Codec = Callable[[Any], Any]


@frozen_record
class Reading(Record):
    """How a driver's value becomes the Python value in the code that is generated for rows.

    `raw` and `value` are conditions on what comes before and after `decode`, written into that
    code with `{0}` for the value; other values go through `Field.read_unexpected_value`.
    """

    decode: Codec | None
    raw: LiteralString = ""
    value: LiteralString = ""


def check_storage_options(storage: str, options: Any) -> None:
    """Raise `ModelError` for options that a column of another tool cannot have."""
    for name in ("primary_key", "db_default"):
        if getattr(options.get(name), "is_native", False):
            continue  # SQL of the column's own, which needs no conversion
        if storage and options.get(name, MISSING) not in (MISSING, False):
            raise ModelError(f"{name} must be left out for a column with {storage}, got it")


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


class ConstructorSignature:
    """The signature of a field class for `help()` and `inspect`, with every option by its name.

    Constructors take the common options as `**options`; this descriptor replaces them by the
    keywords of `Field`. It is computed when it is asked for: importing a model costs nothing.
    """

    def __get__(self, instance: object, owner: type[Any]) -> inspect.Signature:
        import inspect  # slow to import, and nothing that runs a query needs it

        if instance is not None:
            raise AttributeError("__signature__")
        named: dict[str, inspect.Parameter] = {}
        for kind in owner.__mro__:
            own = None if kind is object else kind.__dict__.get("__init__")
            found = [] if own is None else list(inspect.signature(own).parameters.values())[1:]
            for parameter in found:
                if parameter.kind is not parameter.VAR_KEYWORD:
                    named.setdefault(parameter.name, parameter)
            if own is not None and all(p.kind is not p.VAR_KEYWORD for p in found):
                break  # it takes the arguments it names, none of its bases
        return inspect.Signature(list(named.values()))


class Options(TypedDict, total=False):
    """Keyword options that every column field takes."""

    default: Any
    db_default: Any
    primary_key: bool
    unique: bool
    db_index: bool
    db_column: str
    choices: Choices
    validators: Sequence[Callable[[Any], object]]
    sensitive: bool
    verbose_name: str
    help_text: str


class NotNull(Options, total=False):
    """Options of a field whose values are never None."""

    null: Literal[False]


class Nullable(Options):
    """Options of a field that allows NULL, and whose values may be None."""

    null: Required[Literal[True]]


_ELSEWHERE = {  # options of Django's fields that have another name or place here
    "auto_created": "leave it out",
    "blank": "leave it out: empty text and no related rows are allowed, null=True allows None",
    "db_comment": "write a comment beside the field",
    "db_constraint": "the database enforces foreign keys; leave it out",
    "db_table": "give a through model, with Meta.table",
    "db_tablespace": "the database chooses the tablespace",
    "editable": "name the fields that a request may set in assign(data, fields=[...])",
    "error_messages": "validators raise ValueError with a message of their own",
    "limit_choices_to": "check the target in clean()",
    "related_query_name": "related_name is the name in lookups as well",
    "serialize": "leave it out",
    "symmetrical": "a relation to 'self' has a direction: add both, or ask both",
    "through_fields": "the first foreign keys of the through model to either side count",
    "to_field": "a foreign key points to the primary key",
    "unique_for_date": "add a UniqueConstraint over expressions to Meta.constraints",
    "unique_for_month": "add a UniqueConstraint over expressions to Meta.constraints",
    "unique_for_year": "add a UniqueConstraint over expressions to Meta.constraints",
}


def build_unknown_option_error(kind: type[Any], name: str) -> ModelError:
    """Return the error for an option that a field class does not take, with the way out."""
    import inspect  # an error may take its time

    known = ", ".join(sorted(inspect.signature(kind).parameters))
    hint = _ELSEWHERE.get(name) or f"use one of {known}"
    return ModelError(f"{kind.__name__} takes no option {name!r}: {hint}")


class Field(Generic[T]):
    """Base of all column fields.

    `null` allows NULL; `default` is a value or a callable; `db_default` is a constant or an
    expression that the database uses where an insert gives no value; `unique`, `db_index`,
    `db_column` speak of the column; `choices` limits values (plain, pairs of value and label, a
    mapping, or a class of `TextChoices` or `IntegerChoices`) and gives the model
    `get_<field>_display()`; `validators` are called with each value written and raise `ValueError`;
    `sensitive` hides the field from string lookups, `values()`, `repr()` and errors (default:
    decided by the name); `verbose_name` and `help_text` describe the field for people.

    A field gets its names when its model binds it. Of `writer = ForeignKey(Writer, db_column="w")`

    | Attribute | Value |
    |---|---|
    | `name` | `writer`, in lookups |
    | `attname` | `writer_id`, the attribute that holds the value of the column |
    | `column_name`, `quoted` | `w`, and `"w"` for SQL |
    | `column` | the column as an expression |
    | `meta` | the description of `Article` |
    """

    types: ClassVar[dict[str, str]] = {}
    storage: str = ""  # how another tool keeps the column's values, where one does
    remedy: ClassVar[str] = "declare the field that the column holds, or convert its values"
    on_sqlite: ClassVar[tuple[Codec | None, Codec | None]] = (None, None)  # encoder and decoder
    internal: ClassVar[str] = ""  # type in the database, for results of functions and parameters
    normalises: ClassVar[bool] = False  # whether `coerce` rewrites a value of the right type
    __signature__ = ConstructorSignature()
    declared: tuple[tuple[Any, ...], dict[str, Any]]  # the arguments of the constructor

    if not TYPE_CHECKING:  # the signatures of constructors are those of `__init__`

        def __new__(cls, *args, **options):
            made = object.__new__(cls)
            made.declared = (args, options)
            return made

    def __init__(
        self,
        *,
        null: bool = False,
        default: Any = MISSING,
        db_default: Any = MISSING,
        primary_key: bool = False,
        unique: bool = False,
        db_index: bool = False,
        db_column: str | None = None,
        choices: Choices | None = None,
        validators: Sequence[Callable[[Any], object]] = (),
        sensitive: bool | None = None,
        verbose_name: str | None = None,
        help_text: str = "",
        **unknown: Any,
    ) -> None:
        if unknown:
            raise build_unknown_option_error(type(self), min(unknown))
        if primary_key and null:
            raise ModelError("A primary key cannot be null: drop null=True")
        self.null = null
        self.default = default
        self.db_default = db_default
        # an attribute that is not given stays unset, and the database fills the column
        self.db_fills = db_default is not MISSING and default is MISSING
        self.primary_key = primary_key
        self.unique = unique or primary_key
        self.db_index = db_index
        self.db_column = db_column
        self.choices = None if choices is None else collect_choice_labels(choices)
        self.validators = tuple(validators)
        # no choices or validators: type and range are all there is to check
        self.plain = choices is None and not validators
        self._sensitive = sensitive
        self._verbose_name = verbose_name
        self.help_text = help_text
        self.name = self.column_name = self.quoted = self.attname = ""
        self.meta: Owner = MISSING
        self.column: Any = None

    def _init_field(self, options: Any) -> None:
        base: Any = Field  # past the overloads of subclasses, which fix `null`
        base.__init__(self, **options)

    @overload
    def __get__(self, instance: None, owner: type[object]) -> Column[T]: ...
    @overload
    def __get__(self, instance: Stored, owner: type[object]) -> T: ...
    @overload
    def __get__(self, instance: object, owner: type[object]) -> Self: ...
    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if instance is None:
            return self.column
        return instance._load_missing_field(self)

    if TYPE_CHECKING:

        def __set__(self, instance: Stored, value: T) -> None: ...

    # -- definition -------------------------------------------------------------------------------

    def bind(self, meta: Owner, name: str) -> None:
        """Take the place `name` in the model described by `meta`."""
        check_field_name(meta, name)
        self.meta = meta
        self.name = name
        self.attname = self.compute_attribute_name()
        self.column_name = self.db_column or self.attname
        self.quoted = quote(self.column_name)

    def compute_attribute_name(self) -> str:
        """Name of the instance attribute that holds the column's value."""
        return self.name

    def copy(self) -> Self:
        """Return a shallow copy; `bind` gives it to the model that inherits the field."""
        import copy

        return copy.copy(self)

    @property
    def sensitive(self) -> bool:
        """True if this field holds a secret."""
        return is_sensitive_name(self.name) if self._sensitive is None else self._sensitive

    @property
    def verbose_name(self) -> str:
        """The name for people: as given, else the field's name with spaces."""
        return self.name.replace("_", " ") if self._verbose_name is None else self._verbose_name

    @property
    def generated(self) -> bool:
        """True if the database gives the value when none is given."""
        return False

    def column_type(self, dialect: str) -> str:
        """The column's type in the named dialect."""
        try:
            return self.types[dialect]
        except KeyError:
            raise UnsupportedFeature(
                f"{type(self).__name__} is not available on {dialect}"
            ) from None

    def query_type(self, dialect: str) -> str:
        """The type that values have inside of queries, which is the column's but for `storage`."""
        return self.column_type(dialect)

    def convert_stored_value(self, raw: Any, dialect: str) -> Any:
        """The value of a column with `storage` as queries give it; for rows of raw SQL."""
        return raw

    def checks(self, dialect: str) -> list[str]:
        """Conditions for the table's CHECK constraints, with `{0}` for the quoted column."""
        return []

    # -- values -----------------------------------------------------------------------------------

    def build_value_error(self, reason: str, **limits: Any) -> FieldValueError:
        """Return the error for a value that does not fit; the value itself is never quoted."""
        owner = self.meta.name if self.meta is not MISSING else "value"
        return FieldValueError(owner, self.name, reason=reason, limits=limits)

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
            raise self.build_value_error("may not be null")
        # choices and validators get the value in the field's type: a date, also of a text
        value = self.coerce(value)
        for problem in self.iter_value_errors(value):
            raise problem
        return value

    def iter_value_errors(self, value: Any) -> Iterator[FieldValueError]:
        """Yield an error for every reason against a coerced value: choices and validators."""
        if self.choices is not None and not self._is_choice(value, self.choices):
            yield self.build_value_error(
                "not one of the choices", expected=", ".join(map(repr, self.choices))
            )
        for validate in self.validators:
            try:
                validate(value)
            # it is a ValueError, too, and its limits go on to the answer
            except FieldValueError as error:
                yield self.build_value_error(error.reason, **error.limits)
            except ValueError as error:
                yield self.build_value_error(
                    # the words of a validator may quote the value
                    "refused by a validator" if self.sensitive else str(error)
                )

    def _is_choice(self, value: Any, choices: dict[Any, str]) -> bool:
        try:
            return value in choices
        except TypeError:  # a list or an object of JSON has no hash
            return False

    @property
    def has_labels(self) -> bool:
        """True where values have labels for people."""
        return self.choices is not None

    def find_label(self, value: Any) -> str | None:
        """Return the label of a value; a value without one is its own text, None stays None."""
        if self.choices is not None and self._is_choice(value, self.choices):
            return self.choices[value]
        return value if value is None else str(value)

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
        """The encoder from a coerced value to the driver's, or None where nothing is to be
        done.
        """
        return self.on_sqlite[0] if dialect == "sqlite" else None

    def encode_column(self, values: list[Any], dialect: str) -> list[Any]:
        """A column of coerced values as the driver takes them."""
        encode = self.encoder(dialect)
        if encode is None:
            return values
        if self.null or self.db_fills:
            return [None if value is None else encode(value) for value in values]
        # such a column has no None, so that one loop in C will do
        return list(map(encode, values))

    def decoder(self, dialect: str) -> Codec | None:
        """The decoder from a driver's value to the Python value, or None where they are equal."""
        return self.on_sqlite[1] if dialect == "sqlite" else None

    def build_read_rule(self, dialect: str) -> Reading:
        """How rows are read: `decoder`, and the checks of its values."""
        return Reading(self.decoder(dialect))

    def read_unexpected_value(self, raw: Any) -> Any:
        """Return the value of one that the read rule does not expect, or raise `DataError`."""
        raise self.build_unreadable_error(raw)

    def build_unreadable_error(self, raw: Any) -> DataError:
        """Return the error for a stored value that this field cannot have written; the value itself
        is never quoted.
        """
        name = f"{self.meta.name}.{self.name}" if self.meta is not MISSING else "A value"
        return DataError(
            f"{name} cannot be read as {type(self).__name__}: the row holds "
            f"{self.describe_raw_value(raw)}; {self.remedy}"
        )

    def describe_raw_value(self, raw: Any) -> str:
        """Describe the value of a row without showing it."""
        return f"{'an' if type(raw).__name__[0] in 'aeiou' else 'a'} {type(raw).__name__}"

    def __repr__(self) -> str:
        owner = self.meta.name if self.meta is not MISSING else "unbound"
        return f"<{type(self).__name__} {owner}.{self.name}>"


AnyField = Field[Any]
Fields = tuple[AnyField, ...]


def check_field_name(meta: Owner, name: str) -> None:
    """Raise `ModelError` for a name that lookups could not tell from something else."""
    # the name becomes an attribute in the code that is generated for rows
    plain = name.isidentifier() and not keyword.iskeyword(name)
    if not plain or "__" in name or name.startswith("_") or name.endswith("_"):
        raise ModelError(
            f"{meta.name}.{name} cannot be a field name: use a plain name without outer or "
            "double underscores"
        )
    if name == "pk":
        raise ModelError(
            f"{meta.name}.pk cannot be a field name: pk always means the primary key; choose "
            "another name and keep the column with db_column='pk'"
        )
