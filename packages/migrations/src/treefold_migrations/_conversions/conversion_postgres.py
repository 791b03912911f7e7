"""Conversions on PostgreSQL: an expression for ALTER COLUMN ... TYPE ... USING, and the values that
it would refuse or change.

A misfit is found before the statement runs, so that the error tells how many rows there are.

Example: USING repeats the misfits, and fails for one that was written after the guard:

    >>> AlterField("book", "pages", fields.SmallIntegerField(null=True))
    PostgreSQL: SELECT count(*) OVER () AS "rows", CAST("id" AS TEXT) FROM "book"
    WHERE "pages" IS NOT NULL AND ("pages" NOT BETWEEN -32768 AND 32767) LIMIT 1
    PostgreSQL: ALTER TABLE "book" ALTER COLUMN "pages" TYPE smallint USING CASE
    WHEN "pages" IS NOT NULL AND ("pages" NOT BETWEEN -32768 AND 32767) THEN ...
    ELSE CAST("pages" AS smallint) END
"""

from __future__ import annotations

from treefold_migrations._base.errors import PlanError
from treefold_migrations._conversions.conversion import (
    AnyField,
    Conversion,
    Rule,
    build_ordered_or_condition,
    can_exceed_range,
    describe_too_many_digits,
    find_integer_range,
    find_value_kind,
    read_decimal_options,
    text_to_text,
)
from treefold_orm.fields import ArrayField

_NUMBER = "^-?[0-9]+(\\.[0-9]+)?$"
# 18 digits behind the first: the greatest bigint has 19, and the range is tested as numeric
_INTEGER = "^(0|-?[1-9][0-9]{0,18})$"
# the server reads braces and other groups of digits too; SQLite, by GLOB, takes this form alone
_UUID = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def _find_postgres_type(field: AnyField) -> str:
    return field.column_type("postgres")


def _build_out_of_range_condition(value: str, field: AnyField) -> str:
    low, high = find_integer_range(field)
    return f"{value} NOT BETWEEN {low} AND {high}"


def _integer_to_integer(old: AnyField, new: AnyField) -> Conversion:
    if not can_exceed_range(old, new):
        return Conversion()
    low, high = find_integer_range(new)
    misfit = _build_out_of_range_condition("{0}", new)
    return Conversion("{0}", misfit, f"an integer outside {low} to {high}")


def _boolean_to_integer(_old: AnyField, new: AnyField) -> Conversion:
    # boolean has a cast to integer alone: "cannot cast type boolean to bigint"
    return Conversion(f"{{0}}::integer::{_find_postgres_type(new)}")


def _float_to_integer(_old: AnyField, new: AnyField) -> Conversion:
    return Conversion(
        f"{{0}}::{_find_postgres_type(new)}",
        # a cast rounds, so that 2.5 would become 2 without an error; the range is compared as
        # numeric, since the greatest bigint is not a float: it would be rounded up to 2 ** 63
        "CASE WHEN {0} = 'NaN' OR abs({0}) >= 9.2e18 THEN TRUE "
        f"ELSE {{0}} <> trunc({{0}}) OR {_build_out_of_range_condition('{0}::numeric', new)} END",
        "a number that is not an integer of the field",
    )


def _integer_to_decimal(_old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    # abs() of the smallest bigint is out of the range of bigint, and would end the guard
    misfit = f"abs({{0}}::numeric) >= {10 ** (size - places)}"
    what = f"more than {size - places} digits before the point"
    value = _build_decimal_store_sql(f"{{0}}::numeric({size}, {places})", storage)
    return Conversion(value, misfit, what)


def _build_decimal_load_and_check(field: AnyField) -> tuple[str, str]:
    _, places, storage = read_decimal_options(field)
    if not storage:
        return "{0}", ""
    value = f"round({{0}}::numeric, {places})"
    if storage == "real":
        # NaN sorts above infinity on PostgreSQL, so that the comparison finds it too
        broken = f"CASE WHEN abs({{0}}) < 'infinity' THEN {{0}}::numeric <> {value} ELSE TRUE END"
        return value, broken
    return value, f"CASE WHEN {{0}} ~ '{_NUMBER}' THEN {{0}}::numeric <> {value} ELSE TRUE END"


def _build_decimal_store_sql(value: str, storage: str) -> str:
    kept = {"": value, "real": f"({value})::double precision", "text": f"({value})::text"}
    return kept[storage]


def _decimal_to_integer(old: AnyField, new: AnyField) -> Conversion:
    loaded, broken = _build_decimal_load_and_check(old)
    misfit = f"{loaded} <> trunc({loaded}) OR {_build_out_of_range_condition(loaded, new)}"
    value = f"({loaded})::{_find_postgres_type(new)}"
    misfit = build_ordered_or_condition(broken, misfit)
    return Conversion(value, misfit, "a number that is not an integer of the field")


def _decimal_to_decimal(old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    before, old_places, old_storage = read_decimal_options(old)
    if storage and storage == old_storage and places >= old_places:
        return Conversion()  # another tool writes the column, and reads its own values
    loaded, broken = _build_decimal_load_and_check(old)
    # a stored value may have more digits than its field takes, since its column has no such type
    narrow = places < old_places or size - places < before - old_places or bool(old_storage)
    misfit = f"{loaded} <> round({loaded}, {places}) OR abs({loaded}) >= {10 ** (size - places)}"
    value = _build_decimal_store_sql(f"({loaded})::numeric({size}, {places})", storage)
    what = describe_too_many_digits(new)
    if not narrow:
        return Conversion() if not storage else Conversion(value)
    return Conversion(value, build_ordered_or_condition(broken, misfit), what)


def _decimal_to_float(old: AnyField, _new: AnyField) -> Conversion:
    _, places, _ = read_decimal_options(old)
    loaded, broken = _build_decimal_load_and_check(old)
    # a double holds 15 digits of any decimal
    misfit = f"abs({loaded}) * {10**places} >= {10**15}"
    value = f"({loaded})::double precision"
    return Conversion(value, build_ordered_or_condition(broken, misfit), "more than 15 digits")


def _float_to_decimal(_old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    misfit = (
        f"CASE WHEN {{0}} = 'NaN' OR abs({{0}}) >= 1e{size - places} THEN TRUE "
        f"ELSE {{0}}::numeric <> round({{0}}::numeric, {places}) END"
    )
    what = describe_too_many_digits(new)
    value = _build_decimal_store_sql(f"{{0}}::numeric({size}, {places})", storage)
    return Conversion(value, misfit, what)


def _decimal_to_text(old: AnyField, _new: AnyField) -> Conversion:
    loaded, broken = _build_decimal_load_and_check(old)
    return Conversion(f"({loaded})::text", broken, "text that is not a number" if broken else "")


def _text_to_integer(_old: AnyField, new: AnyField) -> Conversion:
    # 007 and +7 would come back as 7: such text is no number but a code
    misfit = _build_out_of_range_condition("{0}::numeric", new)
    misfit = f"CASE WHEN {{0}} ~ '{_INTEGER}' THEN {misfit} ELSE TRUE END"
    return Conversion(f"{{0}}::{_find_postgres_type(new)}", misfit, "text that is not an integer")


def _text_to_decimal(_old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    misfit = (
        f"CASE WHEN {{0}} ~ '{_NUMBER}' THEN {{0}}::numeric <> round({{0}}::numeric, {places}) "
        f"OR abs({{0}}::numeric) >= {10 ** (size - places)} ELSE TRUE END"
    )
    what = f"text that is not a number of {size} digits with {places} places"
    value = _build_decimal_store_sql(f"{{0}}::numeric({size}, {places})", storage)
    return Conversion(value, misfit, what)


def _text_to_date(_old: AnyField, _new: AnyField) -> Conversion:
    # the cast also reads '1/2/2024', by the DateStyle of the session, and 'today'
    misfit = "{0} !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}$'"
    return Conversion("{0}::date", misfit, "text that is not a date as YYYY-MM-DD", "date")


def _datetime_to_date(_old: AnyField, _new: AnyField) -> Conversion:
    # ::date alone would give the day in the time zone of the session
    local = "({0} AT TIME ZONE 'UTC')"
    misfit = f"{local} <> date_trunc('day', {local})"
    return Conversion(f"{local}::date", misfit, "a time of day other than midnight in UTC")


def _array_to_array(old: AnyField, new: AnyField) -> Conversion:
    if not isinstance(old, ArrayField) or not isinstance(new, ArrayField):
        raise TypeError("arrays are ArrayFields")
    first: AnyField = old.base
    last: AnyField = new.base
    if _find_postgres_type(first) == _find_postgres_type(last):
        return Conversion()
    pair = find_value_kind(first), find_value_kind(last)
    # other items would need an expression for each, which a cast of the whole array does not have
    if pair in {("integer", "integer"), ("text", "text")}:
        rule = CONVERSIONS[pair]
        item = rule if isinstance(rule, Conversion) else rule(first, last)
        if not item.misfit:
            return Conversion(f"{{0}}::{_find_postgres_type(new)}")
        refused = item.render_misfit_condition("item")
        misfit = f"EXISTS (SELECT 1 FROM unnest({{0}}) AS item WHERE {refused})"
        return Conversion(f"{{0}}::{_find_postgres_type(new)}", misfit, item.what)
    raise PlanError(
        f"An array of {type(first).__name__} cannot become one of {type(last).__name__} without an "
        "expression for its values: give one with using="
    )


CONVERSIONS: dict[tuple[str, str], Rule] = {
    ("integer", "integer"): _integer_to_integer,
    # the cast to boolean takes integer, and neither smallint nor bigint
    ("integer", "boolean"): Conversion(
        "({0} <> 0)", "{0} NOT IN (0, 1)", "an integer other than 0 and 1"
    ),
    ("boolean", "integer"): _boolean_to_integer,
    ("integer", "float"): Conversion(
        "{0}::double precision",
        # 2 ** 53: beyond it a double skips integers
        "{0} NOT BETWEEN -9007199254740992 AND 9007199254740992",
        "an integer that a float cannot hold exactly",
    ),
    ("float", "integer"): _float_to_integer,
    ("integer", "decimal"): _integer_to_decimal,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("decimal", "float"): _decimal_to_float,
    ("float", "decimal"): _float_to_decimal,
    ("text", "text"): text_to_text,
    ("integer", "text"): Conversion("{0}::text"),
    ("boolean", "text"): Conversion("{0}::text"),
    ("decimal", "text"): _decimal_to_text,
    # a cast to text depends on DateStyle and TimeZone of the session, and drops zeros of the
    # fraction; the format is the one that SQLite stores
    ("date", "text"): Conversion("to_char({0}, 'YYYY-MM-DD')"),
    ("time", "text"): Conversion("to_char({0}, 'HH24:MI:SS.US')"),
    ("datetime", "text"): Conversion(
        "(to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00')"
    ),
    ("uuid", "text"): Conversion("{0}::text"),
    ("json", "text"): Conversion("{0}::text"),
    ("text", "integer"): _text_to_integer,
    ("text", "boolean"): Conversion(
        "({0} = 'true')", "{0} NOT IN ('true', 'false')", "text other than 'true' and 'false'"
    ),
    ("text", "decimal"): _text_to_decimal,
    ("text", "uuid"): Conversion("{0}::uuid", f"{{0}} !~ '{_UUID}'", "text that is not a UUID"),
    ("text", "date"): _text_to_date,
    # no pattern recognises JSON: the server tries the cast, row by row
    ("text", "json"): Conversion(
        "{0}::jsonb", "FALSE", "text that is not a JSON document", "jsonb"
    ),
    # without AT TIME ZONE the cast would take the time zone of the session
    ("date", "datetime"): Conversion("({0}::timestamp AT TIME ZONE 'UTC')"),
    ("datetime", "date"): _datetime_to_date,
    ("naive", "datetime"): Conversion("({0} AT TIME ZONE 'UTC')"),
    ("datetime", "naive"): Conversion("({0} AT TIME ZONE 'UTC')"),
    ("array", "array"): _array_to_array,
}
