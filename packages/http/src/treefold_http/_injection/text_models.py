"""Models whose members are names of the query or of a form: `Annotated[Filters, Query()]`.

    class Filters(BaseModel):
        page: int = 1
        tags: list[str] = []

    query                   values in `bind_model`            argument of the handler
    ?page=2&tags=a&tags=b   {"page": 2, "tags": ["a", "b"]}   Filters(page=2, tags=["a", "b"])
    empty                   {}                                Filters(page=1, tags=[])
    ?page=x                 an error                          none: 422, page should be an integer

Each member is read like a parameter of its own, under its alias; the model is made of the values,
by pydantic for its own classes. The members are inputs of the contract, so the documents list them
one by one.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from treefold_http._injection.contract import Input
from treefold_http._injection.sources import Binder, Query, Source, TextReader, build_value_parser
from treefold_http._injection.text_readers import build_text_reader
from treefold_http._json.pydantic_json import build_base64_json_functions
from treefold_http._types import constraints, tree
from treefold_http._types.decode import convert_pydantic_error
from treefold_http._types.parameters import EMPTY, InjectionError, format_annotation
from treefold_http._types.read import parse_annotation
from treefold_http._types.validate import Errors, make_error_entry
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.datastructures import MultiMapping

_ABSENT: Any = object()
_Place: TypeAlias = Literal["query", "form"]
_Make = Callable[[JSONObject, Errors], Any]
"""From the values by alias to the model: `{"page": 2}` to `Filters(page=2)`."""
_Take = Callable[[Any, Errors], Any]
"""From the text of a member, or a list of texts, to its value: `"2"` to `2`."""


def build_model_input(
    parameter: inspect.Parameter, node: tree.TypeNode, source: Source, owner: str
) -> Input | None:
    """Return the input of a whole model; None for a type that is no model.

    Args:
        owner: the function with the parameter, for error messages.

    Raises:
        InjectionError: for a member that text cannot provide.
    """
    options = tree.list_options_without_none(node)
    record = options[0] if len(options) == 1 else None
    if not isinstance(record, tree.Record):
        return None
    where = f"Parameter {parameter.name!r} of {owner}"
    if source.alias is not None:
        raise InjectionError(
            f"{where} is a model, which {type(source).__name__}({source.alias!r}) cannot name;"
            " its members have names of their own"
        )
    place: _Place = "query" if isinstance(source, Query) else "form"
    model = _TextModel(record, place, parameter.default, where)
    return Input(
        place=place,
        name=parameter.name,
        type=node,
        default=parameter.default,
        members=tuple(model.list_inputs()),
        binder=model.make_binder(),
    )


@dataclass(slots=True)
class _TextMember:
    """One member: its names, its type, and the function that takes its texts."""

    member: tree.Member
    name: str
    reader: TextReader
    take: _Take


class _TextModel:
    """A model of the query or of a form.

    Attributes:
        extra: what becomes of names that are no members: `ignore`, `forbid` or `allow`.
        others: the names that inputs of the handler and its dependencies take from the same place.
            Empty here: `resolver` fills the set in place through `Binder.others`, as the inputs are
            known only when the last parameter is resolved. `?q=x` is thus no unknown name for
            `handler(filters: Annotated[Filters, Query()], q: str)`.
        make: makes the model, and appends its errors.
    """

    def __init__(
        self, node: tree.Record, place: Literal["query", "form"], default: Any, where: str
    ):
        self.node, self.default = node, default
        self.place: _Place = place
        members = (member for member in node.declared_members if member.is_input)
        self.members = [_build_member(member, node, place, where) for member in members]
        self.names = frozenset(member.name for member in self.members)
        self.extra = _read_extra_policy(node)
        self.others: set[str] = set()
        self.make = _build_model_maker(node, place)

    def list_inputs(self) -> Iterator[Input]:
        """Yield one input for each member; all are optional if the parameter has a default."""
        optional = self.default is not EMPTY
        for each in self.members:
            default = _find_documented_default(each.member, self.node)
            if optional and default is EMPTY:
                default = None
            yield Input(
                place=self.place,
                name=each.name,
                type=_describe_member_type(each.member, self.node),
                default=default,
                many=each.reader.many,
                is_closed=self.extra == "forbid",
                binder=Binder(each.take),
            )

    def make_binder(self) -> Binder:
        """Return the binder of the whole model."""

        def bind_query(connection: Any, errors: Errors) -> Any:
            return self.bind_model(connection.query, errors)

        async def bind_form(connection: Any, errors: Errors) -> Any:
            return self.bind_model(await connection.form(), errors)

        if self.place == "query":
            return Binder(bind_query, others=self.others)
        return Binder(bind_form, waits=True, body="form", others=self.others)

    def bind_model(self, texts: MultiMapping[str], errors: Errors) -> Any:
        """Return the model of the texts; the parameter's default if no member is among them."""
        if self.default is not EMPTY and self.names.isdisjoint(texts):
            return self.default
        before = len(errors)
        values: JSONObject = {}
        for each in self.members:
            many = each.reader.many
            value = each.take(texts.getlist(each.name) if many else texts.get(each.name), errors)
            # left out instead of None: the model applies its own default, which may be a factory
            if value is not _ABSENT:
                values[each.name] = value
        if self.extra != "ignore":
            self.bind_or_refuse_extra(texts, values, errors)
        return None if len(errors) > before else self.make(values, errors)

    def bind_or_refuse_extra(
        self, texts: MultiMapping[str], values: JSONObject, errors: Errors
    ) -> None:
        """Refuse unknown names, or add them to the values as text, as the model's policy says."""
        for name in dict.fromkeys(texts):
            # names of other parameters are not unknown: `filters: Filters, page: int`
            if name in self.names or name in self.others:
                continue
            if self.extra == "forbid":
                errors.append(make_error_entry([self.place, name], "is not known here", "extra"))
            else:
                given = texts.getlist(name)
                values[name] = given[0] if len(given) == 1 else given


def _build_member(member: tree.Member, node: tree.Record, place: str, where: str) -> _TextMember:
    shown_member = f"{format_annotation(node.kind)}.{member.name}"
    if member.read_as is None:
        message = f"{where} has the member {shown_member} with several aliases; use one alias"
        raise InjectionError(message)
    kind = member.type
    if _is_read_by_pydantic(node) and constraints.find_constraint_packages(kind):
        kind = parse_annotation(
            constraints.build_unconstrained_annotation(kind)
        )  # the model checks the constraints
    if (reader := build_text_reader(kind, allow_pydantic_types=True)) is None:
        raise InjectionError(
            f"{where} has the member {shown_member} of type"
            f" {format_annotation(kind.bare_annotation)}, which text cannot"
            " provide; use a scalar or a list of scalars"
        )
    default = EMPTY if member.required else _ABSENT
    take = build_value_parser(place, member.read_as, reader, default)
    return _TextMember(member, member.read_as, reader, take)


def _is_read_by_pydantic(node: tree.Record) -> bool:
    return node.family == "model" or node.reader == constraints.PYDANTIC


def _read_extra_policy(node: tree.Record) -> str:
    """The policy for names that are no members: `ignore`, `forbid` or `allow`."""
    if node.family == "struct":
        return "forbid" if node.kind.__struct_config__.forbid_unknown_fields else "ignore"
    if (config := getattr(node.kind, "model_config", None)) is None:
        config = getattr(node.kind, "__pydantic_config__", {})
    return config.get("extra") or "ignore"


def _build_model_maker(node: tree.Record, place: str) -> _Make:
    if _is_read_by_pydantic(node):
        return _build_pydantic_maker(node, place)
    names = {member.read_as: member.name for member in node.declared_members}

    def make_model(values: JSONObject, errors: Errors) -> Any:
        try:
            return node.kind(**{names[name]: value for name, value in values.items()})
        except ValueError as error:  # raised by __post_init__
            errors.append(make_error_entry([place], error))

    return make_model


def _build_pydantic_maker(node: tree.Record, place: str) -> _Make:
    pydantic = importlib.import_module("pydantic")  # installed, since there is a model
    adapter = pydantic.TypeAdapter(node.annotation)
    validate = build_base64_json_functions(adapter, refuse_infinite=True).validate_python
    invalid = pydantic.ValidationError

    def make_model(values: JSONObject, errors: Errors) -> Any:
        try:
            return validate(values)
        except invalid as error:
            found = error.errors(include_url=False, include_input=False)
            errors.extend(convert_pydantic_error(place, item) for item in found)

    return make_model


def _find_pydantic_field(member: tree.Member, node: tree.Record) -> Any:
    fields: Mapping[str, Any] = getattr(node.kind, "__pydantic_fields__", {})
    return fields.get(member.name)


def _find_documented_default(member: tree.Member, node: tree.Record) -> Any:
    """The default for documents: EMPTY for a required member, None for one that is unknown."""
    if member.required:
        return EMPTY
    if (known := _find_pydantic_field(member, node)) is not None:
        # a factory may give another value each time, which no document can show
        made = known.get_default(call_default_factory=False)
        return None if type(made).__name__ == "PydanticUndefinedType" else made
    return None if member.default is EMPTY else member.default


def _describe_member_type(member: tree.Member, node: tree.Record) -> tree.TypeNode:
    """The type with the description of the member's field."""
    known = _find_pydantic_field(member, node)
    if not (words := getattr(known, "description", None)):
        return member.type
    described = importlib.import_module("pydantic").Field(description=words)
    return parse_annotation(Annotated[member.type.annotation, described])
