"""The versions that `Inherited` names in a source: found, and written in where it names none.

    before: Inherited[Book]          ->    before: Inherited[Book, "v1"]

A handler that names no version converts from the base of its `version.toml`. A copy has no such
file, so the copy of a handler names the version. All other bytes of a file stay as they are.
"""

import ast
import io
import tokenize
from collections.abc import Iterator

_NAME = "Inherited"


def name_base_version(source: bytes, base: str) -> tuple[bytes, int]:
    """Write a version into each `Inherited` that names none.

    Args:
        source: the content of a file that is Python.
        base: the version.

    Returns:
        The new content, and how many places changed.
    """
    if not base or _NAME.encode() not in source:
        return source, 0
    encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    text = source.decode(encoding).encode()  # positions of a tree count bytes of UTF-8
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    slices = [each.slice for each in _iter_subscripts(ast.parse(text.decode()))]
    places = [
        starts[(each.end_lineno or 1) - 1] + (each.end_col_offset or 0)
        for each in slices
        if not isinstance(each, ast.Tuple)
    ]
    for place in sorted(places, reverse=True):
        text = text[:place] + f', "{base}"'.encode() + text[place:]
    return text.decode().encode(encoding), len(places)


def list_named_versions(source: bytes) -> set[str]:
    """Return the versions that the handlers of a file convert from by name.

    Raises:
        SyntaxError, ValueError: the file is not Python.
    """
    if _NAME.encode() not in source:
        return set()
    slices = (each.slice for each in _iter_subscripts(ast.parse(source)))
    second = (each.elts[1] for each in slices if isinstance(each, ast.Tuple) and each.elts[1:])
    return {
        node.value
        for each in second
        for node in ast.walk(each)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def _iter_subscripts(tree: ast.AST) -> Iterator[ast.Subscript]:
    """Yield each `Inherited[...]`, whatever name the file has for it."""
    names = {_NAME}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names |= {each.asname or each.name for each in node.names if each.name == _NAME}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            value = node.value
            is_name = isinstance(value, ast.Name) and value.id in names
            if is_name or (isinstance(value, ast.Attribute) and value.attr == _NAME):
                yield node
