"""Flows: the work of the runner as generators, so that both halves run the same code.

A flow yields its next effect (a statement, a transaction around another flow, a pause, a call of
a function) and is sent the outcome, or has the error thrown into it. Only `execute_flow` and
`aexecute_flow` do anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from treefold_orm.schema import HeldConnection, Operation, Statement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Atomic:
    """Run a flow in a transaction of its own; the outcome is the result of the flow."""

    flow: Flow[Any]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """Call a sync or async function; the outcome is its result."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()


Effect = Statement | Atomic | Pause | Call
Flow = Generator[Effect, Any, T]


def fetch_rows(sql: str, *args: Any) -> Operation[list[Any]]:
    """Run a query."""
    return (yield Statement("rows", sql, args))


def run_statement(sql: str, *args: Any) -> Operation[int]:
    """Run a statement, and return the number of rows that it changed."""
    return (yield Statement("count", sql, args))


def run_script(*statements: str) -> Operation[None]:
    """Run statements without arguments."""
    for sql in statements:
        yield Statement("script", sql)


def execute_flow(held: HeldConnection, flow: Flow[T]) -> T:
    """Run a flow on a connection, blocking this thread."""
    step: Callable[[], Effect] = partial(flow.send, None)
    while True:
        try:
            effect = step()
        except StopIteration as stop:
            return stop.value
        try:
            outcome = _perform_effect(held, effect)
        except BaseException as error:  # the flow decides
            step = partial(flow.throw, error)
        else:
            step = partial(flow.send, outcome)


def _perform_effect(held: HeldConnection, effect: Effect) -> Any:
    match effect:
        case Statement():
            # inside of Atomic this is the connection of the transaction: a flow never takes another
            # one
            return held.run(_wrap_statement_as_operation(effect))
        case Atomic(flow):
            with held.transaction():
                return execute_flow(held, flow)
        case Pause(seconds):
            time.sleep(seconds)
            return None
        case Call(function, args):
            return held.call(function, *args)


async def aexecute_flow(held: HeldConnection, flow: Flow[T]) -> T:
    """Run a flow on a connection."""
    step: Callable[[], Effect] = partial(flow.send, None)
    while True:
        try:
            effect = step()
        except StopIteration as stop:
            return stop.value
        try:
            outcome = await _aperform_effect(held, effect)
        except BaseException as error:  # the flow decides
            step = partial(flow.throw, error)
        else:
            step = partial(flow.send, outcome)


async def _aperform_effect(held: HeldConnection, effect: Effect) -> Any:
    match effect:
        case Statement():
            return await held.arun(_wrap_statement_as_operation(effect))
        case Atomic(flow):
            async with held.transaction():
                return await aexecute_flow(held, flow)
        case Pause(seconds):
            await asyncio.sleep(seconds)
            return None
        case Call(function, args):
            return await held.acall(function, *args)


def _wrap_statement_as_operation(statement: Statement) -> Operation[Any]:
    return (yield statement)
