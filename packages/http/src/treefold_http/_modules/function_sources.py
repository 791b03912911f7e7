"""The definition of a function, in the source that was executed.

Files are parsed as they were when their modules were imported: a save since then is not what runs.
"""

from __future__ import annotations

import ast
import inspect
import linecache
from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any, TypeAlias, cast

from treefold_http._modules.source_loader import SourceLoader
from treefold_logging import get_logger

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef)


class FunctionSources:
    """Finds the definitions of functions.

    Only the file that was parsed last is kept: the dependencies of a handler are mostly in its own
    file, and the garbage collector takes longer to visit 500 trees than a second parse takes.
    """

    def __init__(self) -> None:
        self._file = ""
        self._tree = ast.Module([], [])

    def find_function(self, function: FunctionType) -> FunctionNode | None:
        """Return the definition of a function in its file; None if that is not known."""
        code = function.__code__
        if self._file != code.co_filename:
            self._file, self._tree = code.co_filename, _parse_source(function)
        kind = ast.Lambda if code.co_name == "<lambda>" else _NAMED
        found = list(_iter_functions_at_line(self._tree, code.co_firstlineno, kind))
        # Two lambdas on one line cannot be told apart; another name is of another text.
        if len(found) != 1 or getattr(found[0], "name", "<lambda>") != code.co_name:
            return None
        return found[0]


def unwrap_function(function: Any) -> FunctionType | None:
    """Return the function that runs inside of decorators, partials and callables; None if none."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    function = inspect.unwrap(function)
    if not inspect.isroutine(function) and not isinstance(function, type):
        function = type(function).__call__
    function = getattr(function, "__func__", function)
    return function if isinstance(function, FunctionType) else None


def _parse_source(function: FunctionType) -> ast.Module:
    """Parse the text that was executed; empty if it is not known."""
    file, names = function.__code__.co_filename, function.__globals__
    loader = names.get("__loader__")
    if not isinstance(loader, SourceLoader) or loader.path != file:
        text = "".join(linecache.getlines(file, names))
    elif (text := loader.read_executed_source()) is None:
        get_logger().warning(
            "%s changed after it was imported; the documents lack what its functions raise and"
            " read until it is imported again",
            file,
        )
    try:
        return ast.parse(text or "")
    except (SyntaxError, ValueError):  # not the text of this function, such as a generated name
        return ast.Module([], [])


def _iter_functions_at_line(
    tree: ast.AST, line: int, kind: type[FunctionNode] | tuple[type[FunctionNode], ...]
) -> Iterator[FunctionNode]:
    """The functions that begin on a line, that of their first decorator included."""
    for node in ast.iter_child_nodes(tree):
        decorators: list[ast.expr] = getattr(node, "decorator_list", [])
        first = decorators[0].lineno if decorators else getattr(node, "lineno", line)
        if first <= line <= getattr(node, "end_lineno", line):
            if first == line and isinstance(node, kind):
                yield node
            yield from _iter_functions_at_line(node, line, kind)
