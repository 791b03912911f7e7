"""The hash chain: each file's hash covers its parents' hashes and its own code.

Code counts by its syntax tree: comments, quotes, line breaks, docstrings and the order of imports
and keywords do not. It never depends on how this version of the ORM would write an operation, so
that an upgrade changes no hash.

| Version | Text | Covers |
|---|---|---|
| 1 | 64 hexadecimal digits | all code |
| 2 | `2:` and such digits | the code of `normalize`, and the imports that it uses |

New records have version 2. One of version 1 is compared with `compute_legacy_digests`, and
rewritten.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treefold_migrations._files.migration import Migration
from treefold_migrations._files.normalizing import (
    parse_normalized_source,
    parse_without_elidable_keyword,
)
from treefold_orm.schema import Imports

# ctx follows from the place of a node; kind is the u of u"text"
_UNIMPORTANT = frozenset({"ctx", "kind", "type_comment"})
_GRAPH = frozenset({"after", "replaces"})  # earlier files count by their hashes, not by their names


_VERSION = "2:"
_IMPORT = "import "  # no syntax tree as text begins so


def is_legacy_hash(hash_: str) -> bool:
    """Return True for a hash of version 1."""
    return ":" not in hash_


def compute_file_digest(parent_digests: Sequence[str], migration: Migration, text: str) -> str:
    """Return the hash of a file.

    Args:
        parent_digests: the hashes of the files that come before it, in the order of `after`.
        migration: the declaration of the file.
        text: the text of the file; without any, the source of the operations counts.
    """
    return _VERSION + _hash_lines(
        parent_digests,
        _dump_without_unused_imports(text) if text else _render_operations(migration),
    )


def compute_legacy_digests(
    parent_digests: Sequence[str], migration: Migration, text: str
) -> set[str]:
    """Return the hashes of version 1 that a file may have been recorded with: as it is, and as it
    was before its operations got `elidable`; arguments as of `compute_file_digest`.
    """
    if not text:
        return {_hash_lines(parent_digests, _render_operations(migration))}
    return {
        _hash_lines(parent_digests, _dump_module_statements(tree))
        for tree in (ast.parse(text), parse_without_elidable_keyword(text))
    }


def extract_function_and_dependencies(text: str, name: str) -> str:
    """Return the normalized code of one function of a file, with the parts of the file that it
    refers to; empty where the file does not define it.
    """
    parts: dict[str, ast.stmt] = {}
    for statement in parse_normalized_source(text).body if text else ():
        # a function inside of `if` or `try` is found by the statement around it
        for node in [statement, *ast.walk(statement)]:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                parts.setdefault(node.name, statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                parts.setdefault(node.id, statement)
    waiting, found = [name], dict[str, str]()
    while waiting:
        wanted = waiting.pop()
        if wanted in parts and wanted not in found:
            found[wanted] = _dump_node(parts[wanted])
            used = (n.id for n in ast.walk(parts[wanted]) if isinstance(n, ast.Name))
            # the declaration names each function of the file: with it any edit would change the
            # step
            waiting += (other for other in used if other != "migration")
    return "\n".join(found[key] for key in sorted(found))


def _render_operations(migration: Migration) -> Iterator[str]:
    imports = Imports()
    return (operation.source(imports) for operation in migration.operations)


def _hash_lines(parent_digests: Sequence[str], lines: Iterable[str]) -> str:
    hashed = hashlib.sha256()
    for parent in parent_digests:
        hashed.update(f"after {parent}\n".encode())
    for line in lines:
        hashed.update(f"{line}\n".encode())
    return hashed.hexdigest()


def _dump_without_unused_imports(text: str) -> Iterator[str]:
    """The lines without the imports that nothing uses, such as those of annotations."""
    lines = list(_dump_module_statements(parse_normalized_source(text)))
    imports = sum(line.startswith(_IMPORT) for line in lines)
    # a search in the text of the tree: a wrong hit only keeps an import in the hash
    code = "".join(lines[imports:])
    for line in lines[:imports]:
        _, module, name, bound = line.split(" ")
        used = f"Name(id={(bound or name).partition('.')[0]!r})"
        # the names that a star imports are not known
        if name == "*" or (module != "__future__" and used in code):
            yield line
    yield from lines[imports:]


def _dump_module_statements(tree: ast.Module) -> Iterator[str]:
    imported: list[str] = []
    rest: list[ast.stmt] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            module = getattr(statement, "module", None) or ""
            # one line for each name, so that `import a, b` and two statements are the same
            imported += [f"{_IMPORT}{module} {a.name} {a.asname or ''}" for a in statement.names]
        elif not _is_docstring(statement):
            rest.append(statement)
    yield from sorted(set(imported))
    yield from map(_dump_node, rest)


def _is_docstring(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _dump_node(node: Any) -> str:
    """A syntax tree as text; empty parts are left out, so that newer Pythons, which know more
    parts, write the same.
    """
    if isinstance(node, ast.Call):
        return f"Call({_dump_node(node.func)},{_dump_node(node.args)},{_dump_keywords(node)})"
    if isinstance(node, ast.AST):
        parts = [
            f"{name}={_dump_node(value)}"
            for name, value in ast.iter_fields(node)
            # Python 3.12 has `type_params` of a function, which 3.11 does not know; empty, it is
            # left out
            if name not in _UNIMPORTANT and value not in (None, [])
        ]
        return f"{type(node).__name__}({','.join(parts)})"
    if isinstance(node, list):
        items: list[Any] = node  # pyright: ignore[reportUnknownVariableType] - a list of nodes
        return f"[{','.join(map(_dump_node, items))}]"
    return repr(node)


def _dump_keywords(call: ast.Call) -> str:
    of_file = isinstance(call.func, ast.Name) and call.func.id == "Migration"
    kept = [k for k in call.keywords if not (of_file and k.arg in _GRAPH)]
    written = [f"{keyword.arg}={_dump_node(keyword.value)}" for keyword in kept]
    # behind **options the order decides which value counts
    if all(keyword.arg for keyword in kept):
        written.sort()
    return ",".join(written)
