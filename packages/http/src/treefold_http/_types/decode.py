"""Body models: JSON bytes straight into the annotated type.

msgspec decodes its structs; pydantic validates the types that its `TypeAdapter` accepts; `validate`
checks records of the standard library if neither is installed, or if neither checks all of their
constraints. They decode only bodies that `loads` has accepted, because none refuses repeated names,
and not all refuse NaN or lone surrogates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from treefold_http._json.json import BOM, msgspec
from treefold_http._json.pydantic_json import build_base64_json_functions, from_base64
from treefold_http._types import constraints, tree
from treefold_http._types.changes import ChangesReader
from treefold_http._types.limits_missed import parse_msgspec_error, redact_pydantic_error
from treefold_http._types.member_names import QuickDecoder, build_quick_decoder
from treefold_http._types.parameters import InjectionError, format_annotation
from treefold_http._types.validate import Errors, build_json_check, make_error_entry
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.errors import BadRequest, build_unprocessable_error


class Decoder(NamedTuple):
    """Decodes bodies into an annotated type.

    Attributes:
        decode: takes the body and the result of `loads`; raises `UnprocessableEntity` for a body of
            another type, with the places in its `errors`.
        shares: True if the value may hold parts of the result of `loads`.
        quick: decodes most bodies of a model whose members are all required.
        package: decodes the bodies; empty for `validate`.
    """

    decode: Callable[[bytes, Any], Any]
    shares: bool = False
    quick: QuickDecoder | None = None
    package: str = ""


def build_model_decoder(node: tree.TypeNode, *, allow_any_type: bool = False) -> Decoder | None:
    """Return the decoder of a valid JSON body into a type; None for no model.

    A model is a record, a pydantic model or a struct, a list of one, or a union of these, also with
    None.

    Args:
        allow_any_type: also for a type that is not a model, because of an explicit `Body()`.

    Raises:
        InjectionError: for a type that needs a missing package, or a constraint that the decoder of
            the type would ignore.
    """
    if not allow_any_type and not is_body_model(node):
        return None
    if isinstance(node, tree.PartialRecord):
        return _build_changes_decoder(node)
    demands = _collect_decoder_requirements(node)
    if constraints.OWN in demands.places:
        return _build_own_decoder(node, demands)
    models = constraints.PYDANTIC in demands.readers
    structs = constraints.MSGSPEC in demands.readers
    if models or (
        not structs
        and constraints.MSGSPEC not in demands.places
        and not demands.has_parametrized_generic_base
    ):
        _refuse_foreign_constraints(demands.places, constraints.PYDANTIC)
        if (decoder := _try_pydantic_decoder(node, has_structs=structs)) is not None:
            return decoder
        if models:
            raise InjectionError(
                "Before Python 3.12 pydantic does not support TypedDict of typing, and this"
                " one needs pydantic; import TypedDict from typing_extensions"
            )
    if msgspec is not None and (structs or constraints.PYDANTIC not in demands.places):
        _refuse_foreign_constraints(demands.places, constraints.MSGSPEC)
        try:
            return _build_msgspec_decoder(node)
        except TypeError:  # a union of records, which msgspec cannot distinguish, or a foreign type
            if structs:
                raise
    return Decoder(_build_record_decoder(node), shares=True)


def is_checked_by_own_validator(node: tree.TypeNode) -> bool:
    """Return True if `validate` checks a body; only these checks refuse unknown members.

    Raises:
        InjectionError: as `build_model_decoder`.
    """
    if isinstance(node, tree.PartialRecord):
        node = node.target_type
    demands = _collect_decoder_requirements(node)
    families = {record.family for record in demands.records}
    if not families or not families <= {"dataclass", "typed_dict"}:
        return False
    others = demands.places.keys() - {constraints.PYDANTIC}
    others = others or demands.has_parametrized_generic_base
    only_pydantic = not others and families == {"dataclass"}
    if only_pydantic and constraints.import_pydantic_or_none() is not None:
        return False  # pydantic decodes it, and making its decoder would take a millisecond
    decoder = build_model_decoder(node, allow_any_type=True)
    return decoder is not None and decoder.shares


def find_decoding_package(node: tree.TypeNode) -> str:
    """Return the package that decodes a body into a type; empty for `validate`.

    Raises:
        InjectionError: as `build_model_decoder`.
    """
    if isinstance(node, tree.PartialRecord):
        node = node.target_type
    readers = _collect_decoder_requirements(node).readers
    if len(readers) == 1:
        return next(iter(readers))
    decoder = build_model_decoder(node, allow_any_type=True)
    assert decoder is not None  # noqa: S101 - guaranteed by `allow_any_type`
    return decoder.package


class _Demands(NamedTuple):
    """The requirements of the types inside a type on their decoder.

    Attributes:
        places: by package, the first place with a constraint of that package.
        readers: the packages that a type requires as its decoder.
        records: the records, models and structs among the types.
    """

    places: dict[str, str]
    readers: set[str]
    records: list[tree.Record]

    @property
    def has_parametrized_generic_base(self) -> bool:
        """True if pydantic would not read the types of a generic base."""
        own = ("dataclass", "typed_dict")
        return any(record.fills_base and record.family in own for record in self.records)


def _collect_decoder_requirements(node: tree.TypeNode) -> _Demands:
    found = _Demands({}, set(), [])
    for each, place in tree.walk_types(node):
        if isinstance(each, tree.PartialRecord):
            raise InjectionError(
                f"{format_annotation(each.bare_annotation)} must be the whole body, and stands in"
                f" {format_annotation(node.bare_annotation)}; annotate the parameter with it alone"
            )
        for marker in each.markers:
            family = constraints.find_constraint_package(marker)
            if family and not constraints.is_only_documentation(marker):
                found.places.setdefault(family, place)
            if getattr(marker, "validation_alias", None) is not None:
                found.readers.add(constraints.PYDANTIC)
        if isinstance(each, tree.Record):
            found.records.append(each)
            found.readers.update(filter(None, [each.reader]))
    return found


def _refuse_foreign_constraints(places_by_package: dict[str, str], decoder_package: str) -> None:
    for family, place in places_by_package.items():
        if family != decoder_package:
            raise InjectionError(
                f"The constraint on {place} is of {family}, but {decoder_package} reads the body"
                f" and would ignore it; use a constraint of {decoder_package}"
            )


def is_body_model(node: tree.TypeNode) -> bool:
    """Return True if a parameter of that type is read from the body without a marker."""
    kinds = list(tree.iter_leaf_types(node))
    models = (tree.Record, tree.PartialRecord)
    return bool(kinds) and all(isinstance(kind, models) for kind in kinds)


def _find_undecodable_types(info: Any, place: str, seen: set[int]) -> Iterator[str]:
    """Yield the types that msgspec can describe but not decode; visit recursive types once."""
    if id(info) in seen:
        return
    seen.add(id(info))
    if type(info).__name__ == "CustomType":
        yield f"{format_annotation(info.cls)} in {place}"
    for field in getattr(info, "fields", ()):
        inner = f"{format_annotation(info.cls)}.{field.name}"
        yield from _find_undecodable_types(field.type, inner, seen)
    parts = [getattr(info, name, None) for name in ("item_type", "key_type", "value_type", "type")]
    for part in (*parts, *getattr(info, "types", ()), *getattr(info, "item_types", ())):
        if part is not None:
            yield from _find_undecodable_types(part, place, seen)


def _build_msgspec_decoder(node: tree.TypeNode) -> Decoder:
    assert msgspec is not None  # noqa: S101 - the caller has looked
    described = msgspec.inspect.type_info(node.annotation)
    if foreign := next(_find_undecodable_types(described, "a body", set()), ""):
        raise InjectionError(
            f"msgspec cannot decode {foreign} and would reject every body; use a type that it"
            " supports, or make the model one of pydantic"
        )
    decode = msgspec.json.Decoder(node.annotation).decode
    invalid = msgspec.ValidationError

    def decode_with_msgspec(body: bytes, document: Any) -> Any:
        try:
            # a parser may ignore a byte order mark (RFC 8259, 8.1); this one does not
            return decode(body.removeprefix(BOM))
        except invalid as error:
            message, _, where = str(error).partition(" - at `$")
            message, context = parse_msgspec_error(message)
            made = {"loc": _parse_msgspec_path(where), "msg": message, "type": "value_error"}
            entry = made | {"ctx": context} if context else made
            raise build_unprocessable_error("body", [entry]) from None
        except RecursionError:
            raise _make_depth_error() from None

    quick = build_quick_decoder(node, decode)
    return Decoder(decode_with_msgspec, quick=quick, package=constraints.MSGSPEC)


def _parse_msgspec_path(path: str) -> list[str | int]:
    """msgspec's `.items[0].name` as steps; `[...]` is any key or index."""
    found = re.findall(r"\.([^.\[`]+)|\[(\d+|\.\.\.)\]", path)
    steps: list[str | int] = ["body"]
    for name, index in found:
        steps.append(name or (int(index) if index.isdigit() else index))
    return steps


def _try_pydantic_decoder(node: tree.TypeNode, *, has_structs: bool) -> Decoder | None:
    if (pydantic := constraints.import_pydantic_or_none()) is None:
        return None
    try:
        adapter = pydantic.TypeAdapter(node.annotation)
        validate = build_base64_json_functions(adapter, refuse_infinite=True).validate_json
    except pydantic.PydanticUserError as error:
        if error.code == "typed-dict-version":
            return None  # before Python 3.12 pydantic refuses a `typing.TypedDict`
        if has_structs and isinstance(error, pydantic.errors.PydanticSchemaGenerationError):
            message = "A body must consist of msgspec structs or of pydantic models, not of both"
            raise InjectionError(message) from error
        raise
    invalid = pydantic.ValidationError

    def decode_with_pydantic(body: bytes, document: Any) -> Any:
        try:
            return validate(body.removeprefix(BOM))
        except invalid as error:
            found = error.errors(include_url=False, include_input=False)
            first = found[0]  # without a place: only the parser of pydantic refuses the body
            if first["type"] == "json_invalid" and not first["loc"]:
                reason = first["msg"].removeprefix("Invalid JSON: ")
                raise BadRequest(f"The body is not valid JSON: {reason}") from None
            raise build_unprocessable_error(
                "body", [convert_pydantic_error("body", item) for item in found]
            ) from None

    quick = build_quick_decoder(node, validate)
    return Decoder(decode_with_pydantic, quick=quick, package=constraints.PYDANTIC)


def convert_pydantic_error(place: str, error: Mapping[str, Any]) -> JSONObject:
    """Return an error of pydantic as an entry of `errors`."""
    message, context = redact_pydantic_error(error)
    made = {"loc": [place, *error["loc"]], "msg": message, "type": error["type"]}
    return made | {"ctx": context} if context else made


def _build_record_decoder(node: tree.TypeNode) -> Callable[[bytes, Any], Any]:
    check = build_json_check(node)

    def validate_document(body: bytes, document: Any) -> Any:
        errors: Errors = []
        try:
            value = check(document, ["body"], errors)
        except RecursionError:
            raise _make_depth_error() from None
        if errors:
            raise build_unprocessable_error("body", errors)
        return value

    return validate_document


def _build_changes_decoder(node: tree.PartialRecord) -> Decoder:
    record = node.target_type
    assert isinstance(record, tree.Record)  # noqa: S101 - made by `build_partial_class`
    inner = build_model_decoder(record, allow_any_type=True)
    assert inner is not None  # noqa: S101 - guaranteed by `allow_any_type`
    if constraints.find_constraint_packages(node):
        raise InjectionError(
            f"A constraint cannot be on {format_annotation(node.bare_annotation)} itself; write it"
            " on a member of the model"
        )
    decode, reader = inner.decode, ChangesReader(record)

    def decode_changes(body: bytes, document: Any) -> Any:
        errors = [
            make_error_entry(["body", name], message, "extra")
            for name, message in reader.list_unknown_names(document)
        ]
        if errors:
            raise build_unprocessable_error("body", errors)
        return reader.read_changes(document, decode(body, document))

    return Decoder(decode_changes, shares=inner.shares, package=inner.package)


def _build_own_decoder(node: tree.TypeNode, demands: _Demands) -> Decoder:
    """The decoder of a type with constraints that check values themselves."""
    for record in demands.records:
        if record.reader or record.family not in ("dataclass", "typed_dict"):
            raise InjectionError(
                f"{record.kind.__name__} cannot be in one body with"
                f" {demands.places[constraints.OWN]}, whose class checks its values; make it a"
                " dataclass, a TypedDict or a Shape"
            )
    return Decoder(_build_record_decoder(node), shares=True)


def _make_depth_error() -> BadRequest:
    return BadRequest("The body is not valid JSON: it is nested too deeply")


def build_pydantic_text_converter(node: tree.TypeNode) -> Callable[[str], Any] | None:
    """Return a converter of one text for bytes, or for a type that only pydantic knows.

    None without pydantic, and for types that a single text cannot represent: lists, objects,
    records, Any.
    """
    if node.bare_annotation is bytes:
        return from_base64  # as in a body and in the document
    if (pydantic := constraints.import_pydantic_or_none()) is None:
        return None
    try:
        # without constraints, which are checked on the converted value, as for all other types
        adapter = pydantic.TypeAdapter(constraints.build_unconstrained_annotation(node))
        if not _is_scalar_schema(adapter.json_schema()):
            return None
    except pydantic.PydanticUserError:
        return None
    return constraints.wrap_pydantic_validator(adapter.validate_strings)


def _is_scalar_schema(schema: JSONObject) -> bool:
    """Return True if a schema allows only strings, numbers, booleans and null."""
    named = {f"#/$defs/{name}": each for name, each in schema.get("$defs", {}).items()}
    schema = named.get(schema.get("$ref", ""), schema)
    options = schema.get("anyOf") or schema.get("oneOf") or [schema]
    kinds = {named.get(o.get("$ref", ""), o).get("type") for o in options} - {"null"}
    return bool(kinds) and kinds <= {"string", "number", "integer", "boolean"}
