"""The hash chain: each file's hash covers its parents' hashes and its own code.

Code counts by its syntax tree: comments, quotes, line breaks, docstrings and the order of imports
and keywords do not. It never depends on how this version of the ORM would write an operation, so
that an upgrade changes no hash.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from treefold_migrations._files.migration import Migration
from treefold_orm.schema import Imports

_UNIMPORTANT = frozenset({"ctx", "kind", "type_comment"})
_GRAPH = frozenset({"after", "replaces"})  # earlier files count by their hashes, not by their names


def digest_of(parents: Sequence[str], migration: Migration, text: str) -> str:
    """Return the hash of a file.

    Args:
        parents: The hashes of the files that come before it, in the order of `after`.
        migration: The declaration of the file.
        text: The text of the file; without any, the source of the operations counts.
    """
    hashed = hashlib.sha256()
    for parent in parents:
        hashed.update(f"after {parent}\n".encode())
    imports = Imports()
    lines = _lines(text) if text else (o.source(imports) for o in migration.operations)
    for line in lines:
        hashed.update(f"{line}\n".encode())
    return hashed.hexdigest()


def _lines(text: str) -> Iterator[str]:
    imported: list[str] = []
    rest: list[ast.stmt] = []
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            module = getattr(statement, "module", None) or ""
            imported += [f"import {module} {a.name} {a.asname or ''}" for a in statement.names]
        elif not _is_docstring(statement):
            rest.append(statement)
    yield from sorted(set(imported))
    yield from map(_tree, rest)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _tree(node: Any) -> str:
    """A syntax tree as text; empty parts are left out, so that newer Pythons, which know more
    parts, write the same.
    """
    if isinstance(node, ast.Call):
        return f"Call({_tree(node.func)},{_tree(node.args)},{_keywords(node)})"
    if isinstance(node, ast.AST):
        parts = [
            f"{name}={_tree(value)}"
            for name, value in ast.iter_fields(node)
            if name not in _UNIMPORTANT and value not in (None, [])
        ]
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        items: list[Any] = node  # pyright: ignore[reportUnknownVariableType] - a list of nodes
        return f"[{','.join(map(_tree, items))}]"
    return repr(node)


def _keywords(call: ast.Call) -> str:
    of_file = isinstance(call.func, ast.Name) and call.func.id == "Migration"
    kept = [k for k in call.keywords if not (of_file and k.arg in _GRAPH)]
    written = [f"{keyword.arg}={_tree(keyword.value)}" for keyword in kept]
    if all(keyword.arg for keyword in kept):
        written.sort()
    return ",".join(written)
