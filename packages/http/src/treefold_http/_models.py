"""Body models: JSON bytes straight into the annotated type (rulings, 'Handlers', 6).

msgspec decodes its structs; pydantic validates the types that its `TypeAdapter` accepts; `_records`
checks records of the standard library if neither is installed, or if neither checks all of their
constraints. They decode only bodies that `loads` has accepted, because none refuses repeated names,
and not all refuse NaN or lone surrogates.
"""

from __future__ import annotations

import importlib
import re
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from treefold_http._constraints import MSGSPEC, PYDANTIC
from treefold_http._errors import BadRequest, UnprocessableEntity
from treefold_http._json import BACKSLASH, BOM, msgspec
from treefold_http._member_constraints import constrained, is_pydantic, is_struct
from treefold_http._members import required_names
from treefold_http._parameters import InjectionError, options_of, shown
from treefold_http._records import is_record, is_typed_dict, record_check
from treefold_http._sources import Errors


class Decoder(NamedTuple):
    """Decodes bodies into an annotated type.

    Attributes:
        decode: takes the body and the result of `loads`; raises `UnprocessableEntity` for a body of
            another type, with the places in its `errors`.
        shares: True if the value may hold parts of the result of `loads`.
        quick: takes the body alone; returns None unless `loads` would accept the body for sure.
        names: the member names of a body that `quick` decoded.
    """

    decode: Callable[[bytes, Any], Any]
    shares: bool = False
    quick: Callable[[bytes], Any] | None = None
    names: frozenset[str] | None = None


def model_decoder(annotation: Any, *, anything: bool = False) -> Decoder | None:
    """Return the decoder of a valid JSON body into the annotated type; None for no model.

    A model is a record, a pydantic model or a struct, a list of one, or a union of these, also with
    None.

    Args:
        anything: also for a type that is no model, because of an explicit `Body()`.

    Raises:
        InjectionError: for a type that needs a missing package, or a constraint that the decoder of
            the type would ignore.
    """
    if not anything and not is_model(annotation):
        return None
    places, readers, _ = constrained(annotation)
    models, structs = PYDANTIC in readers, MSGSPEC in readers
    if models or (not structs and MSGSPEC not in places):
        _refuse_unchecked(places, PYDANTIC)
        decoder = _pydantic_decoder(annotation, mixed=structs)
        if decoder is not None:
            return decoder
        if models:
            raise InjectionError(
                "Before Python 3.12, pydantic reads no TypedDict of typing, and nothing else reads"
                " what is pydantic's in it; import TypedDict from typing_extensions"
            )
    if msgspec is not None and (structs or PYDANTIC not in places):
        _refuse_unchecked(places, MSGSPEC)
        try:
            return _msgspec_decoder(annotation)
        except TypeError:  # a union of records, which msgspec cannot distinguish, or a foreign type
            if structs:
                raise
    return Decoder(_record_decoder(annotation), shares=True)


def is_checked_here(annotation: Any) -> bool:
    """Return True if `_records` checks a body; only these checks refuse unknown members.

    Raises:
        InjectionError: as `model_decoder`.
    """
    places, _, kinds = constrained(annotation)
    if not kinds or not all(map(is_record, kinds)):
        return False
    if MSGSPEC not in places and not any(map(is_typed_dict, kinds)) and _pydantic() is not None:
        return False  # pydantic decodes it, and making its decoder would take a millisecond
    decoder = model_decoder(annotation, anything=True)
    return decoder is not None and decoder.shares


def _refuse_unchecked(places: dict[str, str], reader: str) -> None:
    for family, place in places.items():
        if family != reader:
            raise InjectionError(
                f"The constraint on {place} is of {family}, but {reader} reads it and would pass it"
                f" over; take the constraint from {reader}"
            )


def is_model(annotation: Any) -> bool:
    """Return True if a parameter of that type is read from the body without a marker."""
    kinds = list(_kinds(annotation))
    return bool(kinds) and all(
        is_record(kind) or is_struct(kind) or is_pydantic(kind) for kind in kinds
    )


def _pydantic() -> Any:
    """The package, imported for the first model as it takes 150 ms; None if it is missing."""
    try:
        return importlib.import_module("pydantic")
    except ImportError:
        return None


def _kinds(annotation: Any) -> Iterator[Any]:
    """The classes of a union and of the items of its lists, without None."""
    for option in options_of(annotation):
        origin = typing.get_origin(option)
        if origin in (list, typing.Annotated):
            yield from _kinds(typing.get_args(option)[0])
        elif isinstance(option, typing.NewType):
            yield from _kinds(option.__supertype__)
        elif option is not type(None):
            yield origin or option


def _unknown_to_msgspec(info: Any, place: str, seen: set[int]) -> Iterator[str]:
    """Yield the types that msgspec can describe but not decode; visit recursive types once."""
    if id(info) in seen:
        return
    seen.add(id(info))
    if type(info).__name__ == "CustomType":
        yield f"{shown(info.cls)}, which {place} asks for"
    for field in getattr(info, "fields", ()):
        yield from _unknown_to_msgspec(field.type, f"{shown(info.cls)}.{field.name}", seen)
    parts = [getattr(info, name, None) for name in ("item_type", "key_type", "value_type", "type")]
    for part in (*parts, *getattr(info, "types", ()), *getattr(info, "item_types", ())):
        if part is not None:
            yield from _unknown_to_msgspec(part, place, seen)


def _msgspec_decoder(annotation: Any) -> Decoder:
    assert msgspec is not None  # noqa: S101 - the caller has looked
    foreign = next(_unknown_to_msgspec(msgspec.inspect.type_info(annotation), "a body", set()), "")
    if foreign:
        raise InjectionError(
            f"msgspec knows no {foreign}: it would refuse every body; take a type that it knows, or"
            " make the model one of pydantic"
        )
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
        except RecursionError:
            raise _too_deep() from None

    return _with_quick(annotation, run, decode)


def _with_quick(
    annotation: Any, decode: Callable[[bytes, Any], Any], parse: Callable[[bytes], Any]
) -> Decoder:
    """Add the quick decoder to a model whose members are all required.

    Each member takes one colon. A valid body with exactly that many colons repeats no name and has
    no unknown member: `loads` could only refuse NaN and Infinity, which pydantic accepts.
    """
    names = required_names(annotation)
    if names is None:
        return Decoder(decode)
    members = len(names)

    def quick(body: bytes) -> Any:
        if body.count(b":") != members or BACKSLASH in body:
            return None
        if (_N in body and b"NaN" in body) or (_I in body and b"Infinity" in body):
            return None
        try:
            return parse(body)
        except (ValueError, RecursionError):
            return None  # `decode` raises with the reason

    return Decoder(decode, quick=quick, names=frozenset(names))


_N, _I = ord("N"), ord("I")


def _steps(path: str) -> list[str | int]:
    """msgspec's `.items[0].name` as steps; `[...]` is any key or index."""
    found = re.findall(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]", path)
    steps: list[str | int] = ["body"]
    for name, index in found:
        steps.append(name or (int(index) if index.isdigit() else index))
    return steps


def _pydantic_decoder(annotation: Any, *, mixed: bool) -> Decoder | None:
    pydantic = _pydantic()
    if pydantic is None:
        return None
    try:
        validate = pydantic.TypeAdapter(annotation).validate_json
    except pydantic.PydanticUserError as error:
        if error.code == "typed-dict-version":
            return None  # before Python 3.12 pydantic refuses a `typing.TypedDict`
        if mixed and isinstance(error, pydantic.errors.PydanticSchemaGenerationError):
            raise InjectionError(
                "msgspec reads structs and pydantic its models, and one of them reads a body; make"
                " all of a body structs, or models"
            ) from error
        raise
    invalid = pydantic.ValidationError

    def run(body: bytes, document: Any) -> Any:
        try:
            return validate(body.removeprefix(BOM))
        except invalid as error:
            found = error.errors(include_url=False, include_context=False, include_input=False)
            first = found[0]  # without a place: only the parser of pydantic refuses the body
            if first["type"] == "json_invalid" and not first["loc"]:
                reason = first["msg"].removeprefix("Invalid JSON: ")
                raise BadRequest(f"The body is not valid JSON: {reason}") from None
            entries = [
                {"loc": ["body", *item["loc"]], "msg": item["msg"], "type": item["type"]}
                for item in found
            ]
            raise _invalid(entries) from None

    return _with_quick(annotation, run, validate)


def _record_decoder(annotation: Any) -> Callable[[bytes, Any], Any]:
    check = record_check(annotation)

    def run(body: bytes, document: Any) -> Any:
        errors: Errors = []
        try:
            value = check(document, ["body"], errors)
        except RecursionError:
            raise _too_deep() from None
        if errors:
            raise _invalid(errors)
        return value

    return run


def _invalid(errors: Errors) -> UnprocessableEntity:
    return UnprocessableEntity("The body is not valid; `errors` says where", errors=errors)


def _too_deep() -> BadRequest:
    return BadRequest("The body is not valid JSON: it is nested too deeply")


def text_converter(annotation: Any) -> Callable[[str], Any] | None:
    """Return a converter of one text for a type that only pydantic knows; None without pydantic.

    None also for types that a single text cannot represent: lists, objects, records, Any.
    """
    pydantic = _pydantic()
    if pydantic is None:
        return None
    try:
        adapter = pydantic.TypeAdapter(annotation)
        if not _is_written_as_text(adapter.json_schema()):
            return None
    except pydantic.PydanticUserError:
        return None
    validate = adapter.validate_strings
    invalid = pydantic.ValidationError

    def convert(text: str) -> Any:
        try:
            return validate(text)
        except invalid as error:
            raise ValueError(error.errors(include_url=False)[0]["msg"].lower()) from None

    return convert


def _is_written_as_text(schema: dict[str, Any]) -> bool:
    """Return True if a schema allows only strings, numbers, booleans and null."""
    named = {f"#/$defs/{name}": each for name, each in schema.get("$defs", {}).items()}
    schema = named.get(schema.get("$ref", ""), schema)
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    kinds = {named.get(o.get("$ref", ""), o).get("type") for o in options} - {"null"}
    return bool(kinds) and kinds <= {"string", "number", "integer", "boolean"}


def is_json(content_type: str) -> bool:
    """Return True for the media types of body models: JSON, `+json`, or an empty type."""
    return content_type in ("", "application/json") or content_type.endswith("+json")
