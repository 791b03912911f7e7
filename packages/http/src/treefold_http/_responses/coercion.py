"""Return values of handlers to responses.

A table from type to conversion; the exact type is looked up first because it matches nearly always.
A type outside of the table is refused by name; no value is rendered through `str` or `repr`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, cast

from treefold_http._json.json import dumps, get_pydantic_dump_functions, msgspec, to_json_compatible
from treefold_http._responses.response import (
    BODILESS,
    BYTES_TYPE,
    JSON_TYPE,
    TEXT_TYPE,
    Response,
    check_status,
    copy_response,
    make_unchecked_response,
)
from treefold_http._responses.streams import StreamingResponse


def to_response(result: Any, status: int | None = None) -> Response:
    """Return the response for a handler's return value.

    Args:
        result: the return value; a `Response` is returned unchanged.
        status: the status of a plain value; None for the default of its type.

    Raises:
        TypeError: for a type that has no response form; the message names it.
        ValueError: for NaN, a status out of range, or a header that cannot be sent.
    """
    kind = result.__class__
    if (plain := PLAIN.get(kind)) is not None:
        return _build_plain_response(plain, result, status)
    return _OTHERS.get(kind, _learn_and_convert_type)(result, status)


def to_unshared_response(result: Any, status: int | None = None) -> Response:
    """Return the response for a return value that may be a `Response` of an author's module.

    The layer that gets it may change it: a `Response` that was returned is copied. Arguments and
    errors are those of `to_response`.
    """
    response = to_response(result, status)
    return copy_response(response) if response is result else response


PLAIN: dict[type, tuple[Callable[[Any], bytes], tuple[bytes, bytes]]] = {
    dict: (dumps, JSON_TYPE),
    list: (dumps, JSON_TYPE),
    str: (str.encode, TEXT_TYPE),
    bytes: (bytes, BYTES_TYPE),
}
"""Type to encoder and Content-Type; subclasses and records are added at their first use."""

PLAIN_STATUSES = frozenset(range(200, 600)) - BODILESS
"""Statuses of answers that are a type and a body."""


def is_plain_pair(result: tuple[Any, ...]) -> bool:
    """Return True for `(content, status)` with a status whose answer has a body."""
    return len(result) == 2 and type(result[1]) is int and result[1] in PLAIN_STATUSES


_LEARNED = 1024
"""Types of results that are remembered; a program returns far fewer."""


def _build_plain_response(
    plain: tuple[Callable[[Any], bytes], tuple[bytes, bytes]], result: Any, status: int | None
) -> Response:
    status = 200 if status is None else check_status(status)
    return make_unchecked_response(plain[0](result), plain[1], status)


def _learn_and_convert_type(result: Any, status: int | None) -> Response:
    """Find the conversion of a new type, remember it, and apply it."""
    kind = result.__class__
    if issubclass(kind, Response):
        return result
    for base in (dict, list, str, bytes):
        if issubclass(kind, base):
            found = PLAIN[base]
            break
    else:
        if issubclass(kind, (bytearray, memoryview)):
            found = PLAIN[bytes]
        elif (dump := get_pydantic_dump_functions(kind)) is not None:
            found = (_build_model_encoder(dump[1]), JSON_TYPE)
        elif _is_model_class(kind):
            found = PLAIN[dict]
        else:
            refuse_unawaited(result)
            return _find_converter(kind)(result, status)
    # a class that is made inside a function is another one at each call
    if len(PLAIN) < _LEARNED:
        PLAIN[kind] = found
    return _build_plain_response(found, result, status)


def refuse_unawaited(result: object) -> None:
    """Raise `TypeError` for a result that the handler has not awaited; its name is in the text."""
    kind = result.__class__
    if not issubclass(kind, Awaitable):
        return
    name: str = getattr(result, "__qualname__", kind.__qualname__)
    if inspect.iscoroutine(result):
        result.close()  # it never runs, and need not be reported at its end as well
    raise TypeError(
        f"A handler must return the result of {name!r}, which has not been awaited; write `await`"
        " before the call"
    )


def _find_converter(kind: type[Any]) -> Callable[[Any, int | None], Response]:
    # a named tuple of two is no (content, status)
    if issubclass(kind, tuple) and not hasattr(cast("Any", kind), "_fields"):
        return _convert_tuple
    if issubclass(kind, (AsyncIterator, Iterator)):
        return _make_stream_response
    raise TypeError(
        "A handler must return a dict, list, str, bytes, None, a tuple of these with a status, or"
        f" a Response, got {kind.__qualname__!r}; set response_model to send its members"
    )


def _build_model_encoder(dump: Callable[[Any], str]) -> Callable[[Any], bytes]:
    """Encode a pydantic model; strictly if the result has a null, which pydantic writes for NaN."""

    def encode_model(model: Any) -> bytes:
        body = dump(model).encode()
        return body if body.find(b"null") < 0 else dumps(to_json_compatible(model))

    return encode_model


def _is_model_class(kind: type[Any]) -> bool:
    """Return True for a pydantic model, a dataclass or a msgspec struct."""
    if dataclasses.is_dataclass(kind) or hasattr(kind, "model_dump"):
        return True
    return msgspec is not None and issubclass(kind, msgspec.Struct)


def _return_unchanged(response: Response, status: int | None) -> Response:
    del status  # the response has its own
    return response


def _make_empty_response(content: None, status: int | None) -> Response:
    return Response(content, 204 if status is None else status)


def _make_stream_response(content: Any, status: int | None) -> Response:
    return StreamingResponse(content, 200 if status is None else status)


def _convert_tuple(content: tuple[Any, ...], status: int | None) -> Response:
    del status  # the tuple has its own
    if len(content) not in (2, 3):
        raise TypeError(
            f"A handler returned a tuple of {len(content)};"
            " return (content, status) or (content, status, headers)"
        )
    kind = content[0].__class__
    plain = PLAIN.get(kind)
    if plain is None and issubclass(kind, (tuple, Response)):
        raise TypeError(
            f"A handler returned a tuple that starts with {kind.__qualname__!r};"
            " set the status on the response, or return its content"
        )
    status = check_status(content[1])
    if plain is None:
        response = to_response(content[0], status)
    else:
        response = make_unchecked_response(plain[0](content[0]), plain[1], status)
    if len(content) == 3:
        headers = content[2]
        if not isinstance(headers, Mapping):
            raise TypeError(
                f"A handler returned headers of type {type(headers).__qualname__!r};"
                " return a mapping of str to str"
            )
        response.headers.update(cast("Mapping[str, str]", headers))
    return response


_OTHERS: dict[type, Callable[[Any, int | None], Response]] = {
    Response: _return_unchanged,
    StreamingResponse: _return_unchanged,
    tuple: _convert_tuple,
    type(None): _make_empty_response,
}
