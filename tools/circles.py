"""Check that no more than three files of a package import each other in a circle.

    python tools/circles.py          # prints each larger circle, with what ties it
    python tools/circles.py --all    # prints every circle

Imports under `TYPE_CHECKING` and inside functions count: a reader follows them too. Four files in
a circle are read as one file of four times the length.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LARGEST = 3


def main() -> int:
    """Print the circles that are too large, or all; return 1 if one is too large."""
    failed = False
    for source in sorted(ROOT.glob("packages/*/src/*/")):
        imports = read_imports(source)
        for circle in find_circles(imports):
            too_large = len(circle) > LARGEST
            failed |= too_large
            if too_large or "--all" in sys.argv:
                print("\n".join(describe_circle(circle, imports)), file=sys.stderr)
    return int(failed)


def read_imports(package: Path) -> dict[str, set[str]]:
    """Return which modules of a package each of them imports, by dotted names."""
    files = {module_name(path, package): path for path in sorted(package.rglob("*.py"))}
    return {
        name: set(imported_modules(ast.parse(path.read_text()), set(files))) - {name}
        for name, path in files.items()
    }


def module_name(path: Path, package: Path) -> str:
    """Return the dotted name of a file of a package."""
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    """Yield those of `modules` that code imports, by whole or by a name in them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in modules:
                    yield inner
                elif node.module in modules:
                    yield node.module


def find_circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected modules, each circle sorted, the largest circle first.

    Two passes over the graph, as Kosaraju: modules by when they are left, then backwards.
    """
    order: list[str] = []
    seen: set[str] = set()
    for start in sorted(imports):
        stack = [(start, False)]
        while stack:
            name, is_left = stack.pop()
            if is_left:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                stack.append((name, True))
                stack += ((other, False) for other in sorted(imports[name]) if other not in seen)
    importers: dict[str, set[str]] = {name: set() for name in imports}
    for name, others in imports.items():
        for other in others:
            importers[other].add(name)
    circles: list[list[str]] = []
    for start in reversed(order):
        circle: list[str] = []
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name in seen:
                seen.remove(name)
                circle.append(name)
                waiting += importers[name] & seen
        if len(circle) > 1:
            circles.append(sorted(circle))
    return sorted(circles, key=len, reverse=True)


def describe_circle(circle: list[str], imports: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield lines that name the files of a circle, and the imports that tie them."""
    limit = f", and at most {LARGEST} may" if len(circle) > LARGEST else ""
    yield f"{len(circle)} files import each other{limit}:"
    for name in circle:
        yield f"  {name} imports {', '.join(sorted(imports[name] & set(circle)))}"


if __name__ == "__main__":
    sys.exit(main())
