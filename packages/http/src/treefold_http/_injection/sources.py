"""The sources of parameters (path, query, header, cookie, form), and their binders.

A binder takes the connection and a list of errors, and returns the typed value or appends an entry
`{"loc": [source, name], "msg": ..., "type": ...}`. `resolve_source` chooses the source.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from treefold_http._types.scalars import Converter
from treefold_http._types.validate import Errors, make_error_entry

EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Source:
    """A marker for the source of a value: `Annotated[str, Header()]`.

    Attributes:
        alias: the name in the source, if it is not the parameter's.
    """

    alias: str | None = None


class Query(Source):
    """Take the value from the query string; `list[...]` takes every value of the name."""


class Header(Source):
    """Take the value from a header field; `_` in the parameter's name becomes `-`."""


class Cookie(Source):
    """Take the value from a cookie."""


class Body(Source):
    """Take the value from the JSON body, whatever its type."""


class Form(Source):
    """Take the value from a field of the form."""


class File(Source):
    """Take an uploaded file of the form."""


class Binder(NamedTuple):
    """Reads one parameter.

    Attributes:
        bind: takes the connection and the list of errors.
        waits: True if `bind` is a coroutine function.
        body: its use of the request body: `json` for all of it, `form` for a part, empty for none.
        others: for a model with a policy for unknown names, the names that other inputs take; they
            are added once all inputs are known.
    """

    bind: Callable[[Any, Errors], Any]
    waits: bool = False
    body: Literal["", "json", "form"] = ""
    others: set[str] | None = None


def build_path_binder(name: str, convert: Converter) -> Binder:
    """Return the binder of a path parameter, which is never missing."""

    def bind_path(connection: Any, errors: Errors) -> Any:
        try:
            return convert(connection.path_params[name])
        except ValueError as error:
            errors.append(make_error_entry(["path", name], error))

    return Binder(bind_path)


class TextReader(NamedTuple):
    """Converts the texts of a request to the value of a parameter.

    Attributes:
        convert: converts and checks one text.
        many: True if the parameter is a list, with one item for each text.
        whole: makes the set or tuple of the list, or checks the list's own constraints.
    """

    convert: Converter
    many: bool = False
    whole: Callable[[Any], Any] | None = None


_ATTRIBUTES = {"query": "query", "header": "headers", "cookie": "cookies"}


def build_text_binder(place: str, name: str, reader: TextReader, default: Any) -> Binder:
    """Return the binder of one value, or of a list, from the query, a header or a cookie."""
    take = build_value_parser(place, name, reader, default)
    attribute, many = _ATTRIBUTES[place], reader.many

    def bind_text(connection: Any, errors: Errors) -> Any:
        texts = getattr(connection, attribute)
        return take(texts.getlist(name) if many else texts.get(name), errors)

    return Binder(bind_text)


def build_form_field_binder(name: str, reader: TextReader, default: Any) -> Binder:
    """Return the binder of one value, or of a list, from the fields of a form."""
    take = build_value_parser("form", name, reader, default)

    async def bind_form_field(connection: Any, errors: Errors) -> Any:
        fields = await connection.form()
        return take(fields.getlist(name) if reader.many else fields.get(name), errors)

    return Binder(bind_form_field, waits=True, body="form")


def build_file_binder(name: str, default: Any, *, many: bool) -> Binder:
    """Return the binder of one uploaded file, or of all files of a name."""

    async def bind_file(connection: Any, errors: Errors) -> Any:
        files = await connection.files()
        # If the user selects no file, a browser sends an empty file without a name.
        found = [file for file in files.getlist(name) if file.filename or file.size]
        if found:
            return found if many else found[0]
        if default is EMPTY:
            errors.append(make_error_entry(["file", name], "is required", "missing"))
        return default

    return Binder(bind_file, waits=True, body="form")


def build_value_parser(
    place: str, name: str, reader: TextReader, default: Any
) -> Callable[[str | list[str] | None, Errors], Any]:
    """Return a function from the texts of one name to the value; it appends to given errors."""
    convert, _, whole = reader

    def parse_texts(found: str | list[str] | None, errors: Errors) -> Any:
        loc: list[str | int] = [place, name]
        if found is None or found == []:
            if default is EMPTY:
                errors.append(make_error_entry(loc, "is required", "missing"))
            return default
        if isinstance(found, str):
            return _convert_or_record_error(found, loc, convert, errors)
        before = len(errors)
        value = [
            _convert_or_record_error(text, [*loc, index], convert, errors)
            for index, text in enumerate(found)
        ]
        if whole is None or len(errors) > before:
            return value
        return _convert_or_record_error(value, loc, whole, errors)

    return parse_texts


def _convert_or_record_error(
    value: Any, loc: list[str | int], convert: Callable[[Any], Any], errors: Errors
) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        errors.append(make_error_entry(loc, error))
