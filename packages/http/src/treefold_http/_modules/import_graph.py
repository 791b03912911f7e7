"""The import graph of a project; used only by a reload.

Source text is parsed, nothing is run. A false dependency costs one import too many, a missed one
leaves old code in place. So imports inside functions count, and so do the modules that define the
classes, functions or instances among a module's globals.

Example, the names of `Services/mail.py` and the edges that they make:

    from Models.user import User      Models.user, Models.user.User
    from . import templates           Services, Services.templates
    import smtp.client                smtp, smtp.client
    import_module(".queue", __package__)        Services.queue

`Models.user.User` is no module and leads nowhere; a change of `Models/user.py` runs `mail.py` too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any


def parse_imports(source: bytes, package: str) -> frozenset[str]:
    """Return the dotted names that a source may import; `from a import b` counts as `a.b` too.

    Args:
        source: the text of a module.
        package: the package that its relative imports start from.

    Returns:
        The names; none if the source cannot be parsed.
    """
    try:
        tree = ast.parse(source)
    # the module is loaded, but its file may be broken by now; Python 3.11 has a ValueError for a
    # null byte
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(_yield_imported_names(tree, package))


def _yield_imported_names(tree: ast.AST, package: str) -> Iterator[str]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        # such an import never runs: as an edge it would only import more modules again
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            for alias in node.names:
                # `import a.b.c as x` binds c itself, so the code has no name for `a` and `a.b`
                yield from [alias.name] if alias.asname else _yield_name_and_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = _resolve_import_name(node.module or "", node.level, package)
            yield base
            # the source does not say whether the name is a submodule or an attribute
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call):
            yield from _yield_dynamic_imports(node, package)


def _yield_dynamic_imports(call: ast.Call, package: str) -> Iterator[str]:
    """`import_module("Services.mail")` and `import_module(".mail", __package__)`."""
    called = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    if called not in ("import_module", "__import__") or not call.args:
        return
    name = call.args[0]
    # a computed name is noted when the call runs, in `ModuleSpace.computed`
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        bare = name.value.lstrip(".")
        yield _resolve_import_name(bare, len(name.value) - len(bare), package)


def _resolve_import_name(name: str, level: int, package: str) -> str:
    if not level:
        return name
    parts = package.split(".")
    # one dot is the package itself and each further one its parent: `..b` in `a.c` is `a.b`
    above = parts[: len(parts) - level + 1]
    return ".".join([*above, name] if name else above)


def _yield_name_and_parents(name: str) -> Iterator[str]:
    """The name and its packages: `import a.b.c` binds `a`, and the code uses `b` through it."""
    parts = name.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def _is_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def find_referenced_modules(module: ModuleType) -> Iterator[str]:
    """Yield the names of the modules that define the values of a module's globals."""
    own = f"{module.__name__}."
    # copied: requests in other threads may set globals meanwhile
    for value in list(vars(module).values()):
        origin = _find_defining_module(value)
        # A submodule becomes an attribute of its package by its import, whether or not it is used.
        if isinstance(origin, str) and not (
            isinstance(value, ModuleType) and origin.startswith(own)
        ):
            yield origin


def _find_defining_module(value: Any) -> Any:
    if isinstance(value, ModuleType):
        return value.__name__
    made_of = value if isinstance(value, (type, FunctionType)) else type(value)
    return getattr(made_of, "__module__", None)


def transitive_closure(names: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the transitive closure of some names, themselves included."""
    found: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        # modules may import each other in a circle
        if name not in found:
            found.add(name)
            pending.extend(edges.get(name, ()))
    return found
