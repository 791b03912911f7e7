"""Imports whose module name a program computes, so that no version in it can be replaced.

Reads syntax trees only. `_rewrite_imports` replaces the names that are written out.
"""

import ast
import re
from collections.abc import Iterator

_IMPORTERS = frozenset({"importlib.import_module", "builtins.__import__", "__import__"})
_READABLE = re.compile(r"Api\.v[0-9]+(\.|$)|(?!Api(\.|$)).")
"""The start of a name that says which version it is in, or that it is in none."""


def computed_imports(tree: ast.AST) -> tuple[int, ...]:
    """Return the lines of the calls that import, from `Api`, a name that is computed.

    Found are `import_module` and `__import__` with a name whose version is not written out, and
    `getattr(Api, name)`.

    Args:
        tree: the syntax tree of a file.
    """
    names = {"__import__": "__import__", **dict(_imported_names(tree))}
    lines = {
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_computed(node, names)
    }
    return tuple(sorted(lines))


def _imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0], alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _is_computed(call: ast.Call, names: dict[str, str]) -> bool:
    name = _dotted(call.func, names)
    if name == "getattr" and len(call.args) > 1:
        start = _start_of(call.args[1])
        return _dotted(call.args[0], names) == "Api" and not re.fullmatch("v[0-9]+", start or "")
    if name not in _IMPORTERS:
        return False
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    wanted = call.args[0] if call.args else given.get("name")
    start = None if wanted is None else _start_of(wanted)
    return start is None or _READABLE.match(start) is None


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value, names)}.{node.attr}"
    return names.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def _start_of(node: ast.expr) -> str | None:
    """Return the constant text that an expression begins with; None if it begins with no text."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[first, *_]) | ast.BinOp(left=first):
            return _start_of(first)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):  # "Api.v1.{}".format(name)
            return _start_of(text)
        case _:
            return None
