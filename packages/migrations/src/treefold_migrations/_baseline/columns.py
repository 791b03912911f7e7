"""From columns to fields: the one that makes the same column, else the nearest that reads and
writes its values, else none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from treefold_migrations._baseline.reading import Database
from treefold_migrations._inspect.sql_text import canonicalize_sql
from treefold_orm import ORMError, fields
from treefold_orm.schema import CheckDef, ColumnDef, Field, constraint_name, quote

AnyField = Field[Any]


@dataclass(frozen=True, slots=True)
class FieldKind:
    """A class of fields with its arguments."""

    type: Any
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def make_field(self, **options: Any) -> AnyField:
        """Return a field."""
        made: AnyField = self.type(*self.args, **{**self.options, **options})
        return made

    def with_options(self, **options: Any) -> FieldKind:
        """Return the kind with further options."""
        return replace(self, options={**self.options, **options})


_POSTGRES: dict[str, FieldKind] = {
    "smallint": FieldKind(fields.SmallIntegerField),
    "integer": FieldKind(fields.IntegerField),
    "bigint": FieldKind(fields.BigIntegerField),
    "boolean": FieldKind(fields.BooleanField),
    "real": FieldKind(fields.FloatField),
    "double precision": FieldKind(fields.FloatField),
    "numeric": FieldKind(fields.DecimalField, (), {"max_digits": 38, "decimal_places": 10}),
    "text": FieldKind(fields.TextField),
    "varchar": FieldKind(fields.TextField),
    "citext": FieldKind(fields.TextField),
    "character": FieldKind(fields.TextField),
    "uuid": FieldKind(fields.UUIDField),
    "bytea": FieldKind(fields.BinaryField),
    "json": FieldKind(fields.JSONField),
    "jsonb": FieldKind(fields.JSONField),
    "date": FieldKind(fields.DateField),
    "time": FieldKind(fields.TimeField),
    "interval": FieldKind(fields.DurationField),
    "timestamptz": FieldKind(fields.DateTimeField),
    "timestamp": FieldKind(fields.DateTimeField, (), {"zone": None}),
}
_PLAIN = {"varchar", "character", "numeric", "interval"}
_ZONED = re.compile(r"(timestamp|time)(?:\(\d\))?( with time zone| without time zone)?")
_SIZED = re.compile(r"([a-z ]+)\((\d+)(?:, ?(-?\d+))?\)")
_POSITIVE = {
    fields.SmallIntegerField: fields.PositiveSmallIntegerField,
    fields.IntegerField: fields.PositiveIntegerField,
    fields.BigIntegerField: fields.PositiveBigIntegerField,
}
_INTEGERS = (  # of SQLite, told apart by their checks
    fields.BooleanField,
    fields.SmallIntegerField,
    fields.IntegerField,
    fields.PositiveBigIntegerField,
)
_AFFINITIES = (  # of SQLite, in the order of its rules, then types that keep a certain form
    # in front of INT, which TINYINT(1) holds as well
    (re.compile(r"TINYINT\(1\)|BOOL"), FieldKind(fields.BooleanField)),
    (re.compile(r"INT"), FieldKind(fields.BigIntegerField)),
    (re.compile(r"JSON"), FieldKind(fields.JSONField)),
    (re.compile(r"CHAR|CLOB|TEXT|STRING"), FieldKind(fields.TextField)),
    (re.compile(r"BLOB|BINARY"), FieldKind(fields.BinaryField)),
    (re.compile(r"REAL|FLOA|DOUB"), FieldKind(fields.FloatField)),
    # DATE alone would take DATETIME for a day; the text of other tools has no zone
    (re.compile(r"DATETIME|TIMESTAMP"), FieldKind(fields.DateTimeField, (), {"zone": None})),
    (re.compile(r"DATE"), FieldKind(fields.DateField)),
    (re.compile(r"TIME"), FieldKind(fields.TimeField)),
    (re.compile(r"NUMERIC|DECIMAL"), FieldKind(fields.FloatField)),
)
# 64 bits hold each number of 18 digits
_MOST_DIGITS = 18
_LENGTH = re.compile(r"length ?\( ?(.+?) ?\) ?<= ?(\d+)")


def find_field_kind(
    column: ColumnDef, checks: Iterable[CheckDef], table: str, database: Database
) -> FieldKind | None:
    """Return the field of a column; None where no field reads and writes its values."""
    if database.engine == "postgres":
        return _narrow_to_positive(
            _find_postgres_kind(column.type, database), column, checks, table
        )
    own = ("", constraint_name("ck", table, column.name))
    return _find_sqlite_kind(
        column, {canonicalize_sql(check.sql) for check in checks if check.name in own}
    )


def _find_postgres_kind(type_name: str, database: Database) -> FieldKind | None:
    if type_name in database.domains:
        return _find_postgres_kind(database.domains[type_name], database)
    if type_name in database.enums:
        labels = database.enums[type_name]
        return FieldKind(fields.TextField, (), {"choices": list(labels)})
    if type_name.endswith("[]"):
        base = _find_postgres_kind(type_name[:-2], database)
        # items are not converted one by one, so that the array must be of the very type of its
        # field
        exact = base is not None and base.type is not fields.JSONField
        if not exact or base is None or base.make_field().column_type("postgres") != type_name[:-2]:
            return None
        return FieldKind(fields.ArrayField, (base.make_field(),))
    zoned = _ZONED.fullmatch(type_name)
    if zoned is not None:
        aware = zoned[2] == " with time zone"
        if zoned[1] == "time":
            return None if aware else _POSTGRES["time"]
        return _POSTGRES["timestamptz" if aware else "timestamp"]
    sized = _SIZED.fullmatch(type_name)
    if sized is not None and sized[1] in _PLAIN:
        return _find_sized_kind(sized[1], int(sized[2]), int(sized[3] or 0))
    return _POSTGRES.get("interval" if type_name.startswith("interval ") else type_name)


def _find_sized_kind(type_name: str, size: int, places: int) -> FieldKind | None:
    if type_name == "interval":
        return _POSTGRES["interval"]
    if type_name != "numeric":
        return FieldKind(fields.CharField, (), {"max_length": size})
    # numeric(3, -2) and numeric(2, 4) are valid types, of rounded and of very small numbers
    if not 0 <= places <= size:
        return None
    return FieldKind(fields.DecimalField, (), {"max_digits": size, "decimal_places": places})


def _narrow_to_positive(
    kind: FieldKind | None, column: ColumnDef, checks: Iterable[CheckDef], table: str
) -> FieldKind | None:
    if kind is None or kind.type not in _POSITIVE:
        return kind
    wanted = constraint_name("ck", table, column.name)
    sql = {canonicalize_sql(check.sql) for check in checks if check.name == wanted}
    is_positive = canonicalize_sql(f"{quote(column.name)} >= 0") in sql
    return replace(kind, type=_POSITIVE[kind.type]) if is_positive else kind


def _find_sqlite_kind(column: ColumnDef, checks: set[str]) -> FieldKind | None:
    name = column.type.upper()
    if name == "INTEGER":
        # the narrowest first: a field with fewer checks would fit the column too
        for kind in _INTEGERS:
            if _render_field_checks(kind(), column) <= checks:
                return FieldKind(kind)
        return FieldKind(fields.BigIntegerField)
    # the ORM's JSON is text with a check of its form
    if name == "TEXT" and _render_field_checks(fields.JSONField(), column) <= checks:
        return FieldKind(fields.JSONField)
    sized = _SIZED.fullmatch(name.lower())
    length = _find_max_length_in_checks(column, checks)
    found = next((kind for words, kind in _AFFINITIES if words.search(name)), None)
    if found is None:
        return None
    if found.type is fields.TextField and (length or sized):
        size = length or int(sized[2] if sized else 0)
        return FieldKind(fields.CharField, (), {"max_length": size}) if size else found
    if sized is not None and re.match("numeric|decimal", sized[1]):
        return _build_real_decimal_kind(int(sized[2]), int(sized[3] or 0))
    return found


def _build_real_decimal_kind(digits: int, places: int) -> FieldKind:
    digits = min(digits, _MOST_DIGITS)
    places = max(0, min(places, digits))
    options = {"max_digits": digits, "decimal_places": places, "storage": "real"}
    return FieldKind(fields.DecimalField, (), options)


def _render_field_checks(field: AnyField, column: ColumnDef) -> set[str]:
    return {canonicalize_sql(text.format(quote(column.name))) for text in field.checks("sqlite")}


def _find_max_length_in_checks(column: ColumnDef, checks: set[str]) -> int:
    for check in checks:
        found = _LENGTH.fullmatch(check)
        if found is not None and found[1] == column.name.lower():
            return int(found[2])
    return 0


def accepts_options(kind: FieldKind, **options: Any) -> bool:
    """True where a field takes these options."""
    try:
        kind.make_field(**options)
    except ORMError:
        return False
    return True
