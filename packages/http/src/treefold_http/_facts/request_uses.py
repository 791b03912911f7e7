"""What a handler that takes the request does with it, of its source.

    async def handler(request): return {"status": "ok"}          nothing
    async def handler(request): logout(request)                  nothing that a client sends for it
    async def handler(request): request.path_params["id"]        what its path says
    async def handler(request): request.headers["X-Tenant"]      unknown inputs

A source that is not known, and a request that is handed to another function, count as unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from types import FunctionType

from treefold_http._description.source_reader import resolve_value
from treefold_http._injection.contract import Argument
from treefold_http._modules.function_sources import (
    FunctionNode,
    FunctionSources,
    unwrap_function,
)
from treefold_http._wire.aliases import AnyCallable
from treefold_http.auth import login, logout

_KNOWN_MEMBERS = ("method", "path_params")
_KNOWN_FUNCTIONS = (login, logout)
_REFLECTION = ("locals", "vars", "eval", "exec")


def reads_unknown_inputs(handler: AnyCallable, arguments: Sequence[Argument] | None) -> bool:
    """Return True if a handler may read inputs from its request that its signature does not say.

    Args:
        arguments: of its call; None for a handler that takes the request alone.
    """
    if arguments is not None and all(each.source != "connection" for each in arguments):
        return False
    function = unwrap_function(handler)
    node = None if function is None else FunctionSources().find_function(function)
    if function is None or node is None:
        return True
    names = {*_list_request_names(node, arguments), *_REFLECTION}
    body = node.body if isinstance(node.body, list) else [node.body]
    nodes = [each for part in body for each in ast.walk(part)]
    known = {id(each) for each in _iter_known_uses(nodes, function)}
    return any(
        isinstance(each, ast.Name) and each.id in names and id(each) not in known for each in nodes
    )


def _list_request_names(node: FunctionNode, arguments: Sequence[Argument] | None) -> list[str]:
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    if arguments is None:
        return [*positional, *(each.arg for each in node.args.kwonlyargs)]
    return [
        argument.name or positional[place]
        for place, argument in enumerate(arguments)
        if argument.source == "connection"
    ]


def _iter_known_uses(nodes: Iterable[ast.AST], function: FunctionType) -> Iterator[ast.expr]:
    """Yield the names of a request whose use says nothing beyond the signature."""
    for each in nodes:
        if isinstance(each, ast.Attribute) and each.attr in _KNOWN_MEMBERS:
            yield each.value
        elif isinstance(each, ast.Call) and resolve_value(each.func, function) in _KNOWN_FUNCTIONS:
            yield from each.args[:1]
