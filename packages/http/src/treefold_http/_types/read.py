"""Annotations to the type tree: the only module that calls `get_origin` and `get_args`.

`parse_annotation` takes any annotation and never fails: what it does not know becomes a
`ForeignType`. The members of a record are read when they are asked for, with the types of a generic
record filled in.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import importlib
import inspect
import types
import typing
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast, get_args, get_origin

from treefold_http._types import tree
from treefold_http._types.changes import Changes, build_partial_class
from treefold_http._types.constraints import MSGSPEC, PYDANTIC, find_constraint_package
from treefold_http._types.parameters import (
    EMPTY,
    InjectionError,
    find_module_globals,
    format_annotation,
    format_callable,
)
from treefold_http._types.scalars import SCALARS
from treefold_http._wire.aliases import AnyCallable

_LISTS = (
    *(list, set, frozenset, tuple, collections.abc.Sequence, collections.abc.Set),
    *(collections.abc.Iterable, collections.abc.Collection),
)
_TABLES = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
_QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final", "ClassVar")
_SCALARS = {kind: tree.Scalar(annotation=kind, kind=kind) for kind in SCALARS}
ANY = tree.AnyType(annotation=EMPTY)


def parse_annotation(annotation: Any) -> tree.TypeNode:
    """Return the type that an annotation says."""
    if isinstance(annotation, type):
        if (known := _SCALARS.get(annotation)) is not None:
            return known
    elif annotation is None:
        return _SCALARS[type(None)]
    if annotation is Any or annotation in (object, EMPTY):
        return tree.AnyType(annotation=annotation)
    if is_alias(annotation):
        # later, since `type Tree = list[Tree]` would be read for ever
        return tree.TypeStatement(
            annotation=annotation, read=lambda: parse_annotation(resolve_alias(annotation))
        )
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is not None:
        return _read_special_form(annotation, origin, arguments)
    if isinstance(annotation, type):
        return _read_class(annotation, annotation, ())
    if isinstance(annotation, TypeVar):
        bound = annotation.__bound__
        return tree.AnyType(annotation=annotation) if bound is None else parse_annotation(bound)
    if isinstance(annotation, typing.NewType):
        return replace(parse_annotation(annotation.__supertype__), annotation=annotation)
    return tree.ForeignType(annotation=annotation, kind=annotation)


def _read_special_form(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> tree.TypeNode:
    if origin is Annotated:
        inner = parse_annotation(arguments[0])
        # not of `arguments[0]`, which may be `Required[int]`: decoders do not know it outside a
        # TypedDict
        whole = Annotated[inner.annotation, *arguments[1:]]
        return replace(inner, annotation=whole, markers=(*inner.markers, *arguments[1:]))
    if origin is Literal:
        return tree.Choice(annotation=annotation, kind=None, members=arguments)
    # by name, since those of typing and of typing_extensions may be different objects
    if str(origin).rpartition(".")[2] in _QUALIFIERS:
        return parse_annotation(arguments[0])
    # before Python 3.14 `int | str` and `Union[int, str]` have different origins
    if origin in (typing.Union, types.UnionType):
        options = tuple(map(parse_annotation, arguments))
        return tree.UnionType(annotation=annotation, options=options)
    return _read_class(annotation, origin, arguments)


def _read_class(annotation: Any, kind: type, arguments: tuple[Any, ...]) -> tree.TypeNode:
    """Read a class, with the types in its brackets."""
    is_bare = annotation in (tuple, typing.Tuple)  # noqa: UP006 - the two are not equal
    # `tuple[()]` has no arguments either, and is the empty tuple
    if kind is tuple and arguments[-1:] != (Ellipsis,) and not is_bare:
        return tree.TupleType(annotation=annotation, items=tuple(map(parse_annotation, arguments)))
    if kind is Changes:
        inner = tuple(map(parse_annotation, arguments))
        return tree.PartialRecord(
            annotation=annotation,
            read=lambda: parse_annotation(build_partial_class(annotation, inner)),
        )
    if kind in _LISTS:
        item = parse_annotation(arguments[0]) if arguments else ANY
        return tree.ListType(annotation=annotation, kind=kind, item=item)
    if kind in _TABLES:
        key, value = map(parse_annotation, arguments) if arguments else (ANY, ANY)
        return tree.Table(annotation=annotation, kind=kind, key=key, value=value)
    is_class = isinstance(cast("Any", kind), type)
    if is_class and issubclass(kind, enum.Enum):
        return tree.Choice(annotation=annotation, kind=kind, members=tuple(kind))
    if is_class and (family := _classify_record_class(kind)) is not None:
        return tree.Record(
            annotation=annotation,
            kind=kind,
            arguments=arguments,
            family=family,
            reader=_find_required_package(kind, family),
            fills_base=_has_parametrized_base(kind),
            read=partial(_read_members, annotation, kind, arguments),
        )
    return tree.ForeignType(
        annotation=annotation, kind=kind, arguments=tuple(map(parse_annotation, arguments))
    )


def read_named_tuple_items(kind: Any) -> list[tree.TypeNode]:
    """Return the types of the items of a named tuple."""
    hints = _resolve_hints(kind)
    return [parse_annotation(hints.get(name, EMPTY)) for name in kind._fields]


def _classify_record_class(kind: Any) -> tree.Family | None:
    if hasattr(kind, "__struct_config__"):
        return "struct"
    if hasattr(kind, "__pydantic_validator__"):
        return "model"
    if is_typed_dict(kind):
        return "typed_dict"
    return "dataclass" if dataclasses.is_dataclass(kind) else None


def _find_required_package(kind: Any, family: tree.Family) -> str:
    """The package that alone evaluates all that a class says."""
    if family == "struct":
        return MSGSPEC
    fields: Mapping[str, Any] = getattr(kind, "__dataclass_fields__", {})
    configured = family == "model" or hasattr(kind, "__pydantic_config__")
    # `size: int = Field(gt=0)` in a dataclass of the standard library is a default to all others
    if configured or any(find_constraint_package(f.default) for f in fields.values()):
        return PYDANTIC
    return ""


def is_typed_dict(kind: Any) -> bool:
    """Return True for a TypedDict, also one of typing_extensions."""
    # Not `typing.is_typeddict`, which does not recognize those of typing_extensions.
    given: Any = kind
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(given, "__total__")


def _read_members(
    annotation: Any, kind: Any, arguments: tuple[Any, ...]
) -> tuple[tree.Member, ...]:
    if hasattr(kind, "__struct_config__"):
        return tuple(_read_struct_members(annotation))
    if hasattr(kind, "__pydantic_validator__"):
        return tuple(_read_pydantic_members(kind))
    parameters = getattr(kind, "__parameters__", ())
    bound = _bind_type_variables(kind, dict(zip(parameters, arguments, strict=False)))
    hints = {name: _fill_type_variables(hint, bound) for name, hint in _resolve_hints(kind).items()}
    make = _read_typed_dict_members if is_typed_dict(kind) else _read_dataclass_members
    return tuple(make(kind, hints))


def _read_struct_members(annotation: Any) -> Iterator[tree.Member]:
    msgspec = importlib.import_module("msgspec")  # installed, since there is a struct
    for field in msgspec.structs.fields(annotation):
        given, made = field.default, field.default_factory
        yield tree.Member(
            name=field.name,
            type=parse_annotation(field.type),
            read_as=field.encode_name,
            written_as=field.encode_name,
            required=field.required,
            default=EMPTY if given is msgspec.NODEFAULT else given,
            factory=None if made is msgspec.NODEFAULT else made,
        )


def _read_pydantic_members(kind: Any) -> Iterator[tree.Member]:
    # dataclasses of pydantic have only the second
    fields = getattr(kind, "model_fields", None) or kind.__pydantic_fields__
    for name, field in fields.items():
        alias = field.validation_alias or field.alias or name
        markers = tuple(field.metadata)
        if isinstance(field.discriminator, str):
            make_marker: Any = importlib.import_module("pydantic").Discriminator
            markers = *markers, make_marker(field.discriminator)
        has_default = not field.is_required() and field.default_factory is None
        yield tree.Member(
            name=name,
            type=parse_annotation(
                Annotated[field.annotation, *markers] if markers else field.annotation
            ),
            read_as=alias if isinstance(alias, str) else None,
            written_as=field.serialization_alias or name,
            required=field.is_required(),
            default=field.default if has_default else EMPTY,
            factory=field.default_factory,
            is_output=not getattr(field, "exclude", None),
        )


def _read_typed_dict_members(kind: Any, hints: Mapping[str, Any]) -> Iterator[tree.Member]:
    # `__required_keys__` ignores `Required` and `NotRequired` in annotations that are text.
    known = {"Required": True, "NotRequired": False}
    for name, hint in hints.items():
        mark = str(get_origin(split_annotated(hint)[0])).rpartition(".")[2]
        required = known.get(mark, name in kind.__required_keys__)
        type_ = parse_annotation(hint)
        yield tree.Member(name=name, type=type_, read_as=name, written_as=name, required=required)


def _read_dataclass_members(kind: Any, hints: Mapping[str, Any]) -> Iterator[tree.Member]:
    fields: Mapping[str, dataclasses.Field[Any]] = kind.__dataclass_fields__
    for name, field in fields.items():
        hint = hints[name]
        if ClassVar in (hint, get_origin(hint)):
            continue
        init_only = isinstance(hint, dataclasses.InitVar)
        made: Any = field.default_factory
        yield tree.Member(
            name=name,
            type=parse_annotation(cast("Any", hint).type if init_only else hint),
            read_as=name,
            written_as=name,
            required=field.default is made is MISSING,
            default=EMPTY if field.default is MISSING else field.default,
            factory=None if made is MISSING else made,
            is_input=field.init and not field.metadata.get("read_only"),
            is_output=not init_only,
        )


def _has_parametrized_base(kind: Any) -> bool:
    bases = [get_origin(base) for base in getattr(kind, "__orig_bases__", ())]
    return any(base not in (None, typing.Generic) for base in bases)


def _resolve_hints(kind: Any) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(kind, include_extras=True)
    except Exception as error:
        raise InjectionError(
            f"The annotations of {format_annotation(kind)} cannot be resolved: {error};"
            " import the names that they use"
        ) from error


def _bind_type_variables(kind: Any, given: Mapping[Any, Any]) -> dict[Any, Any]:
    """The types bound to the type variables of a record and of its generic bases."""
    found = dict(given)
    for base in getattr(kind, "__orig_bases__", ()):
        origin = get_origin(base)
        if origin is not None and origin is not typing.Generic:
            arguments = [_fill_type_variables(each, found) for each in get_args(base)]
            parameters = getattr(origin, "__parameters__", ())
            found |= _bind_type_variables(origin, dict(zip(parameters, arguments, strict=False)))
    return found


def _fill_type_variables(annotation: Any, bound: Mapping[Any, Any]) -> Any:
    """Replace type variables in an annotation, at any depth, by the types bound to them."""
    if isinstance(annotation, TypeVar):
        return bound.get(annotation, annotation)
    # it has no `__parameters__`, and would hide a type variable
    if isinstance(annotation, dataclasses.InitVar):
        return dataclasses.InitVar(_fill_type_variables(cast("Any", annotation).type, bound))
    parameters = getattr(annotation, "__parameters__", ()) if bound else ()
    # a generic class without brackets has parameters too, and means itself
    if not parameters or isinstance(annotation, type):
        return annotation
    return annotation[tuple(bound.get(each, each) for each in parameters)]


def resolve_annotation(parameter: inspect.Parameter, function: AnyCallable) -> Any:
    """Resolve the annotation of one parameter; unused annotations may have unresolvable names.

    Raises:
        InjectionError: when a name in it is unknown.
    """
    if _needs_no_resolution(parameter.annotation):
        return parameter.annotation
    # a class with this annotation alone: of a function `get_type_hints` resolves all of them
    holder = type("holder", (), {"__annotations__": {parameter.name: parameter.annotation}})
    try:
        hints = typing.get_type_hints(holder, find_module_globals(function), include_extras=True)
        return replace_aliases(hints[parameter.name])
    except Exception as error:
        raise InjectionError(
            f"The annotation {parameter.annotation!r} of {parameter.name!r} in"
            f" {format_callable(function)}"
            f" cannot be resolved: {error}; import the names that it uses"
        ) from error


def resolve_return_annotation(annotation: Any, function: AnyCallable) -> Any:
    """Resolve the return annotation of a function.

    Raises:
        InjectionError: as `resolve_annotation`.
    """
    kind = inspect.Parameter.KEYWORD_ONLY
    return resolve_annotation(inspect.Parameter("answer", kind, annotation=annotation), function)


def _needs_no_resolution(annotation: Any) -> bool:
    """Return True if an annotation needs no resolution: no text in it, and no None as a type.

    A shortcut for common annotations, because `typing.get_type_hints` takes 50 us for them.
    """
    if isinstance(annotation, type):
        return True
    if isinstance(annotation, (types.GenericAlias, types.UnionType)):
        return not is_alias(annotation) and all(map(_needs_no_resolution, annotation.__args__))
    return get_origin(annotation) is Annotated and _needs_no_resolution(annotation.__origin__)


def replace_aliases(annotation: Any, active_aliases: tuple[Any, ...] = ()) -> Any:
    """Replace names of `type` statements by their types, also in unions and lists.

    Args:
        active_aliases: the names that are being replaced already; a recursive name stays.
    """
    origin, arguments = get_origin(annotation), get_args(annotation)
    if is_alias(annotation):
        alias = origin or annotation
        if alias in active_aliases:
            return annotation
        return replace_aliases(resolve_alias(annotation), (*active_aliases, alias))
    if origin is Annotated:
        return Annotated[replace_aliases(arguments[0], active_aliases), *annotation.__metadata__]
    if origin is list and arguments:
        return list[replace_aliases(arguments[0], active_aliases)]
    if origin in (typing.Union, types.UnionType):
        options = tuple(replace_aliases(each, active_aliases) for each in arguments)
        return typing.Union[options]  # noqa: UP007 - made of a tuple
    return annotation


def is_alias(annotation: Any) -> bool:
    """Return True for the name of a `type` statement, also with arguments: `Page[Item]`."""
    alias = get_origin(annotation) or annotation
    return type(alias).__name__ == "TypeAliasType"  # of typing or typing_extensions


def resolve_alias(annotation: Any) -> Any:
    """Return the type that a `type` statement names, with arguments (`Page[Item]`) inserted."""
    alias = get_origin(annotation) or annotation
    values = dict(zip(alias.__type_params__, get_args(annotation), strict=False))
    return _fill_type_variables(alias.__value__, values)


def split_annotated(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the type and the metadata of an annotation; no metadata if it is not `Annotated`."""
    if get_origin(annotation) is Annotated:
        first, *markers = get_args(annotation)
        return first, tuple(markers)
    return annotation, ()


def build_type_name(annotation: Any) -> str:
    """Return the name of a type, with those of the types in its brackets: `Page_Item`."""
    arguments = get_args(annotation)
    if isinstance(annotation, type) and not arguments:
        return annotation.__name__
    named = get_origin(annotation) or (annotation if is_alias(annotation) else None)
    name = getattr(named, "__name__", "") or str(annotation)
    return "_".join([name, *map(build_type_name, arguments)])
