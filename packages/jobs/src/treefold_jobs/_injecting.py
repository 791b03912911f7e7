"""Injected parameters of a job: those that its call does not pass come from the application.

    async def send(order: int, settings: Shop = Depends()) -> None: ...

    await aenqueue(send, 7)     # kept: {"args": [7], "kwargs": {}}
    bind_call(call, send)       # in the worker: order=7, settings=<the settings of the application>

Values are resolved when the job runs, in a scope of its own, which ends with the job. Jobs import
no HTTP: their extension is handed the application.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from treefold_jobs._call import Call
from treefold_jobs._process import PlanValues, here

_GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


@asynccontextmanager
async def bind_call(
    call: Call, function: Callable[..., Any]
) -> AsyncGenerator[inspect.BoundArguments]:
    """Yield the arguments of a call, injected ones included; their cleanup follows the block.

    Raises:
        TypeError: the function does not take the arguments of the call.
        Exception: of the application, for a parameter that it cannot provide.
    """
    bound = inspect.signature(function).bind(*call.args, **call.kwargs)
    if not _has_open_parameters(function, bound) or here.app is None:
        yield bound
        return
    async with here.app.scope() as scope:
        resolve = scope.plan_values(function, given=bound.arguments)
        if resolve is not None:
            bound.arguments.update(await resolve())
        yield bound


def plan_injected_values(
    function: Callable[..., Any], bound: inspect.BoundArguments
) -> PlanValues | None:
    """Return the plan of the parameters that a call does not pass; None if it needs none.

    Raises:
        Exception: of the application, for a parameter that it cannot provide.
    """
    if not _has_open_parameters(function, bound) or here.app is None:
        return None
    return here.app.scope().plan_values(function, given=bound.arguments)


def require_injectable(function: Callable[..., Any], bound: inspect.BoundArguments) -> None:
    """Refuse a call whose open parameters the running application cannot provide.

    Raises:
        TypeError: a parameter needs a request, or its type cannot be read.
    """
    if here.app is None or not here.app.lifespan.started:
        return
    try:
        plan_injected_values(function, bound)
    except Exception as error:
        failure = TypeError(f"{function.__qualname__} cannot be a job like this: {error}")
    else:
        return
    raise failure


def _has_open_parameters(function: Callable[..., Any], bound: inspect.BoundArguments) -> bool:
    """Return True if a call leaves a parameter to its default, or to the application.

    Raises:
        TypeError: only an application can provide it, and there is none.
    """
    parameters = bound.signature.parameters.values()
    left = [p for p in parameters if p.name not in bound.arguments and p.kind not in _GATHERING]
    for one in left if here.app is None else ():
        if type(one.default).__module__.startswith("treefold_http."):
            raise TypeError(
                f"Parameter {one.name!r} of {function.__qualname__} is provided by an application,"
                " and there is none in this process"
            )
    return bool(left)
