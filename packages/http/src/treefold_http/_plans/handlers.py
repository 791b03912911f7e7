"""Handler modules: one file in, one checked record out.

`_modules.modules` imports the files and the router routes; this module checks the names that a
handler module defines, and reports errors in them.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, cast

from treefold_http._chains.middleware_chain import WEBSOCKET, check_middleware_entry
from treefold_http._injection.inherited import BaseHandler
from treefold_http._modules.modules import ModuleSpace
from treefold_http._plans.deprecation import Deprecation, read_deprecated_option
from treefold_http._responses.held_annotation import resolve_response_model
from treefold_http._responses.response import check_status
from treefold_http._wire.aliases import AnyCallable
from treefold_router import Route


class HandlerError(Exception):
    """A handler file was imported but cannot serve requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerModule:
    """The checked names of a handler module.

    Attributes:
        handler: called for each request.
        status_code: the status of plain return values; None keeps the default of their type.
        middlewares: run innermost, around this handler only.
        max_body: the most bytes of a request body; None keeps the setting.
        log_payload: True if the payload is logged.
        timeout: seconds that the handler may take before a 503.
        summary, description, tags, operation_id: for the OpenAPI document.
        deprecated: its own deprecation; that of its version completes it.
        response_model: the type of the response: documented instead of the return annotation, and
            enforced on the responses. A module may say True, for that annotation.
        responses: status to a text, a type or a table, for the document as well
            (docs/guides/openapi.md).
        bases: by parameter of the handler, what it calls of a base version.
    """

    handler: AnyCallable
    status_code: int | None = None
    middlewares: Sequence[Any] = ()
    max_body: int | None = None
    log_payload: bool = True
    timeout: float | None = None
    summary: str | None = None
    description: str | None = None
    tags: Sequence[str] | None = None
    deprecated: Deprecation | None = None
    response_model: Any = None
    responses: Mapping[int | str, Any] | None = None
    operation_id: str | None = None
    bases: Mapping[str, CalledHandler] = field(default_factory=dict[str, "CalledHandler"])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CalledHandler(BaseHandler):
    """The handler of a base version that another handler calls, with its module.

    Attributes:
        module: the handler module of the base.
        guards: entries of the project that cover the route of the base, and not that of the other.
        is_named: True if the other handler names the version, which else its `version.toml` does.
    """

    module: HandlerModule
    guards: Sequence[Any]
    is_named: bool


_OPTIONS: Mapping[str, type | tuple[type, ...]] = {
    "status_code": int,
    "middlewares": (list, tuple),
    "max_body": int,
    "log_payload": bool,
    "timeout": (int, float),
    "summary": str,
    "description": str,
    "tags": (list, tuple),
    "deprecated": object,
    "response_model": object,
    "responses": Mapping,
    "operation_id": str,
}


def load_handler(
    space: ModuleSpace,
    route: Route,
    packages: Collection[str],
    *,
    holds_annotations: bool = False,
) -> HandlerModule:
    """Import the file of a route, run its `init()`, and return its checked names.

    Args:
        packages: the folders below `Api/` that hold an `__init__.py`.
        holds_annotations: the setting `response_model`.

    Raises:
        HandlerError: when `handler` is missing or an option has a wrong type.
        InjectionError: for a `response_model = True` without a type that can be held.
        BaseException: any exception of the file itself.
    """
    module, fresh = space.import_file_once("Api", route.effective_file, packages, source=route.file)
    if fresh:
        try:
            _run_init(module)
        except BaseException:
            space.unload_module(
                module
            )  # the next boot imports it again instead of serving it half made
            raise
    said = vars(module)  # `getattr` would raise an exception for each missing name
    if (handler := said.get("handler")) is None:
        raise HandlerError(f"{route.file} has no `handler`; define `async def handler(request)`")
    if not callable(handler):
        got = type(handler).__qualname__
        raise HandlerError(f"`handler` in {route.file} must be a function, got {got!r}")
    options = {name: said[name] for name in _OPTIONS if said.get(name) is not None}
    if (kept := getattr(handler, "__treefold_cached__", None)) is not None:  # @cached
        options["middlewares"] = [*options.get("middlewares", ()), kept]
    if options:
        _check_handler_options(options, route.file)
    given = options.pop("response_model", None)
    if route.method == WEBSOCKET and isinstance(given, bool):
        raise HandlerError(
            f"`response_model` in {route.file} must be the type of JSON messages, got {given!r}"
        )
    if route.method != WEBSOCKET and (holds_annotations or isinstance(given, bool)):
        given = resolve_response_model(given, handler, holds_annotations=holds_annotations)
    return HandlerModule(handler=handler, response_model=given, **options)


def _check_handler_options(options: dict[str, Any], file: str) -> None:
    if "status_code" in options:
        check_status(options["status_code"])
    for name in ("max_body", "timeout"):
        value = options.get(name)
        # NaN fails the comparison as well
        if isinstance(value, (int, float)) and not 0 <= value < math.inf:
            raise HandlerError(f"`{name}` in {file} must be a finite number from 0, got {value!r}")
    if "deprecated" in options:
        options["deprecated"] = _read_deprecation(options["deprecated"], file)
    for name, value in options.items():
        _check_option_type(value, name, _OPTIONS[name], file)
    for entry in options.get("middlewares", ()):
        check_middleware_entry(entry)
    if not options.keys().isdisjoint(_DOCUMENTED):
        _check_documentation_options(options, file)


def _read_deprecation(value: object, file: str) -> Deprecation | None:
    try:
        return read_deprecated_option(value)
    except (TypeError, ValueError) as error:
        raise HandlerError(
            f"`deprecated` in {file} must be True, a day such as '2026-11-01' or a Deprecation, got"
            f" {value!r}"
        ) from error


_DOCUMENTED = ("tags", "response_model", "responses", "operation_id")
_operation_id = re.compile(r"[A-Za-z0-9_.-]{1,255}").fullmatch
_status_key = re.compile(r"[1-5](?:[0-9]{2}|XX)|default").fullmatch


def _check_documentation_options(options: Mapping[str, Any], file: str) -> None:
    if not all(isinstance(tag, str) and tag for tag in options.get("tags", ())):
        raise HandlerError(f"`tags` in {file} must be a list of names, got {options['tags']!r}")
    operation = options.get("operation_id")
    if operation is not None and not _operation_id(operation):
        raise HandlerError(
            f"`operation_id` in {file} must consist of letters, digits, '_', '.' and '-', got"
            f" {operation!r}"
        )
    model = options.get("response_model")
    if not isinstance(model, bool) and _is_plain_value(model):
        raise HandlerError(
            f"`response_model` in {file} must be a type, or True for the return annotation, got"
            f" {model!r}"
        )
    responses: Mapping[Any, Any] = options.get("responses", {})
    for status, said in responses.items():
        if isinstance(status, bool) or not _status_key(str(status)):
            raise HandlerError(
                f"A key of `responses` in {file} must be a status such as 404, a range"
                f" such as '4XX', or 'default', got {status!r}"
            )
        if not isinstance(said, (str, Mapping)) and _is_plain_value(said):
            raise HandlerError(
                f"`responses` in {file} must have a text, a type or a table for {status},"
                f" got {said!r}"
            )
        if isinstance(said, Mapping):
            _check_response_table(cast("Mapping[Any, Any]", said), status, file)


_TABLE = ("description", "model", "media_type", "headers", "example", "examples")
_KINDS: tuple[tuple[str, type, str], ...] = (
    ("description", str, "a text"),
    ("media_type", str, "a text"),
    ("headers", Mapping, "a table"),
    ("examples", Mapping, "a table"),
)


def _check_response_table(table: Mapping[Any, Any], status: object, file: str) -> None:
    unknown = [key for key in table if key not in _TABLE]
    if unknown:
        raise HandlerError(
            f"`responses` in {file} has the unknown key {unknown[0]!r} for {status}; use"
            f" {', '.join(_TABLE)}"
        )
    for key, kind, wanted in _KINDS:
        value = table.get(key)
        if value is not None and not isinstance(value, kind):
            raise HandlerError(
                f"`responses` in {file} must have {wanted} as {key} of {status}, got {value!r}"
            )
    if _is_plain_value(table.get("model")):
        raise HandlerError(
            f"`responses` in {file} must have a type as model of {status}, got {table['model']!r}"
        )


def _is_plain_value(given: object) -> bool:
    """Return True for a plain value, such as an example, where a type is expected."""
    return isinstance(given, (str, bytes, int, float, list, tuple, dict, set))


def _run_init(module: ModuleType) -> None:
    if (init := getattr(module, "init", None)) is None:
        return
    if not callable(init):
        raise HandlerError(f"`init` must be a function, got {type(init).__qualname__!r}")
    outcome = init()
    if inspect.iscoroutine(outcome):
        # By the specification, the coroutine of an `async def init` is discarded and never runs.
        outcome.close()


def _check_option_type(value: Any, name: str, kind: type | tuple[type, ...], file: str) -> None:
    # `max_body = True` is an int to `isinstance`
    if isinstance(value, kind) and (kind in (bool, object) or not isinstance(value, bool)):
        return
    wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
    raise HandlerError(f"`{name}` in {file} must be {wanted}, got {value!r}")
