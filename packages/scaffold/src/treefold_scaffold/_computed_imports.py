"""Imports whose module name a program computes, so that no version in it can be replaced.

Reads syntax trees only. `_rewrite_imports` replaces the names that are written out.
"""

import ast
import re
from collections.abc import Iterator

_IMPORTERS = frozenset({"importlib.import_module", "builtins.__import__", "__import__"})
_READABLE = re.compile(r"Api\.v[0-9]+(\.|$)|(?!Api([.{%]|$)|[{%]).")
"""The start of a name that says which version it is in, or that it is in none.

`{` and `%` stand for a computed part: `f"Api.v1{n}"` may be in version 12.
"""


def find_computed_import_lines(tree: ast.AST) -> tuple[int, ...]:
    """Return the lines of the calls that import, from `Api`, a name that is computed.

    Found are `import_module` and `__import__` with a name whose version is not written out, and
    `getattr(Api, name)`.

    Args:
        tree: the syntax tree of a file.
    """
    names = {"__import__": "__import__", **dict(_find_imported_names(tree))}
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    lines = {node.lineno for node in calls if _is_computed_import(node, names)}
    return tuple(sorted(lines))


def _find_imported_names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]  # `import a.b` binds `a`
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _is_computed_import(call: ast.Call, names: dict[str, str]) -> bool:
    name = _resolve_dotted_name(call.func, names)
    if name == "getattr" and len(call.args) > 1:
        start = _find_leading_text(call.args[1])
        return _resolve_dotted_name(call.args[0], names) == "Api" and not re.fullmatch(
            "v[0-9]+", start or ""
        )
    if name not in _IMPORTERS:
        return False
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    wanted = call.args[0] if call.args else given.get("name")
    start = None if wanted is None else _find_leading_text(wanted)
    return start is None or _READABLE.match(start) is None


def _resolve_dotted_name(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_resolve_dotted_name(node.value, names)}.{node.attr}"
    return names.get(node.id, node.id) if isinstance(node, ast.Name) else ""


def _find_leading_text(node: ast.expr) -> str | None:
    """Return the constant text that an expression begins with; None if it begins with no text.

    What is added to it is `.` if it begins with a dot, so that a version before it ends there, else
    `{`: `_rewrite_imports` reads no version in an added text either.
    """
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *rest]):
            return f"{text}{{" if rest else text
        case ast.BinOp(left=left, right=right):
            start = _find_leading_text(left)
            following = _find_leading_text(right) or ""
            return start and start + ("." if following.startswith(".") else "{")
        case ast.Call(func=ast.Attribute(value=text, attr="format")):  # "Api.v1.{}".format(name)
            return _find_leading_text(text)
        case _:
            return None
