"""Where a file names the version that it lies in: `Api.v1` in a file of `Api/v1`.

Run as a module of another version, such a file would reach the modules of its own. The names in
the compiled code decide for most files; the source is parsed only where one of them may be such a
name, because parsing takes longer than running a small handler.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from types import CodeType
from typing import cast

_API = "Api"
_may_name_version = re.compile(r"(Api|v[0-9]+)(\.|$)").match


def find_version_import(
    code: CodeType, read_source: Callable[[], bytes], version: str, folders: list[str]
) -> int | None:
    """Return the first line that names the version of a file; None if there is none.

    Args:
        code: the compiled file.
        read_source: returns its source.
        version: the version that the file lies in, such as `v1`.
        folders: names of the folders between the version and the file.
    """
    if not _may_import_version(code):
        return None
    return find_version_line(ast.parse(read_source()), version, folders)


def _may_import_version(code: CodeType) -> bool:
    if any(map(_may_name_version, code.co_names)):
        return True
    for value in code.co_consts:
        if isinstance(value, CodeType):
            if _may_import_version(value):
                return True
        elif isinstance(value, str):
            if _API in value:
                return True
        elif isinstance(value, tuple):
            names = [one for one in cast("tuple[object, ...]", value) if isinstance(one, str)]
            if any(_API in name or _may_name_version(name) for name in names):
                return True
    return False


def find_version_line(tree: ast.AST, version: str, folders: list[str]) -> int | None:
    """Return the first line of a syntax tree that names a version; None if there is none.

    Found are import statements, `import_module` and `__import__` with a text, `Api.v1` in the code
    and in annotations that are texts.

    Args:
        tree: the syntax tree of a file.
        version: such as `v1`.
        folders: names of the folders between the version and the file.
    """
    lines = (line for node in ast.walk(tree) for line in _find_lines(node, version, folders))
    return min(lines, default=None)


def _find_lines(node: ast.AST, version: str, folders: list[str]) -> Iterator[int]:
    if isinstance(node, ast.Import):
        if any(_begins_with_version(alias.name, version) for alias in node.names):
            yield node.lineno
    elif isinstance(node, ast.ImportFrom):
        if _imports_from_version(node, version, folders):
            yield node.lineno
    elif isinstance(node, ast.Call):
        called = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        texts = [*node.args[:2], *(k.value for k in node.keywords if k.arg in ("name", "package"))]
        if called in ("import_module", "__import__") and any(
            _begins_with_version(_find_leading_text(text), version) for text in texts
        ):
            yield node.lineno
    elif isinstance(node, ast.Attribute):
        if node.attr == version and isinstance(node.value, ast.Name) and node.value.id == _API:
            yield node.lineno
    elif isinstance(node, (ast.arg, ast.AnnAssign)):
        yield from _find_annotation_lines(node.annotation, version)
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        yield from _find_annotation_lines(node.returns, version)


def _find_annotation_lines(annotation: ast.expr | None, version: str) -> Iterator[int]:
    names_version = re.compile(rf"(?<![\w.])Api\s*\.\s*{version}(?!\w)").search
    for node in ast.walk(annotation) if annotation is not None else ():
        if isinstance(node, ast.Constant) and names_version(str(node.value)):
            yield node.lineno


def _imports_from_version(node: ast.ImportFrom, version: str, folders: list[str]) -> bool:
    above: list[str] = []
    if node.level:
        package = [_API, version, *folders]
        above = package[: len(package) - node.level + 1]
        if len(above) != 1:  # inside of the version, or above the project
            return False
    parts = [*above, *(node.module.split(".") if node.module else ())]
    if parts == [_API]:
        return any(alias.name == version for alias in node.names)
    return parts[:2] == [_API, version]


def _begins_with_version(text: str | None, version: str) -> bool:
    return text is not None and f"{text}.".startswith(f"{_API}.{version}.")


def _find_leading_text(node: ast.expr) -> str | None:
    """Return the text that an expression begins with, up to its last dot if more follows."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=[ast.Constant(value=str(text)), *_]):
            return text.rpartition(".")[0]
        case ast.BinOp(left=left):
            return (_find_leading_text(left) or "").rpartition(".")[0]
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return (_find_leading_text(text) or "").partition("{")[0].rpartition(".")[0]
        case _:
            return None
