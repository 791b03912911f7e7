"""`Changes[Model]`: a body that has some members of a model, and its reader.

    @dataclass
    class Tool:                      body of Changes[Tool]       changes
        name: str                    {}                          {}
        note: str | None = None      {"name": "Saw"}             {"name": "Saw"}
        price: float = 0.0           {"note": null}              {"note": None}
                                     {"name": null}              422: the type does not allow null
                                     {"nam": "Saw"}              422: the nearest name is 'name'

`build_partial_class` makes a class with the members of the model, none of which is required, so
that the decoder and the document of a body are those of any model. The default of a member is never
read: the names in the body tell which were sent.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from treefold_http._types import tree
from treefold_http._types.constraints import MSGSPEC
from treefold_http._types.parameters import EMPTY, InjectionError, format_annotation

T = TypeVar("T")
_SUGGESTED = 8
_NAME_LENGTH = 64


class Changes(Mapping[str, Any], Generic[T]):
    """The members that a body has, of those of a model: a read-only mapping of name to value.

    As the annotation of a parameter, `Changes[NewTool]` is a body whose members are all optional,
    each with the type and constraints that it has in `NewTool`. A member that was not sent is not
    in the mapping; null is None, and allowed where the type of the member allows it.
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Changes of {', '.join(self._values) or 'nothing'}>"  # values may be secrets

    def assignable_values(self) -> Mapping[str, Any]:
        """Return the values under names that the model allows; `Model.assign` calls it."""
        return dict(self._values)


def build_partial_class(annotation: Any, arguments: tuple[tree.TypeNode, ...]) -> type:
    """Return a class with the members of a model, none of them required.

    Args:
        annotation: the annotation `Changes[...]`, for messages.
        arguments: the types in its brackets.

    Raises:
        InjectionError: for a type that is no model, or whose rules concern all members at once.
    """
    record = arguments[0] if arguments else None
    shown = format_annotation(annotation)
    if not isinstance(record, tree.Record):
        raise InjectionError(
            f"Changes must name the model of the changes, got {shown}; write Changes[...] around a"
            " dataclass, a TypedDict, a Shape, or a model of pydantic or msgspec"
        )
    if rule := _find_rule_of_all_members(record):
        raise InjectionError(
            f"Changes[{record.kind.__name__}] cannot run {rule}, which needs all members, and a"
            " change has some of them; use a model without it, and check the changed object"
        )
    make = {"struct": _build_struct, "model": _build_pydantic_model}
    return make.get(record.family, _build_dataclass)(record, f"{record.kind.__name__}Changes")


def _find_rule_of_all_members(record: tree.Record) -> str:
    """Return the rule of a model that needs all of its members, "" without one."""
    kind: Any = record.kind
    if record.family == "struct":
        config = kind.__struct_config__
        if config.array_like or config.tag is not None:
            return "the tag or the array form of a struct"
    elif record.family == "model":
        rules = kind.__pydantic_decorators__
        names = [*rules.model_validators, *rules.root_validators]
        if names:
            return f"the validator {names[0]!r}"
        if not hasattr(kind, "model_fields") or kind.__pydantic_root_model__:
            return "the form of a root model or a dataclass of pydantic"
    elif record.reader:
        return "the settings of pydantic in a dataclass or TypedDict"
    return "'__post_init__'" if hasattr(kind, "__post_init__") else ""


def _list_members(record: tree.Record) -> list[tree.Member]:
    """The members that a change may have; a class may name them in `__changeable__`."""
    names: Iterable[str] | None = getattr(record.kind, "__changeable__", None)
    members = [member for member in record.declared_members if member.is_input]
    return [member for member in members if names is None or member.name in names]


def _make_absent() -> None:
    """Fill a member that was not sent; only the names in the body tell that."""


def _build_dataclass(record: tree.Record, name: str) -> type:
    made = [
        (
            member.name,
            Any if member.type.annotation is EMPTY else member.type.annotation,
            dataclasses.field(default_factory=_make_absent),
        )
        for member in _list_members(record)
    ]
    body = {"__module__": record.kind.__module__, "__is_partial__": True}
    return dataclasses.make_dataclass(name, made, namespace=body)


def _build_struct(record: tree.Record, name: str) -> type:
    msgspec = importlib.import_module(MSGSPEC)  # installed, since there is a struct
    members = _list_members(record)
    absent = msgspec.field(default_factory=_make_absent)
    return msgspec.defstruct(
        name,
        [(member.name, member.type.annotation, absent) for member in members],
        module=record.kind.__module__,
        rename={member.name: member.written_as for member in members},
        forbid_unknown_fields=True,
    )


def _build_pydantic_model(record: tree.Record, name: str) -> type:
    """A subclass, which keeps the validators of the members."""
    base: Any = record.kind
    if nameless := [member.name for member in _list_members(record) if member.read_as is None]:
        raise InjectionError(
            f"Changes[{base.__name__}] cannot read {nameless[0]!r}, which has several names in a"
            " body; give it one alias"
        )
    body = {"__module__": base.__module__, "__doc__": None, "model_config": {"extra": "forbid"}}
    made: Any = type(base)(name, (base,), body)
    for field_name, declared in base.model_fields.items():
        optional = copy.copy(declared)
        optional.default = importlib.import_module("pydantic_core").PydanticUndefined
        optional.default_factory, optional.validate_default = _make_absent, False
        made.model_fields[field_name] = optional
    made.model_rebuild(force=True)
    return made


class ChangesReader:
    """Reads the names that were sent, for the decoder of a body."""

    def __init__(self, record: tree.Record) -> None:
        config: Mapping[str, Any] = getattr(record.kind, "model_config", {})
        by_name = any(config.get(key) for key in ("populate_by_name", "validate_by_name"))
        self._attributes: dict[str, str] = {}
        for member in record.declared_members:
            for name in (member.read_as, member.name if by_name else None):
                if name is not None:
                    self._attributes[name] = member.name

    def list_unknown_names(self, document: Any) -> Iterator[tuple[str, str]]:
        """Yield each unknown name of a body with a message for the client."""
        if not isinstance(document, dict):
            return  # the decoder refuses it
        sent = cast("dict[str, Any]", document)
        unknown = [name for name in sent if name not in self._attributes]
        for name in unknown:
            near: list[str] = []
            # the search takes quadratic time, and the body is a stranger's
            if len(unknown) <= _SUGGESTED and len(name) <= _NAME_LENGTH:
                from difflib import get_close_matches  # for the message only

                near = get_close_matches(name, self._attributes, 1)
            yield name, f"is not known here; use {near[0]!r}" if near else "is not known here"

    def read_changes(self, document: Mapping[str, Any], value: Any) -> Changes[Any]:
        """Return the changes of a body that was decoded into the class without required members."""
        sent = dict.fromkeys(self._attributes[name] for name in document)
        return Changes({name: getattr(value, name) for name in sent})
