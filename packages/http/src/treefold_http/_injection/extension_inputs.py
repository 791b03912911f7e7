"""Parameters that an extension knows: one object, made of many names of the query.

    handler(shelf: Shelf), and an extension whose `parameters(Shelf)` is
    make(*, title: str | None = None, year__in: list[int] | None = None, limit: int = 50)

    query                        values in `bind_query`                  argument of the handler
    ?title=Ants&year__in=1,2     {"title": "Ants", "year__in": [1, 2]}   make(title="Ants", ...)
    ?year__in=1&year__in=2       the same list
    ?limit=x                     an error                                none: 422
    ?titel=Ants                  an error that names `title`             none: 422

The names are inputs of the contract, so the documents list them one by one. Unlike parameters of a
dependency they are always names of the query: a path, a provider or a connection of the same name
would answer for a filter without a word.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from treefold_http._injection.contract import Contract, Input
from treefold_http._injection.secured import read_middleware_security
from treefold_http._injection.sources import Binder, build_value_parser
from treefold_http._injection.text_readers import build_text_reader
from treefold_http._requests.connection import Connection
from treefold_http._types.parameters import InjectionError, format_callable, list_parameters
from treefold_http._types.read import ANY, parse_annotation, resolve_annotation
from treefold_http._types.validate import Errors, make_error_entry
from treefold_http._wire.aliases import AnyCallable
from treefold_http._wire.datastructures import MultiMapping

_MAX_UNKNOWN = 10
"""Unknown names that one answer lists: a request may have thousands."""
_MAX_COMPARED = 64
"""Characters of an unknown name whose nearest name is looked for, which takes quadratic time."""


def build_extension_input(function: AnyCallable, call_number: int) -> Input:
    """Return the input that reads all parameters of a function of an extension.

    Raises:
        InjectionError: for a parameter that no text can provide.
    """
    parameters = list_parameters(function)
    names = [_build_name(parameter, function, call_number) for parameter in parameters]
    by_name = {each.name: each for each in names}
    required = [each for each in names if each.is_required]
    others: set[str] = set()

    def bind_query(connection: Connection, errors: Errors) -> Mapping[str, object]:
        query = connection.query
        values: dict[str, object] = {}
        unknown: list[str] = []
        # by what was sent: a list has many names, of which a request uses few
        for name in query:
            if (each := by_name.get(name)) is not None:
                values[name] = _take_texts(each, query, errors)
            elif name not in others:
                unknown.append(name)
        if unknown:
            _refuse_unknown_names(unknown, others, errors)
        for each in required:
            if each.name not in values:
                each.binder.bind(None, errors)
        return values

    return Input(
        place="query",
        name=format_callable(function),
        type=ANY,
        members=tuple(names),
        call=call_number,
        # the resolver adds the names of all inputs, these among them
        binder=Binder(bind_query, others=others),
    )


def admit_credential_names(contract: Contract, entries: Sequence[Any]) -> None:
    """Add the credentials of a route to the names of the query that its inputs know.

    Args:
        entries: the middleware of the route.
    """
    inputs = [step for step in contract.steps if isinstance(step, Input) and step.members]
    if not inputs:
        return
    of_entries = (each for entry in entries for each in read_middleware_security(entry))
    schemes = [each.scheme for each in (*contract.security, *of_entries)]
    names = {str(scheme["name"]) for scheme in schemes if scheme.get("in") == "query"}
    for sent in inputs:
        if sent.place == "query" and sent.binder.others is not None:
            sent.binder.others.update(names)


def _build_name(parameter: inspect.Parameter, function: AnyCallable, call_number: int) -> Input:
    node = parse_annotation(resolve_annotation(parameter, function))
    if (reader := build_text_reader(node, allow_pydantic_types=False)) is None:
        raise InjectionError(
            f"Parameter {parameter.name!r} of {format_callable(function)} must be a scalar or a"
            " list of scalars: an extension reads it from the query"
        )
    return Input(
        place="query",
        name=parameter.name,
        type=node,
        default=parameter.default,
        many=reader.many,
        is_closed=True,
        call=call_number,
        # it takes the texts of its name, as those of a model
        binder=Binder(build_value_parser("query", parameter.name, reader, parameter.default)),
    )


def _take_texts(each: Input, query: MultiMapping[str], errors: Errors) -> object:
    texts, take = query.getlist(each.name), each.binder.bind
    if each.many:
        return take([part for text in texts for part in text.split(",")], errors)
    if len(texts) > 1:
        entry = make_error_entry(["query", each.name], "is given more than once", "repeated")
        errors.append(entry)
        return None
    return take(texts[0], errors)


def _refuse_unknown_names(unknown: Sequence[str], known: set[str], errors: Errors) -> None:
    for name in unknown[:_MAX_UNKNOWN]:
        words = f"is not known here{_suggest_nearest_name(name, known)}"
        errors.append(make_error_entry(["query", name], words, "extra"))


def _suggest_nearest_name(name: str, known: set[str]) -> str:
    import difflib  # of wrong requests only

    if len(name) > _MAX_COMPARED:
        return ""
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
