"""Typed messages of a socket: JSON into the annotated type, by the decoders of request bodies.

Imported with the first typed message; a socket that receives untyped JSON does not need it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from treefold_http._types.decode import Decoder, build_model_decoder
from treefold_http._types.parameters import InjectionError, format_annotation
from treefold_http._types.read import parse_annotation
from treefold_http._wire.errors import UnprocessableEntity, build_unprocessable_error


def decode_typed_message(model: Any, body: bytes, document: Any) -> Any:
    """Decode a message into its type.

    Args:
        body, document: the message as bytes, and the result of `loads` for it.

    Raises:
        InjectionError: for a type that needs a package which is not installed.
        UnprocessableEntity: for a message of another type; `errors` lists the places.
    """
    try:
        return _build_message_decoder(model).decode(body, document)
    except UnprocessableEntity as error:
        errors = [{**each, "loc": ["message", *each["loc"][1:]]} for each in error.errors or ()]
        raise build_unprocessable_error("message", errors) from None


@lru_cache(maxsize=256)
def _build_message_decoder(model: Any) -> Decoder:
    decoder = build_model_decoder(parse_annotation(model), allow_any_type=True)
    if decoder is None:
        message = f"A message must be decoded as a model, got {format_annotation(model)}"
        raise InjectionError(message)
    return decoder
