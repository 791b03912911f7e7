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
class Kind:
    """A class of fields with its arguments."""

    type: Any
    args: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def make_field(self, **options: Any) -> AnyField:
        """Return a field."""
        made: AnyField = self.type(*self.args, **{**self.options, **options})
        return made

    def with_options(self, **options: Any) -> Kind:
        """Return the kind with further options."""
        return replace(self, options={**self.options, **options})


_POSTGRES: dict[str, Kind] = {
    "smallint": Kind(fields.SmallIntegerField),
    "integer": Kind(fields.IntegerField),
    "bigint": Kind(fields.BigIntegerField),
    "boolean": Kind(fields.BooleanField),
    "real": Kind(fields.FloatField),
    "double precision": Kind(fields.FloatField),
    "numeric": Kind(fields.DecimalField, (), {"max_digits": 38, "decimal_places": 10}),
    "text": Kind(fields.TextField),
    "varchar": Kind(fields.TextField),
    "citext": Kind(fields.TextField),
    "character": Kind(fields.TextField),
    "uuid": Kind(fields.UUIDField),
    "bytea": Kind(fields.BinaryField),
    "json": Kind(fields.JSONField),
    "jsonb": Kind(fields.JSONField),
    "date": Kind(fields.DateField),
    "time": Kind(fields.TimeField),
    "interval": Kind(fields.DurationField),
    "timestamptz": Kind(fields.DateTimeField),
    "timestamp": Kind(fields.DateTimeField, (), {"zone": None}),
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
    (re.compile(r"TINYINT\(1\)|BOOL"), Kind(fields.BooleanField)),
    (re.compile(r"INT"), Kind(fields.BigIntegerField)),
    (re.compile(r"JSON"), Kind(fields.JSONField)),
    (re.compile(r"CHAR|CLOB|TEXT|STRING"), Kind(fields.TextField)),
    (re.compile(r"BLOB|BINARY"), Kind(fields.BinaryField)),
    (re.compile(r"REAL|FLOA|DOUB"), Kind(fields.FloatField)),
    # DATE alone would take DATETIME for a day; the text of other tools has no zone
    (re.compile(r"DATETIME|TIMESTAMP"), Kind(fields.DateTimeField, (), {"zone": None})),
    (re.compile(r"DATE"), Kind(fields.DateField)),
    (re.compile(r"TIME"), Kind(fields.TimeField)),
    (re.compile(r"NUMERIC|DECIMAL"), Kind(fields.FloatField)),
)
# 64 bits hold each number of 18 digits
_MOST_DIGITS = 18
_LENGTH = re.compile(r"length ?\( ?(.+?) ?\) ?<= ?(\d+)")


def find_field_kind(
    column: ColumnDef, checks: Iterable[CheckDef], table: str, database: Database
) -> Kind | None:
    """Return the field of a column; None where no field reads and writes its values."""
    if database.engine == "postgres":
        return _narrow_to_positive(
            _find_postgres_kind(column.type, database), column, checks, table
        )
    own = ("", constraint_name("ck", table, column.name))
    return _find_sqlite_kind(
        column, {canonicalize_sql(check.sql) for check in checks if check.name in own}
    )


def _find_postgres_kind(name: str, database: Database) -> Kind | None:
    if name in database.domains:
        return _find_postgres_kind(database.domains[name], database)
    if name in database.enums:
        labels = database.enums[name]
        return Kind(fields.TextField, (), {"choices": list(labels)})
    if name.endswith("[]"):
        base = _find_postgres_kind(name[:-2], database)
        # items are not converted one by one, so that the array must be of the very type of its
        # field
        exact = base is not None and base.type is not fields.JSONField
        if not exact or base is None or base.make_field().column_type("postgres") != name[:-2]:
            return None
        return Kind(fields.ArrayField, (base.make_field(),))
    zoned = _ZONED.fullmatch(name)
    if zoned is not None:
        aware = zoned[2] == " with time zone"
        if zoned[1] == "time":
            return None if aware else _POSTGRES["time"]
        return _POSTGRES["timestamptz" if aware else "timestamp"]
    sized = _SIZED.fullmatch(name)
    if sized is not None and sized[1] in _PLAIN:
        return _find_sized_kind(sized[1], int(sized[2]), int(sized[3] or 0))
    return _POSTGRES.get("interval" if name.startswith("interval ") else name)


def _find_sized_kind(name: str, size: int, places: int) -> Kind | None:
    if name == "interval":
        return _POSTGRES["interval"]
    if name != "numeric":
        return Kind(fields.CharField, (), {"max_length": size})
    # numeric(3, -2) and numeric(2, 4) are valid types, of rounded and of very small numbers
    if not 0 <= places <= size:
        return None
    return Kind(fields.DecimalField, (), {"max_digits": size, "decimal_places": places})


def _narrow_to_positive(
    kind: Kind | None, column: ColumnDef, checks: Iterable[CheckDef], table: str
) -> Kind | None:
    if kind is None or kind.type not in _POSITIVE:
        return kind
    wanted = constraint_name("ck", table, column.name)
    sql = {canonicalize_sql(check.sql) for check in checks if check.name == wanted}
    is_positive = canonicalize_sql(f"{quote(column.name)} >= 0") in sql
    return replace(kind, type=_POSITIVE[kind.type]) if is_positive else kind


def _find_sqlite_kind(column: ColumnDef, checks: set[str]) -> Kind | None:
    name = column.type.upper()
    if name == "INTEGER":
        # the narrowest first: a field with fewer checks would fit the column too
        for kind in _INTEGERS:
            if _render_field_checks(kind(), column) <= checks:
                return Kind(kind)
        return Kind(fields.BigIntegerField)
    # the ORM's JSON is text with a check of its form
    if name == "TEXT" and _render_field_checks(fields.JSONField(), column) <= checks:
        return Kind(fields.JSONField)
    sized = _SIZED.fullmatch(name.lower())
    length = _find_max_length(column, checks)
    found = next((kind for words, kind in _AFFINITIES if words.search(name)), None)
    if found is None:
        return None
    if found.type is fields.TextField and (length or sized):
        size = length or int(sized[2] if sized else 0)
        return Kind(fields.CharField, (), {"max_length": size}) if size else found
    if sized is not None and re.match("numeric|decimal", sized[1]):
        return _build_real_decimal_kind(int(sized[2]), int(sized[3] or 0))
    return found


def _build_real_decimal_kind(digits: int, places: int) -> Kind:
    digits = min(digits, _MOST_DIGITS)
    places = max(0, min(places, digits))
    options = {"max_digits": digits, "decimal_places": places, "storage": "real"}
    return Kind(fields.DecimalField, (), options)


def _render_field_checks(made: AnyField, column: ColumnDef) -> set[str]:
    return {canonicalize_sql(text.format(quote(column.name))) for text in made.checks("sqlite")}


def _find_max_length(column: ColumnDef, checks: set[str]) -> int:
    for check in checks:
        found = _LENGTH.fullmatch(check)
        if found is not None and found[1] == column.name.lower():
            return int(found[2])
    return 0


def accepts_options(kind: Kind, **options: Any) -> bool:
    """True where a field takes these options."""
    try:
        kind.make_field(**options)
    except ORMError:
        return False
    return True
