"""The facts of one route, of its description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from treefold_contract import Deprecation, RouteFacts, Segment, TypeNode
from treefold_http._description.routes import RouteDescription
from treefold_http._facts.access import (
    iter_limits,
    list_credentials,
    list_guards,
    select_scoped_entries,
)
from treefold_http._facts.answers import AnswerReader, iter_offers
from treefold_http._facts.inputs import list_bodies, list_inputs, read_path_types
from treefold_http._facts.named_types import NamedTypes
from treefold_http._facts.request_uses import reads_unknown_inputs
from treefold_http._injection.contract import Call
from treefold_http._injection.inherited import find_called_base
from treefold_http._plans.deprecation import Deprecation as OwnDeprecation
from treefold_http._plans.plans import WEBSOCKET
from treefold_router import Route, parameter_name, segment_of

NO_TYPES: Mapping[str, TypeNode] = MappingProxyType({})


def build_route_facts(
    described: RouteDescription, named: NamedTypes, project_middlewares: Sequence[Any]
) -> RouteFacts:
    """Return the facts of a route; references in them hold the keys of `named`."""
    module, is_socket = described.module, described.route.method == WEBSOCKET
    answers = AnswerReader(described, named)
    entries = select_scoped_entries(described, project_middlewares)
    found = [] if is_socket else answers.list_answers()
    return RouteFacts(
        described.route.method,
        build_path(described.route, read_path_types(described, named)),
        operation=module.operation_id or "",
        deprecation=build_deprecation_facts(described.deprecation) if module.deprecated else None,
        auth=tuple(list_credentials(described)),
        guards=tuple(list_guards(entries)),
        is_opaque=_reads_connection(described),
        inputs=tuple(list_inputs(described, named)),
        bodies=() if is_socket else tuple(list_bodies(described, named)),
        limits=tuple(iter_limits(described, entries)),
        answers=tuple(found),
        fields=tuple(answers.list_fields(found)),
        offers=tuple(iter_offers(described)),
        messages=tuple(answers.list_messages()) if is_socket else (),
    )


def build_deprecation_facts(found: OwnDeprecation | None) -> Deprecation | None:
    """Return the facts of a deprecation: its days, and the version or address to use instead."""
    return None if found is None else Deprecation(found.since, found.sunset, found.successor)


def build_path(route: Route, types: Mapping[str, TypeNode] = NO_TYPES) -> tuple[Segment, ...]:
    """Return the segments of a route, with the types of the parameters that are known."""
    names = iter(route.parameters)
    segments = [Segment(route.version)]
    for folder in route.file.split("/")[1:-1]:
        if parameter_name(folder) is None:
            segments.append(Segment(segment_of(folder)))
            continue
        name = next(names)
        segments.append(
            Segment(name, True, types[name]) if name in types else Segment(name, is_parameter=True)
        )
    return tuple(segments)


def _reads_connection(described: RouteDescription) -> bool:
    """Return True if the handler takes the request, and what it reads there is not known."""
    if described.route.method == WEBSOCKET:
        return False
    contract = described.contract
    if reads_unknown_inputs(
        described.handler_function, None if contract.is_opaque else contract.arguments
    ):
        return True
    # a base that the handler calls gets the same request
    calls = [step for step in contract.steps if isinstance(step, Call)]
    found = [(find_called_base(each.function), each.arguments[1:]) for each in calls]
    return any(base and reads_unknown_inputs(base.handler, rest) for base, rest in found)
