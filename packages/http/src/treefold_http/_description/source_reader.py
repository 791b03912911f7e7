"""Read the source of a function: the errors that it raises, the form of body that it reads.

Files are parsed as they were when their modules were imported. Names are resolved in the globals
of the module; a status that is computed, or held in a variable, is not guessed. Functions defined
inside a function are not read: the handler may never call them.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from treefold_http._description.made_responses import find_made_response, read_media_type
from treefold_http._modules.function_sources import (
    FunctionNode,
    FunctionSources,
    unwrap_function,
)
from treefold_http._responses.events import EventStream
from treefold_http._responses.files import FileResponse
from treefold_http._responses.streams import StreamingResponse
from treefold_http._types.parameters import EMPTY
from treefold_http._wire.aliases import AnyCallable
from treefold_http._wire.errors import HTTPError


class FunctionFacts(NamedTuple):
    """Result of reading a function.

    Attributes:
        statuses: statuses of the errors that it raises.
        calls: methods of the connection that it uses, such as `json`.
        events: True if it creates an event stream.
        models: the types that messages are parsed into; EMPTY for any JSON.
        media_types: of each file and stream that it makes; None for one that is computed.
    """

    statuses: frozenset[int] = frozenset()
    calls: frozenset[str] = frozenset()
    events: bool = False
    models: tuple[Any, ...] = ()
    media_types: tuple[str | None, ...] = ()


_NOTHING = FunctionFacts()
_READERS = frozenset({"json", "form", "files", "parts", "body", "stream"}) | {
    f"{verb}_{kind}" for verb in ("receive", "iter", "send") for kind in ("text", "bytes", "json")
}
_CONSTRUCTORS = frozenset({"file", "stream"})
_MEANINGFUL = (HTTPError, EventStream, FileResponse, StreamingResponse)
_TYPED = ("receive_json", "iter_json")
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class SourceReader:
    """Reads functions, each once."""

    def __init__(self) -> None:
        self._readings: dict[FunctionType, FunctionFacts] = {}
        self._sources = FunctionSources()

    def __call__(self, function: AnyCallable) -> FunctionFacts:
        """Return the reading of a handler or a dependency; empty if its source is not known."""
        if (plain := unwrap_function(function)) is None:
            return _NOTHING
        if (known := self._readings.get(plain)) is None:
            # to look at the names of compiled code costs far less than to parse its file
            node = self._sources.find_function(plain) if _is_worth_parsing(plain) else None
            known = _NOTHING if node is None else _analyze_function(node, plain)
            self._readings[plain] = known
        return known


def _is_worth_parsing(function: FunctionType) -> bool:
    """Return False if no name in the code can matter: true of most handlers."""
    for name in _iter_code_names(function.__code__):
        value = function.__globals__.get(name)
        if name in _READERS or name in _CONSTRUCTORS or _is_subclass(value, _MEANINGFUL):
            return True
        if isinstance(value, ModuleType):  # `treefold_http.NotFound`
            return True
    return False


def _iter_code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _iter_code_names(constant)


def _is_subclass(kind: Any, base: type | tuple[type, ...]) -> bool:
    return isinstance(kind, type) and issubclass(kind, base)


def _analyze_function(node: FunctionNode, function: FunctionType) -> FunctionFacts:
    code = function.__code__
    # `request.json()` reads the body; `json()` of another object says nothing
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    parts = _list_body_nodes(node)
    calls = {id(part.func): part for part in parts if isinstance(part, ast.Call)}
    used = [
        part
        for part in parts
        if isinstance(part, ast.Attribute)
        and part.attr in _READERS
        and isinstance(part.value, ast.Name)
        and part.value.id in parameters
    ]
    raised = [part.exc for part in parts if isinstance(part, ast.Raise) and part.exc]
    return FunctionFacts(
        frozenset(status for error in raised for status in _read_raised_statuses(error, function)),
        frozenset(part.attr for part in used),
        any(_refers_to_event_stream(part, function) for part in parts),
        tuple(
            _read_model_argument(calls.get(id(part)), function)
            for part in used
            if part.attr in _TYPED
        ),
        tuple(_iter_media_types(calls.values(), function)),
    )


def _iter_media_types(calls: Iterable[ast.Call], function: FunctionType) -> Iterator[str | None]:
    for call in calls:
        name, owner = "", call.func
        if isinstance(owner, ast.Attribute) and owner.attr in _CONSTRUCTORS:
            name, owner = owner.attr, owner.value
        if (kind := find_made_response(resolve_value(owner, function), name)) is not None:
            yield read_media_type(call, kind)


def _list_body_nodes(function: FunctionNode) -> list[ast.AST]:
    """The nodes of a function's body in the order of the source, without nested functions."""
    body = function.body if isinstance(function.body, list) else [function.body]
    found: list[ast.AST] = []
    waiting: list[ast.AST] = [*reversed(body)]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, _NESTED):
            found.append(node)
            waiting += list(ast.iter_child_nodes(node))[::-1]
    return found


def _read_raised_statuses(error: ast.expr, function: FunctionType) -> list[int]:
    if isinstance(error, ast.IfExp):
        nodes = (error.body, error.orelse)
        return [status for node in nodes for status in _read_raised_statuses(node, function)]
    kind = resolve_value(error.func if isinstance(error, ast.Call) else error, function)
    if not _is_subclass(kind, HTTPError):
        return []
    status: Any = getattr(kind, "code", None)
    if kind is HTTPError and isinstance(error, ast.Call):
        given = [*error.args[:1], *(key.value for key in error.keywords if key.arg == "status")]
        status = given[0].value if given and isinstance(given[0], ast.Constant) else None
    known = isinstance(status, int) and not isinstance(status, bool) and 400 <= status <= 599
    return [int(status)] if known else []


def _refers_to_event_stream(part: ast.AST, function: FunctionType) -> bool:
    if isinstance(part, ast.Attribute):
        module = resolve_value(part.value, function) if isinstance(part.value, ast.Name) else None
        value = resolve_value(part, function)
        return isinstance(module, ModuleType) and _is_subclass(value, EventStream)
    return isinstance(part, ast.Name) and _is_subclass(resolve_value(part, function), EventStream)


def _read_model_argument(call: ast.Call | None, function: FunctionType) -> Any:
    """The model that a call is given; EMPTY if there is none, or one that is computed."""
    if call is None or len(call.args) + len(call.keywords) != 1:
        return EMPTY
    if call.keywords and call.keywords[0].arg != "model":
        return EMPTY
    return resolve_value([*call.args, *(key.value for key in call.keywords)][0], function)


def resolve_value(node: ast.expr, function: FunctionType) -> Any:
    """Return the value of a global name, an attribute, or a type in brackets or with `|`.

    Anything else is EMPTY.
    """
    try:
        return _evaluate_node(node, function)
    except Exception:  # a name that is not there yet, or no type; properties are user code
        return EMPTY


def _evaluate_node(node: ast.expr, function: FunctionType) -> Any:
    match node:
        case ast.Name(id=name):
            code = function.__code__
            # a local variable hides the global of its name, and has no value before a call
            if name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars:
                raise LookupError(name)
            names = function.__globals__
            return names[name] if name in names else vars(builtins)[name]
        case ast.Attribute(value=owner, attr=name):
            return getattr(_evaluate_node(owner, function), name)
        case ast.Subscript(value=generic, slice=arguments):
            return _evaluate_node(generic, function)[_evaluate_node(arguments, function)]
        case ast.Tuple(elts=items):
            return tuple(_evaluate_node(item, function) for item in items)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _evaluate_node(left, function) | _evaluate_node(right, function)
        case _:
            raise LookupError(ast.unparse(node))
