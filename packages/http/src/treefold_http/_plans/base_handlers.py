"""The handler of a base version as another handler calls it: how its answer becomes a value.

`build_base_handler` refuses what cannot be converted, at boot: a socket, a stream, a file, a type
that no answer can be read into. `adopt_base_options` gives the options of the base to the module of
the new handler: its credentials, limits and errors are those of the new route too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from treefold_http._chains.cache_place import is_cache_entry
from treefold_http._chains.middleware_chain import WEBSOCKET, unwrap_middleware_entry
from treefold_http._chains.subtrees import Under
from treefold_http._headers.media_types import is_json
from treefold_http._json.json import dumps, loads
from treefold_http._plans.handlers import CalledHandler, HandlerModule
from treefold_http._plans.plans import find_declared_outputs
from treefold_http._responses.coercion import to_unshared_response
from treefold_http._responses.files import FileResponse
from treefold_http._responses.lines import find_declared_item_type
from treefold_http._responses.response import Response
from treefold_http._responses.return_types import read_return_annotation
from treefold_http._responses.streams import StreamingResponse
from treefold_http._types import tree
from treefold_http._types.decode import build_model_decoder
from treefold_http._types.outputs import Output
from treefold_http._types.parameters import InjectionError, format_annotation, list_parameters
from treefold_http._types.read import parse_annotation
from treefold_http._types.serialize import SerializationError, build_serializer
from treefold_http._wire.errors import BadRequest, UnprocessableEntity
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._extensions.members import ResultForm
    from treefold_http._plans.runtime import ProjectRuntime

_SENT_LATER = (StreamingResponse, FileResponse)
"""Responses whose body is not known when they are made."""


def build_base_handler(
    app: ProjectRuntime,
    route: Route,
    base: Route,
    module: HandlerModule,
    content: Any,
    given: Collection[str],
    guards: Sequence[Any],
    *,
    is_named: bool,
) -> CalledHandler:
    """Return the handler of a base as the handler of a route calls it.

    Args:
        route: the route whose handler calls it.
        base: the same place and method of the base version.
        module: the handler module of the base.
        content: the type that its answers are read into.
        given: names that every call gives.
        guards: the result of `select_lost_guards`.
        is_named: True if the handler names the version.

    Raises:
        InjectionError: for a handler or a type that cannot be converted.
    """
    _refuse_handler_without_body(base, module)
    parameters = list_parameters(module.handler)
    names = {p.name for p in parameters if p.kind is not inspect.Parameter.POSITIONAL_ONLY}
    form, outputs = find_declared_outputs(app, base, module)
    return CalledHandler(
        route=base,
        handler=module.handler,
        bases=module.bases,
        module=module,
        is_named=is_named,
        path_names=dict(zip(base.parameters, route.parameters, strict=True)),
        names=frozenset(names),
        given=frozenset(names.intersection(given)),
        guards=guards,
        outputs=outputs,
        respond=_build_responder(base, module, form, outputs),
        read=_build_content_reader(content, f"{base.method} {base.template}"),
    )


def select_lost_guards(route: Route, base: Route, entries: Sequence[Any]) -> list[Any]:
    """Return the entries of the project that cover the route of a base, and not another route.

    The handler of the base relies on them: they run around the one that calls it.
    """
    return [
        unwrap_middleware_entry(each)
        for each in entries
        if isinstance(each, Under) and each.covers_route(base) and not each.covers_route(route)
    ]


def adopt_base_options(module: HandlerModule, bases: Sequence[CalledHandler]) -> HandlerModule:
    """Return a handler module with what it takes over from the modules of the bases that it calls.

    Their middleware runs around it, except a cache: it would keep the answers of the base. What the
    module says itself counts before them.
    """
    for base in bases:
        former = base.module
        # the prefix of an `under` is that of the base
        outer = [*base.guards, *map(unwrap_middleware_entry, former.middlewares)]
        known = {*map(id, module.middlewares)}
        added = [each for each in outer if id(each) not in known and not is_cache_entry(each)]
        passed = {s: said for s, said in (former.responses or {}).items() if str(s)[:1] in "345"}
        module = replace(
            module,
            status_code=module.status_code or former.status_code,
            middlewares=[*added, *module.middlewares],
            max_body=former.max_body if module.max_body is None else module.max_body,
            timeout=former.timeout if module.timeout is None else module.timeout,
            log_payload=module.log_payload and former.log_payload,
            responses={**passed, **(module.responses or {})} or None,
        )
    return module


def _refuse_handler_without_body(base: Route, module: HandlerModule) -> None:
    what = ""
    called = inspect.unwrap(module.handler)
    called = called if inspect.isroutine(called) else type(called).__call__
    if base.method == WEBSOCKET:
        what = "serves a socket"
    elif inspect.isasyncgenfunction(called) or inspect.isgeneratorfunction(called):
        what = "sends a stream"
    elif find_declared_item_type(module.handler, module.response_model) is not None:
        what = "sends lines"
    elif _is_sent_later(read_return_annotation(module.handler)):
        what = "sends a stream or a file"
    if what:
        raise InjectionError(
            f"Inherited needs an answer that is made at once, and {base.method} {base.template}"
            f" {what}; leave it to the version, or give it a handler of its own"
        )


def _is_sent_later(annotation: Any) -> bool:
    leaves = tree.iter_leaf_types(parse_annotation(annotation))
    kinds = (getattr(each, "kind", None) for each in leaves)
    return any(isinstance(kind, type) and issubclass(kind, _SENT_LATER) for kind in kinds)


def _build_responder(
    base: Route, module: HandlerModule, form: ResultForm | None, outputs: Sequence[Output]
) -> Callable[[Any, Any], Response]:
    status = module.status_code
    if not outputs or outputs[0].status is not None:
        return lambda connection, result: to_unshared_response(result, status)
    from treefold_http._responses.response_model import build_result_hold

    hold = build_result_hold(form, outputs, status, base.file)
    return lambda connection, result: to_unshared_response(hold(connection, result), status)


def _build_content_reader(content: Any, shown: str) -> Callable[[Response], Any]:
    """Return a function that reads the body of a response into a type."""
    node = parse_annotation(content)
    may_be_none = any(map(tree.is_none, tree.list_direct_union_options(node)))
    name = format_annotation(content)
    try:
        select = build_serializer(node)
        decoder = build_model_decoder(node, allow_any_type=True)
    except InjectionError as error:
        raise InjectionError(f"Inherited[{name}] must name a type of an answer: {error}") from error
    assert decoder is not None  # noqa: S101 - guaranteed by `allow_any_type`
    decode = decoder.decode

    def read_content(response: Response) -> Any:
        if isinstance(response, _SENT_LATER):
            raise TypeError(f"The answer of {shown} is a stream or a file, and no {name}")
        body = bytes(response.body)
        if not body and may_be_none:
            return None
        if not is_json(response.headers.get("content-type", "")):
            return _read_plain_body(body, node, shown)
        try:
            # what the type does not name is dropped first: its decoder may refuse it
            selected = dumps(select(loads(body)))
            return decode(selected, loads(selected))
        except (SerializationError, BadRequest, UnprocessableEntity) as error:
            raise TypeError(f"The answer of {shown} is no {name}: {error}") from None

    return read_content


def _read_plain_body(body: bytes, node: tree.TypeNode, shown: str) -> str | bytes:
    kinds = {getattr(each, "kind", None) for each in tree.iter_leaf_types(node)}
    if str in kinds:
        return body.decode()
    if bytes in kinds or isinstance(node, tree.AnyType):
        return body
    raise TypeError(
        f"The answer of {shown} is no JSON, and no {format_annotation(node.bare_annotation)}"
    )
