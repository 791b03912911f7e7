"""The sources of parameters (path, query, header, cookie, form), and their binders.

A binder takes the connection and a list of errors, and returns the typed value or appends an entry
`{"loc": [source, name], "msg": ..., "type": ...}`. `_binding` converts one text; `_injection`
chooses the source.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

from treefold_http._binding import Converter

EMPTY = inspect.Parameter.empty

Errors: TypeAlias = list[dict[str, Any]]


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
    """

    bind: Callable[[Any, Errors], Any]
    waits: bool = False
    body: Literal["", "json", "form"] = ""


def entry(loc: list[str | int], message: object, kind: str = "value_error") -> dict[str, Any]:
    """Return one entry of `errors` in a 422 (rulings, 'Handlers and injection')."""
    name = next(step for step in reversed(loc) if isinstance(step, str))
    return {"loc": loc, "msg": f"{name} {message}", "type": kind}


def path_binder(name: str, convert: Converter) -> Binder:
    """Return the binder of a path parameter, which is never missing."""

    def bind(connection: Any, errors: Errors) -> Any:
        try:
            return convert(connection.path_params[name])
        except ValueError as error:
            errors.append(entry(["path", name], error))

    return Binder(bind)


_PLACES: dict[type[Source], tuple[str, str]] = {
    Query: ("query", "query"),
    Header: ("header", "headers"),
    Cookie: ("cookie", "cookies"),
}


def text_binder(
    source: Source,
    parameter: inspect.Parameter,
    convert: Converter,
    *,
    many: bool,
    whole: Callable[[Any], Any] | None = None,
) -> Binder:
    """Return the binder of one value, or of a list, from the query, a header field or a cookie.

    Args:
        whole: checks the list of all values.
    """
    label, attribute = _PLACES[type(source)]
    name = name_in(source, parameter)

    def bind(connection: Any, errors: Errors) -> Any:
        texts = getattr(connection, attribute)
        found = texts.getlist(name) if many else texts.get(name)
        loc: list[str | int] = [label, name]
        before = len(errors)
        value = _converted(found, loc, convert, parameter, errors)
        if whole is None or not found or len(errors) > before:
            return value
        return _one(value, loc, whole, errors)

    return Binder(bind)


def form_binder(
    source: Source,
    parameter: inspect.Parameter,
    convert: Converter,
    *,
    many: bool,
    whole: Callable[[Any], Any] | None = None,
) -> Binder:
    """Return the binder of one value, or of a list, from the fields of a form; as `text_binder`."""
    name = name_in(source, parameter)

    async def bind(connection: Any, errors: Errors) -> Any:
        fields = await connection.form()
        found = fields.getlist(name) if many else fields.get(name)
        loc: list[str | int] = ["form", name]
        before = len(errors)
        value = _converted(found, loc, convert, parameter, errors)
        if whole is None or not found or len(errors) > before:
            return value
        return _one(value, loc, whole, errors)

    return Binder(bind, waits=True, body="form")


def file_binder(source: Source, parameter: inspect.Parameter, *, many: bool) -> Binder:
    """Return the binder of one uploaded file, or of all files of a name."""
    name = name_in(source, parameter)

    async def bind(connection: Any, errors: Errors) -> Any:
        files = await connection.files()
        # If the user selects no file, a browser sends an empty file without a name.
        found = [file for file in files.getlist(name) if file.filename or file.size]
        if found:
            return found if many else found[0]
        if parameter.default is EMPTY:
            errors.append(entry(["file", name], "is required", "missing"))
        return parameter.default

    return Binder(bind, waits=True, body="form")


def name_in(source: Source, parameter: inspect.Parameter) -> str:
    """Return the name of a parameter in its source."""
    if source.alias is not None:
        return source.alias
    return parameter.name.replace("_", "-") if isinstance(source, Header) else parameter.name


def _converted(
    found: str | list[str] | None,
    loc: list[str | int],
    convert: Converter,
    parameter: inspect.Parameter,
    errors: Errors,
) -> Any:
    if found is None or found == []:
        if parameter.default is EMPTY:
            errors.append(entry(loc, "is required", "missing"))
        return parameter.default
    if isinstance(found, str):
        return _one(found, loc, convert, errors)
    return [_one(text, [*loc, index], convert, errors) for index, text in enumerate(found)]


def _one(value: Any, loc: list[str | int], convert: Callable[[Any], Any], errors: Errors) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        errors.append(entry(loc, error))
