"""A Python prompt in which `await` works, and programs with `await` at their top level.

Based on asyncio and Python's own prompt, and independent of projects. Everything runs on one event
loop, which is stopped while the prompt waits for input.
"""

import __future__

import ast
import asyncio
import code
import contextlib
import inspect
import traceback
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

_NAME = "<shell>"
_FUTURE = __future__.annotations.compiler_flag  # the others are on in every Python of today


def run_python_program(source: str, global_names: dict[str, Any]) -> bool:
    """Run a program; a traceback starts at the program's own first line.

    A statement runs on the event loop only if it has an `await` itself: calls that block, such as
    those of a synchronous ORM, are refused on a loop and go on to work in all others.

    Args:
        source: the program; it may use `await` at any level.
        global_names: its global names.

    Returns:
        True if it raised no exception.

    Raises:
        SystemExit: raised by the program.
    """
    with asyncio.Runner() as runner:
        try:
            for compiled in _compile_steps(source):
                _execute_code(compiled, global_names, runner)
        except Exception as error:
            frame = error.__traceback__
            while frame is not None and frame.tb_frame.f_code.co_filename != _NAME:
                frame = frame.tb_next
            traceback.print_exception(error.with_traceback(frame))
            return False
    return True


def run_prompt(global_names: dict[str, Any], *, banner: str) -> None:
    """Read and run statements until the end of the input.

    Args:
        global_names: their global names.
        banner: printed first.
    """
    with contextlib.suppress(ImportError):  # Windows has no readline
        import readline
        import rlcompleter

        readline.set_completer(rlcompleter.Completer(global_names).complete)
        readline.parse_and_bind("tab: complete")
    with asyncio.Runner() as runner:
        _Console(global_names, runner).interact(banner=banner, exitmsg="")


def _compile_steps(source: str) -> Iterator[CodeType]:
    """Compile a program in pieces: each top-level statement with an `await` is one of its own."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    whole = compile(source, _NAME, "exec", flags)  # reports every error of the program at once
    if not whole.co_flags & inspect.CO_COROUTINE:
        yield whole
        return
    flags |= whole.co_flags & _FUTURE
    for statement in ast.parse(source, _NAME).body:
        yield compile(ast.Module([statement], []), _NAME, "exec", flags)


def _execute_code(compiled: CodeType, names: dict[str, Any], runner: asyncio.Runner) -> None:
    outcome = FunctionType(compiled, names)()
    if inspect.iscoroutine(outcome):
        runner.run(outcome)


class _Console(code.InteractiveConsole):
    def __init__(self, names: dict[str, Any], runner: asyncio.Runner) -> None:
        super().__init__(names)
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._runner = runner
        self._names = names

    def runcode(self, code: CodeType) -> None:
        """Run one statement; an exception is printed, and the prompt continues."""
        try:
            _execute_code(code, self._names, self._runner)
        except SystemExit:
            raise
        except BaseException:
            self.showtraceback()
