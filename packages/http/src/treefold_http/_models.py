"""Body models: JSON bytes straight into the annotated type (rulings, 'Handlers', 6).

msgspec decodes its structs; pydantic validates what its `TypeAdapter` accepts; a plain dataclass is
checked by ourselves where neither is installed. All of them see only bodies that `loads` has taken,
because none refuses repeated names, and not each refuses NaN or lone surrogates.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
import types
import typing
from collections.abc import Callable
from typing import Any, TypeAlias, cast, is_typeddict

from treefold_http._errors import UnprocessableEntity
from treefold_http._json import msgspec
from treefold_http._parameters import shown
from treefold_http._sources import entry

Decode: TypeAlias = Callable[[bytes, Any], Any]
"""Takes the body and what `loads` made of it; gives a value of the annotated type."""

BOM = b"\xef\xbb\xbf"


def model_decoder(annotation: Any, *, anything: bool = False) -> Decode | None:
    """Give what makes a value of the annotated type from a valid JSON body; None for no model.

    Args:
        anything: also for a type that is no model, because the author asked with `Body()`.

    The decoder raises `UnprocessableEntity`, whose `errors` say where, for one that does not fit.
    """
    if msgspec is not None and _is_struct(annotation):
        return _msgspec_decoder(annotation)
    if (anything or _is_pydantic(annotation)) and (pydantic := _pydantic()) is not None:
        return _pydantic_decoder(annotation, pydantic)
    if msgspec is not None and (anything or _is_record(annotation)):
        return _msgspec_decoder(annotation)
    if _is_record(annotation):
        return lambda _, document: _dataclass_value(annotation, document, ["body"])
    return (lambda _, document: document) if anything else None


def _pydantic() -> Any:
    """The package, imported when a first model asks for it: it costs 150 ms; None without it."""
    try:
        return importlib.import_module("pydantic")
    except ImportError:
        return None


def _item(annotation: Any) -> Any:
    """The item type of `list[X]`, or the type itself."""
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is list else annotation


def _is_struct(annotation: Any) -> bool:
    kind = _item(annotation)
    return msgspec is not None and isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _is_record(annotation: Any) -> bool:
    kind = _item(annotation)
    return isinstance(kind, type) and (
        dataclasses.is_dataclass(cast("Any", kind)) or is_typeddict(cast("Any", kind))
    )


def _is_pydantic(annotation: Any) -> bool:
    kinds = typing.get_args(annotation) if _is_union(annotation) else (annotation,)
    return all(_is_record(kind) or hasattr(_item(kind), "model_validate_json") for kind in kinds)


def _is_union(annotation: Any) -> bool:
    return typing.get_origin(annotation) in (typing.Union, types.UnionType)


def _msgspec_decoder(annotation: Any) -> Decode:
    assert msgspec is not None  # noqa: S101 - the caller has looked
    decode = msgspec.json.Decoder(annotation).decode
    invalid = msgspec.ValidationError

    def run(body: bytes, document: Any) -> Any:
        try:
            return decode(body.removeprefix(BOM))
        except invalid as error:
            message, _, where = str(error).partition(" - at `$")
            raise _invalid(
                [{"loc": _steps(where), "msg": message, "type": "value_error"}]
            ) from None

    return run


def _steps(path: str) -> list[str | int]:
    """msgspec's `.items[0].name` as steps; `[...]` is any key or index."""
    found = re.findall(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]", path)
    steps: list[str | int] = ["body"]
    for name, index in found:
        steps.append(name or (int(index) if index.isdigit() else index))
    return steps


def _pydantic_decoder(annotation: Any, pydantic: Any) -> Decode:
    validate = pydantic.TypeAdapter(annotation).validate_json
    invalid = pydantic.ValidationError

    def run(body: bytes, document: Any) -> Any:
        try:
            return validate(body.removeprefix(BOM))
        except invalid as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            entries = [
                {"loc": ["body", *item["loc"]], "msg": item["msg"], "type": item["type"]}
                for item in found
            ]
            raise _invalid(entries) from None

    return run


def _invalid(errors: list[dict[str, Any]]) -> UnprocessableEntity:
    return UnprocessableEntity("The body is not valid; `errors` says where", errors=errors)


def _dataclass_value(annotation: Any, value: Any, loc: list[str | int]) -> Any:
    errors: list[dict[str, Any]] = []
    made = _value(annotation, value, loc, errors)
    if errors:
        raise _invalid(errors)
    return made


def _value(annotation: Any, value: Any, loc: list[str | int], errors: list[dict[str, Any]]) -> Any:
    """Check a parsed value against an annotation; records are made, everything else kept."""
    origin = typing.get_origin(annotation)
    if annotation is Any:
        return value
    if _is_union(annotation):
        return _union(annotation, value, loc, errors)
    if origin is list and isinstance(value, list):
        kind = typing.get_args(annotation)[0]
        items = cast("list[Any]", value)
        return [_value(kind, item, [*loc, index], errors) for index, item in enumerate(items)]
    if origin is dict and isinstance(value, dict):
        kind = typing.get_args(annotation)[1]
        members = cast("dict[str, Any]", value)
        return {key: _value(kind, item, [*loc, key], errors) for key, item in members.items()}
    if dataclasses.is_dataclass(annotation) or is_typeddict(annotation):
        return _record(annotation, value, loc, errors)
    kind: Any = origin or annotation
    if kind is float and type(value) is int:
        return float(value)
    # A bool is an int to Python and not to JSON.
    fits = isinstance(kind, type) and isinstance(value, cast("type", kind))
    if fits and (kind is bool or not isinstance(value, bool)):
        return value
    errors.append({"loc": loc, "msg": f"should be {shown(kind)}", "type": "type_error"})
    return None


def _union(annotation: Any, value: Any, loc: list[str | int], errors: list[dict[str, Any]]) -> Any:
    for option in typing.get_args(annotation):
        attempt: list[dict[str, Any]] = []
        made = _value(option, value, loc, attempt)
        if not attempt:
            return made
    errors.append({"loc": loc, "msg": f"should be {annotation}", "type": "type_error"})
    return None


def _record(annotation: Any, value: Any, loc: list[str | int], errors: list[dict[str, Any]]) -> Any:
    if not isinstance(value, dict):
        errors.append({"loc": loc, "msg": "should be an object", "type": "type_error"})
        return None
    given = cast("dict[str, Any]", value)
    hints = typing.get_type_hints(annotation)
    required = _required(annotation)
    unknown, missing = given.keys() - hints.keys(), required - given.keys()
    errors += [entry([*loc, name], "is not known here", "extra") for name in sorted(unknown)]
    errors += [entry([*loc, name], "is required", "missing") for name in sorted(missing)]
    members = {
        name: _value(hints[name], item, [*loc, name], errors)
        for name, item in given.items()
        if name in hints
    }
    return None if errors else annotation(**members)


def _required(annotation: Any) -> frozenset[str]:
    if is_typeddict(annotation):
        return annotation.__required_keys__
    missing = dataclasses.MISSING
    return frozenset(
        field.name
        for field in dataclasses.fields(annotation)
        if field.init and field.default is missing and field.default_factory is missing
    )


def text_converter(annotation: Any) -> Callable[[str], Any] | None:
    """Give a converter of one text for a type that only pydantic knows; None without pydantic."""
    pydantic = _pydantic()
    if pydantic is None:
        return None
    try:
        validate = pydantic.TypeAdapter(annotation).validate_strings
    except pydantic.PydanticUserError:
        return None
    invalid = pydantic.ValidationError

    def convert(text: str) -> Any:
        try:
            return validate(text)
        except invalid as error:
            raise ValueError(error.errors(include_url=False)[0]["msg"].lower()) from None

    return convert


def is_json(content_type: str) -> bool:
    """Whether a body model takes this media type: JSON, `+json`, or none said."""
    return content_type in ("", "application/json") or content_type.endswith("+json")
