"""Calls of one member on all extensions of an application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from treefold_http._extensions.members import (
    READY_TIMEOUT,
    Check,
    LogContext,
    Pending,
    ResultForm,
    SessionStore,
    SpanFactory,
)
from treefold_http._runtime.background import run_in_loop_or_thread
from treefold_http._runtime.runtime import Runtime
from treefold_http._wire.aliases import AnyCallable
from treefold_logging import get_logger


def call_extension_setup(extension: Any, app: Runtime) -> None:
    """Call `setup` of an extension, then `use_log`."""
    if (setup := getattr(extension, "setup", None)) is not None:
        setup(app)
    if (use_log := getattr(extension, "use_log", None)) is not None:
        use_log(LogContext())


def find_session_store(app: Runtime) -> SessionStore | None:
    """Return the session store of the first extension that offers one."""
    return session_store_of(app.extensions)


def session_store_of(extensions: Sequence[Any]) -> SessionStore | None:
    """Return the store of the first extension that offers one, before the application's boot."""
    return _find_first_answer(extensions, "session_store")


def find_parameter_function(extensions: Sequence[Any], kind: object) -> AnyCallable | None:
    """Return the function of the first extension that takes a type of parameters apart."""
    return _find_first_answer(extensions, "parameters", kind)


def find_result_form(extensions: Sequence[Any], annotation: object) -> ResultForm | None:
    """Return the form of the first extension that knows a type of results."""
    return _find_first_answer(extensions, "result", annotation)


def _find_first_answer(extensions: Sequence[Any], member: str, *arguments: object) -> Any:
    """Return the result of the first extension whose member returns one; None without any."""
    members = (getattr(extension, member, None) for extension in extensions)
    answers = (call(*arguments) for call in members if call is not None)
    return next((answer for answer in answers if answer is not None), None)


def observe(app: Runtime, span_factory: SpanFactory) -> Callable[[], None]:
    """Call `observe` of every extension; return a function that stops all of them."""
    return observe_all(app.extensions, span_factory)


def observe_all(extensions: Sequence[Any], span_factory: SpanFactory) -> Callable[[], None]:
    """Do the same for the extensions of an application whose boot may be in progress."""
    observers = [each for each in extensions if hasattr(each, "observe")]
    stops: list[Callable[[], None]] = [each.observe(span_factory) for each in observers]

    def stop_all() -> None:
        for one in stops:
            one()

    return stop_all


@dataclass(frozen=True, slots=True)
class _Unready:
    topic: str
    name: str
    text: str
    ok: bool = False
    advice: str = ""


async def readiness(app: Runtime, *, timeout: float = READY_TIMEOUT) -> list[Check]:
    """Run the readiness checks of all extensions concurrently.

    An extension that fails or takes longer is not ready. Its exception is reported by type only: a
    message may quote an address.
    """
    asked = [extension for extension in app.extensions if hasattr(extension, "ready")]
    checks = (_check_extension_readiness(extension, timeout) for extension in asked)
    answers = await asyncio.gather(*checks)
    return [check for answer in answers for check in answer]


async def _check_extension_readiness(extension: Any, timeout: float) -> Sequence[Check]:
    name = type(extension).__name__
    try:
        async with asyncio.timeout(timeout):
            return await extension.ready()
    except TimeoutError:
        return [_Unready("extension", name, f"does not answer within {timeout:g} s")]
    except Exception as error:
        return [_Unready("extension", name, f"cannot say: it raised {type(error).__name__}")]


async def release(app: Runtime) -> None:
    """Shut the installed extensions down after `setup`, for a tool that serves nothing."""
    for extension in reversed(app.installed):
        if hasattr(extension, "shutdown"):
            await run_in_loop_or_thread(app.threads, extension.shutdown)


def pending(app: Runtime) -> list[Pending]:
    """Return the steps that are missing before an application can serve; it may block.

    The models must be loaded: by a boot, or by `load_models`.
    """
    asked = (extension for extension in app.extensions if hasattr(extension, "pending"))
    return [one for extension in asked for one in extension.pending()]


def apply(app: Runtime) -> list[str] | None:
    """Call `apply` of the extensions of a booted application; it may block.

    Returns:
        A line for each step; None if no extension has anything to apply.
    """
    asked = [each for each in app.extensions if hasattr(each, "apply")]
    outcomes: list[Sequence[str] | None] = [each.apply() for each in asked]
    if all(lines is None for lines in outcomes):
        return None
    return [line for lines in outcomes for line in lines or ()]


async def explain(app: Runtime, error: BaseException) -> str:
    """Add the explanations of all extensions to an error, as notes below its message.

    Returns:
        The sentences, joined; empty if no extension explains the error.
    """
    said: list[str] = []
    for extension in app.extensions:
        if not hasattr(extension, "explain"):
            continue
        try:
            sentence: str = await app.run_in_thread(extension.explain, error)
        # a failed explanation must not take the place of the error itself
        except Exception as failure:
            name = type(extension).__name__
            get_logger().warning("extension %s failed to explain an error", name, exc_info=failure)
            continue
        if sentence and sentence not in getattr(error, "__notes__", ()):
            error.add_note(sentence)
        if sentence:
            said.append(sentence)
    return " ".join(said)


def prepare_tests(app: Runtime) -> None:
    """Apply the pending steps for the tests of a booted application.

    If no extension has steps to apply, call `prepare_tests` of the extensions instead.
    """
    if apply(app) is None:
        for extension in app.extensions:
            if hasattr(extension, "prepare_tests"):
                extension.prepare_tests()
