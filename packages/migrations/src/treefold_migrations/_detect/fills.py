"""Values for rows that exist, where a field must have one: found, answered, or asked for."""

from __future__ import annotations

import ast
import datetime as dt
import json
from typing import Any

from treefold_migrations._base.errors import Ambiguous, MigrationError
from treefold_migrations._detect.answers import Answers, Question
from treefold_migrations._detect.fill_templates import BY_ROW, parse_fill_template
from treefold_migrations._state.rendering import build_table_meta
from treefold_migrations._state.schema_state import AnyField, SchemaState
from treefold_orm import Now, ORMError
from treefold_orm.schema import MISSING, SourceWriter


def needs_fill(field: AnyField) -> bool:
    """True for a field that no row can be without."""
    return not field.null and field.db_default is MISSING and not field.generated


def resolve_fill_value(state: SchemaState, table: str, name: str, answers: Answers) -> Any:
    """Return the value for rows that exist, as an operation holds it.

    Args:
        state: the state after the change.
        table: the table.
        name: the field, which takes no NULL.
        answers: the decisions of the caller.

    Raises `Ambiguous` where there is none.
    """
    subject = f"{table}.{name}"
    field = state.table(table).field(name)
    if subject in answers.fills:
        answers.used.add(f"--fill {subject}")
        return parse_fill_value(state, table, name, answers.fills[subject])
    known = find_constant_default(field)
    if known is not MISSING:
        return known
    question = Question(
        "fill",
        subject,
        flags=(f"--fill {subject}:VALUE",),
        text=(
            f"{subject} must have a value in rows that exist; give one with --fill "
            f"{subject}:VALUE, or set null=True or db_default= on the field"
            f"{BY_ROW if field.unique else ''}"
        ),
    )
    if answers.ask is None:
        raise Ambiguous(question.text, flags=question.flags)
    return parse_fill_value(state, table, name, answers.ask(question))


def find_constant_default(field: AnyField) -> Any:
    """Return the value that the declaration of a field gives to all rows alike, else MISSING."""
    given = field.default
    if getattr(field, "auto_now", False) or getattr(field, "auto_now_add", False):
        return MISSING if field.storage else Now()
    if not callable(given):
        return given
    try:
        # uuid4 or a counter differs from call to call; `list` and `dict` do not
        first, second = given(), given()
        if type(first) is type(second) and first == second:
            render_value_source(first)
            return first  # the same each time: it is a constant for every row
    except Exception:  # noqa: BLE001, RUF100, S110 - a default of the application may need anything
        pass
    return MISSING


def render_value_source(value: Any) -> str:
    """Return the source of a constant; raises the ORM's `ModelError` for a value without one."""

    return SourceWriter().value(value)


def parse_fill_value(state: SchemaState, table: str, field_name: str, text: str) -> Any:
    """Return the value that a text stands for.

    Text is read as the field reads it; `now` is the time of the migration for dates and times,
    names in braces are other fields of the row, and a text in quotes is that text without them.

    Raises `MigrationError` for text that the field does not take.
    """
    meta = build_table_meta(state, table)
    field: AnyField = meta.fields[field_name]
    is_quoted = len(text) >= 2 and text[0] == text[-1] and text[0] in "'\""
    # braces of JSON are no names of fields
    if not is_quoted and field.internal != "json":
        template = parse_fill_template(meta, field_name, text)
        if template is not None:
            return template
    if text == "now" and field.internal == "datetime" and not field.storage:
        return Now()
    if text == "now" and field.internal == "date":
        # a day has no expression in a file: it is that of makemigrations
        return dt.datetime.now(dt.UTC).date()
    if is_quoted:
        try:
            text = str(ast.literal_eval(text))
        except (SyntaxError, ValueError):
            raise MigrationError(
                f"--fill {table}.{field_name}:{text} must close its quotes"
            ) from None
    try:
        if field.internal == "json":
            return field.clean(json.loads(text))
        value = field.clean(field.parse(text))
        render_value_source(value)
    except (ORMError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise MigrationError(
            f"--fill {table}.{field_name}:{text} does not fit the field: {reason}"
        ) from (error)
    return value
