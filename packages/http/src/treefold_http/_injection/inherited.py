"""`Inherited[Book, "v1"]`: a handler made of the answer of the same place in a base version.

    async def handler(before: Inherited[Book, "v1"]) -> dict[str, object]:
        book = await before()
        return {"isbn": book.isbn, "authors": [book.author]}

`await before()` calls the handler of v1 and returns its answer, checked as a `Book`. The parameters
of that handler are resolved with those of the new one, so that the plan, the documents and the
cache know all that a request is asked for. `_plans.base_handlers` makes a `BaseHandler`, `resolver`
resolves its parameters.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast, get_origin

from treefold_http._types.parameters import find_module_globals, list_parameters
from treefold_http._wire.aliases import AnyCallable

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    from treefold_http._requests.connection import Connection
    from treefold_http._responses.response import Response
    from treefold_http._types.outputs import Output
    from treefold_router import Route

    V = TypeVarWithDefault("V", default=Any)
else:
    from typing import Literal

    V = TypeVar("V")
T_co = TypeVar("T_co", covariant=True)

_MARK = "__treefold_base__"
"""The attribute of a dependency that names the base which it calls."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseHandler:
    """The handler of a base version that another handler calls.

    Attributes:
        route: the route of the base.
        handler: its handler.
        bases: by parameter of that, the handler of a further base that it calls.
        path_names: by parameter of its path, that of the path of the other handler.
        names: the parameters that a call may give.
        given: those that every call gives, so that none of them is read from the request.
        outputs: the declared types of its answers.
        respond: makes the response to a return value, as the base does.
        read: takes the value out of a response of success.
    """

    route: Route
    handler: AnyCallable
    bases: Mapping[str, BaseHandler]
    path_names: Mapping[str, str]
    names: frozenset[str]
    given: frozenset[str]
    outputs: Sequence[Output]
    respond: Callable[[Connection, Any], Response]
    read: Callable[[Response], Any]

    @property
    def shown(self) -> str:
        """Its method and template, for messages."""
        return f"{self.route.method} {self.route.template}"


class BaseAnswer(Exception):
    """A base has answered without success: the client gets that answer.

    Attributes:
        response: the answer.
    """

    def __init__(self, response: Response) -> None:
        super().__init__(response)
        self.response = response


class Inherited(Generic[T_co, V]):
    """The answer of the same place and method in a base version, as a parameter of a handler.

    `Inherited[Book]` calls the base that `version.toml` of the file's version names, and
    `Inherited[Book, "v1"]` the version v1; checkers of types want `Inherited[Book, Literal["v1"]]`.
    """

    __slots__ = ("_arguments", "_base", "_connection", "_positional", "_response")

    def __init__(
        self,
        base: BaseHandler,
        connection: Connection,
        positional: tuple[Any, ...],
        arguments: Mapping[str, Any],
    ) -> None:
        self._base = base
        self._connection = connection
        self._positional = positional
        self._arguments = arguments
        self._response: Response | None = None

    if not TYPE_CHECKING:

        def __class_getitem__(cls, parameters: Any) -> GenericAlias:
            content, *rest = parameters if isinstance(parameters, tuple) else (parameters,)
            # a text in an annotation would be resolved as the name of a type
            names = [Literal[each] if isinstance(each, str) else each for each in rest]
            return GenericAlias(cls, (content, *names))

    async def __call__(self, **arguments: object) -> T_co:
        """Call the handler of the base and return the content of its answer.

        An answer of the base that is no success ends the request: the client gets it.

        Args:
            arguments: values for parameters of the base's handler, by name.

        Raises:
            HTTPError: what the base raises.
            TypeError: for an argument that it does not take, or an answer of another type.
        """
        base = self._base
        if unknown := arguments.keys() - base.names:
            raise TypeError(
                f"The handler of {base.shown} has no parameter {min(unknown)!r}; give"
                f" {', '.join(sorted(base.names)) or 'none'}"
            )
        given = {**self._arguments, **arguments}
        result = await _call_handler(self._connection, base.handler, self._positional, given)
        response = self._response = base.respond(self._connection, result)
        work = self._connection.background
        if response.background is not None and response.background is not work:
            work.calls.append(response.background)
        if response.status >= 300:
            raise BaseAnswer(response)
        return cast("T_co", base.read(response))

    @property
    def response(self) -> Response:
        """The response of the base: its status and header fields, once it was called.

        Raises:
            RuntimeError: before the first call.
        """
        if self._response is None:
            raise RuntimeError(f"{self._base.shown} has no response yet; await the call before")
        return self._response


async def _call_handler(
    connection: Connection,
    handler: AnyCallable,
    positional: tuple[Any, ...],
    arguments: Mapping[str, Any],
) -> Any:
    called = handler if inspect.isroutine(handler) else handler.__call__
    if inspect.iscoroutinefunction(called):
        return await handler(*positional, **arguments)
    return await connection.app.run_in_thread(handler, *positional, **arguments)


def build_inherited_dependency(base: BaseHandler) -> AnyCallable:
    """Return a function that takes the connection and the arguments of a base's handler.

    It returns the `Inherited` that calls that handler with them.
    """

    async def prepare_call(
        connection: Connection, /, *positional: Any, **arguments: Any
    ) -> Inherited[Any, Any]:
        return Inherited(base, connection, positional, arguments)

    # documents read what the handler raises, and the cache which credentials it is marked with
    made = functools.wraps(base.handler)(prepare_call)
    setattr(made, _MARK, base)
    return made


def find_called_base(function: AnyCallable) -> BaseHandler | None:
    """Return the base that a function of `build_inherited_dependency` calls; None for others."""
    return getattr(function, _MARK, None)


def takes_inherited(handler: AnyCallable) -> bool:
    """Return True if a parameter of a handler is an `Inherited`, by what is written of it."""
    names = find_module_globals(handler)
    # a signature would cost 10 us a file at boot
    written: Mapping[str, Any] | None = getattr(handler, "__annotations__", None)
    if written is None or hasattr(handler, "__wrapped__"):
        return any(is_inherited(each.annotation, names) for each in list_parameters(handler))
    return any(is_inherited(each, names) for each in written.values())


def is_inherited(annotation: Any, names: Mapping[str, Any]) -> bool:
    """Return True for an annotation that is an `Inherited`, also as a text.

    Args:
        names: the globals of its module.
    """
    if not isinstance(annotation, str):
        return annotation is Inherited or get_origin(annotation) is Inherited
    # a text within a text, where annotations are texts anyway
    first, *others = annotation.strip("'\" ").partition("[")[0].strip().split(".")
    value = names.get(first)
    for each in others:
        value = getattr(value, each, None)
    return value is Inherited
