"""Conversions on SQLite, where a decimal is an integer of its smallest unit and dates are text.

A `Conversion` has three parts here: SQL of the value after, SQL that is true for values that do not
fit (empty if all fit), and those values in words, for the message. In the SQL, `{0}` is the old
column, written `{{0}}` in an f-string.

A decimal has the storage "" (an integer of its smallest unit: 12.50 is 1250) or, in a column that
another tool writes, "real" (12.5) or "text" ('12.50'). Conversions load it as that integer, and
store it from one.

Limits that the table after checks by itself (lengths, ranges of integers, booleans) are not
repeated here: the planner tests those checks on the converted values.

Example, a price of 12.50 is 1250 in the table, and 125 with one place. `_decimal_to_decimal`
returns the conversion, and the planner puts the column in the place of `{0}`:

    Conversion(
        "({0} / 10)",
        "{0} % 10 <> 0 OR abs({0}) >= 1000000000",
        "a number that needs more than 8 digits with 1 places",
    )

    >>> AlterField("book", "price", fields.DecimalField(max_digits=8, decimal_places=1, null=True))
    SQLite: INSERT INTO "treefold_rebuilt" ("id", "title", "pages", "price")
    SELECT "id", "title", "pages", ("price" / 10) FROM "book"
"""

from __future__ import annotations

from treefold_migrations._conversions.conversion import (
    AnyField,
    Conversion,
    Rule,
    build_ordered_or_condition,
    describe_too_many_digits,
    read_decimal_options,
    text_to_text,
)

_MIDNIGHT = " 00:00:00.000000+00:00"
_HEX = "[0-9a-fA-F]"
_UUID = "-".join(_HEX * size for size in (8, 4, 4, 4, 12))


def _integer_to_decimal(_old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    room = f"more than {size - places} digits before the point"
    scaled = f"({{0}} * {10**places})"
    misfit = f"abs({{0}}) >= {10 ** (size - places)}"
    return Conversion(_build_decimal_store_sql(scaled, places, storage), misfit, room)


def _decimal_to_integer(old: AnyField, _new: AnyField) -> Conversion:
    _, places, _ = read_decimal_options(old)
    loaded, broken = _build_decimal_load_and_check(old)
    unit = 10**places
    misfit = build_ordered_or_condition(broken, f"{loaded} % {unit} <> 0")
    return Conversion(f"({loaded} / {unit})", misfit, "a fraction")


def _decimal_to_decimal(old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    before, old_places, old_storage = read_decimal_options(old)
    if storage and storage == old_storage and places >= old_places:
        return Conversion()  # another tool writes the column, and reads its own values
    loaded, broken = _build_decimal_load_and_check(old)
    shift = places - old_places
    # compared before the multiplication: a product beyond 64 bits becomes a float without an error
    limit = 10 ** (size - shift) if size >= shift else 1
    if shift >= 0:
        value = f"({loaded} * {10**shift})" if shift else loaded
        fits = f"abs({loaded}) >= {limit}"
        wide = size - places < before - old_places or bool(old_storage)
        # a column with room for every value of the field needs no query, unless another tool wrote
        # it
        misfit = build_ordered_or_condition(broken, fits) if wide else broken
    else:
        value = f"({loaded} / {10**-shift})"
        inexact = f"{loaded} % {10**-shift} <> 0 OR abs({loaded}) >= {limit}"
        misfit = build_ordered_or_condition(broken, inexact)
    what = describe_too_many_digits(new) if misfit else ""
    return Conversion(_build_decimal_store_sql(value, places, storage), misfit, what)


def _build_decimal_load_and_check(field: AnyField) -> tuple[str, str]:
    _, places, storage = read_decimal_options(field)
    if not storage:
        return "{0}", ""
    value = f"treefold_load_decimal({{0}}, {places}, 'a column')"
    if storage == "real":
        # floats equal in 15 digits are the same number
        return value, (
            f"abs({{0}}) >= {10.0 ** (18 - places)!r} OR "
            f"printf('%.15g', {{0}}) <> printf('%.15g', ROUND({{0}}, {places}))"
        )
    # GLOB has no alternation, so each condition finds one form that is not a number: "1x", "-",
    # "1.2.3", "1-2", and more than 18 digits, which 64 bits do not hold in each case
    other_character = "'*[^0-9.+-]*'"
    return value, (
        f"({{0}} GLOB {other_character} OR {{0}} NOT GLOB '*[0-9]*' OR {{0}} GLOB '*.*.*' OR "
        "{0} GLOB '?*[+-]*' OR length(ltrim({0}, '+-0')) > 18 OR "
        f"length(rtrim(substr({{0}}, instr({{0}} || '.', '.') + 1), '0')) > {places})"
    )


def _build_decimal_store_sql(scaled: str, places: int, storage: str) -> str:
    if storage == "real":
        return f"(CAST({scaled} AS REAL) / {10.0**places!r})"
    return f"treefold_store_decimal({scaled}, {places})" if storage == "text" else scaled


def _decimal_to_float(old: AnyField, _new: AnyField) -> Conversion:
    _, places, _ = read_decimal_options(old)
    loaded, broken = _build_decimal_load_and_check(old)
    value = f"(CAST({loaded} AS REAL) / {10.0**places!r})"
    misfit = build_ordered_or_condition(broken, f"abs({loaded}) >= {10**15}")
    return Conversion(value, misfit, "more than 15 digits")


def _float_to_decimal(_old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    # 0.1 + 0.2 is 0.30000000000000004: compared in 15 digits, it is the decimal 0.30
    value = f"CAST(ROUND({{0}} * {10.0**places!r}) AS INTEGER)"
    misfit = (
        f"abs({{0}}) >= {10.0 ** (size - places)!r} OR "
        f"printf('%.15g', {{0}}) <> printf('%.15g', {value} / {10.0**places!r})"
    )
    what = describe_too_many_digits(new)
    return Conversion(_build_decimal_store_sql(value, places, storage), misfit, what)


def _decimal_to_text(old: AnyField, _new: AnyField) -> Conversion:
    _, places, _ = read_decimal_options(old)
    loaded, broken = _build_decimal_load_and_check(old)
    value = f"treefold_store_decimal({loaded}, {places})"
    return Conversion(value, broken, "text that is not a number" if broken else "")


def _text_to_decimal(_old: AnyField, new: AnyField) -> Conversion:
    size, places, storage = read_decimal_options(new)
    loaded = f"treefold_load_decimal({{0}}, {places}, 'a column')"
    # zeros in front and behind are no digits of the number: 0012.500 fits into three digits
    whole = "ltrim(substr({0}, 1, instr({0} || '.', '.') - 1), '+-0')"
    fraction = "rtrim(substr({0}, instr({0} || '.', '.') + 1), '0')"
    misfit = (
        "{0} GLOB '*[^0-9.-]*' OR {0} NOT GLOB '*[0-9]*' OR {0} GLOB '*.*.*' OR {0} GLOB '?*-*' "
        f"OR length({whole}) > {size - places} OR length({fraction}) > {places}"
    )
    what = f"text that is not a number of {size} digits with {places} places"
    return Conversion(_build_decimal_store_sql(loaded, places, storage), misfit, what)


def _text_to_date(_old: AnyField, _new: AnyField) -> Conversion:
    digit = "[0-9]"
    pattern = f"{digit * 4}-{digit * 2}-{digit * 2}"
    # "2024-02-30" passes the pattern, and date() with a modifier makes it 2024-03-01; Python has no
    # year 0000
    misfit = f"{{0}} NOT GLOB '{pattern}' OR {{0}} < '0001' OR date({{0}}, '+0 days') IS NOT {{0}}"
    return Conversion("{0}", misfit, "text that is not a date as YYYY-MM-DD")


def _datetime_to_date(_old: AnyField, _new: AnyField) -> Conversion:
    misfit = f"substr({{0}}, 11) <> '{_MIDNIGHT}'"
    return Conversion("substr({0}, 1, 10)", misfit, "a time of day other than midnight in UTC")


CONVERSIONS: dict[tuple[str, str], Rule] = {
    # the check of the new column tests the range, on the converted rows
    ("integer", "integer"): Conversion(),
    ("integer", "boolean"): Conversion("{0}", "{0} NOT IN (0, 1)", "an integer other than 0 and 1"),
    ("boolean", "integer"): Conversion(),
    ("integer", "float"): Conversion(
        "CAST({0} AS REAL)",
        "{0} NOT BETWEEN -9007199254740992 AND 9007199254740992",
        "an integer that a float cannot hold exactly",
    ),
    ("float", "integer"): Conversion(
        "CAST({0} AS INTEGER)",
        "{0} <> CAST({0} AS INTEGER) OR abs({0}) >= 9.2e18",
        "a number that is not an integer",
    ),
    ("integer", "decimal"): _integer_to_decimal,
    ("decimal", "integer"): _decimal_to_integer,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("decimal", "float"): _decimal_to_float,
    ("float", "decimal"): _float_to_decimal,
    ("text", "text"): text_to_text,
    ("integer", "text"): Conversion("CAST({0} AS TEXT)"),
    # as PostgreSQL writes it: the number 1 as text would be another value than on the other
    # database
    ("boolean", "text"): Conversion("CASE {0} WHEN 1 THEN 'true' WHEN 0 THEN 'false' END"),
    ("decimal", "text"): _decimal_to_text,
    # these are text in a table of SQLite already
    ("date", "text"): Conversion(),
    ("time", "text"): Conversion(),
    ("datetime", "text"): Conversion(),
    ("uuid", "text"): Conversion(),
    ("json", "text"): Conversion(),
    # 007 and +7 would come back as 7: such text is no number but a code
    ("text", "integer"): Conversion(
        "CAST({0} AS INTEGER)",
        "CAST(CAST({0} AS INTEGER) AS TEXT) <> {0}",
        "text that is not an integer",
    ),
    ("text", "boolean"): Conversion(
        "CASE {0} WHEN 'true' THEN 1 WHEN 'false' THEN 0 END",
        "{0} NOT IN ('true', 'false')",
        "text other than 'true' and 'false'",
    ),
    ("text", "decimal"): _text_to_decimal,
    # keys and lookups compare UUIDs as text, in the spelling that the ORM writes
    ("text", "uuid"): Conversion(
        "lower({0})", f"{{0}} NOT GLOB '{_UUID}'", "text that is not a UUID"
    ),
    ("text", "date"): _text_to_date,
    ("text", "json"): Conversion(
        "treefold_json_at({0}, '[]')", "NOT json_valid({0})", "text that is not a JSON document"
    ),
    ("date", "datetime"): Conversion(f"({{0}} || '{_MIDNIGHT}')"),
    ("datetime", "date"): _datetime_to_date,
    ("naive", "datetime"): Conversion("treefold_load_moment({0}, 'a column')"),
    ("datetime", "naive"): Conversion("treefold_store_moment({0})"),
}
