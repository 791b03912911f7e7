"""Hold the share of functions that are named by one word, package by package.

    python tools/verbs.py [FOLDER ...]          the packages in these folders, by default all
    python tools/verbs.py --list PACKAGE        the functions that count

A function inside says what it does to what: a verb with its object. Counted are the functions and
methods of private modules, with and without underscore. Not counted are special methods, and what
users call: public functions, and the public methods of public classes, whose names are the
interface. A few verbs of the field stand alone.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ALONE = frozenset(("run", "open", "close", "read", "write", "send", "resolve", "compile", "filter"))
MOST_WORDS, MOST_PARTICIPLES = 15, 5
"""The percentages of functions of one word, and of participles, that a package may have."""
ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Function:
    """A function of a private module: its place, its qualified name, and its name without `_`."""

    place: str
    qualified: str
    name: str

    @property
    def is_one_word(self) -> bool:
        return "_" not in self.name and self.name not in ALONE

    @property
    def is_participle(self) -> bool:
        return self.is_one_word and self.name.endswith("ed")


def main() -> None:
    """Print the shares, and fail if one is above its ceiling."""
    if sys.argv[1:2] == ["--list"]:
        for each in functions(ROOT / "packages" / sys.argv[2]):
            if each.is_one_word:
                print(f"{each.place} {each.qualified}")
        return
    folders = [Path(word) for word in sys.argv[1:]] or sorted((ROOT / "packages").iterdir())
    above = [line for folder in folders if (line := check(folder)) is not None]
    for line in above:
        print(line, file=sys.stderr)
    sys.exit(bool(above))


def check(package: Path) -> str | None:
    """Print the shares of a package; return a line if one is above its ceiling."""
    found = list(functions(package))
    if not found:
        return None
    words = 100 * sum(each.is_one_word for each in found) / len(found)
    participles = 100 * sum(each.is_participle for each in found) / len(found)
    print(f"{package.name:12} {len(found):5} functions, {words:4.1f} % of one word,", end=" ")
    print(f"{participles:3.1f} % participles")
    if words <= MOST_WORDS and participles <= MOST_PARTICIPLES:
        return None
    return (
        f"{package.name}: at most {MOST_WORDS} % of the functions may have a name of one word, and"
        f" {MOST_PARTICIPLES} % a participle; see `python tools/verbs.py --list {package.name}`"
    )


def functions(package: Path) -> Iterator[Function]:
    """Yield the functions of a package that count."""
    files = sorted((package / "src").rglob("*.py"))
    public = {name for file in files if not is_private(file) for name in names_in(file)}
    for file in files:
        if is_private(file):
            tree = ast.parse(file.read_bytes())
            for qualified, node in defined(tree, ()):
                name = node.name
                if name.startswith("__") or is_public(qualified, public):
                    continue
                place = f"{file.relative_to(package / 'src')}:{node.lineno}"
                yield Function(place, ".".join(qualified), name.strip("_"))


def is_private(file: Path) -> bool:
    """Return True for a module, or a module of a package, that users do not import."""
    parts = file.parts[file.parts.index("src") + 1 :]
    return any(part.startswith("_") for part in parts if part != "__init__.py")


def names_in(file: Path) -> set[str]:
    """Return the names that a public module imports, or has as texts for a lazy import."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and str(node.value).isidentifier():
            found.add(str(node.value))
    return found


def is_public(qualified: tuple[str, ...], public: set[str]) -> bool:
    """Return True for a name that the interface has."""
    return qualified[0] in public and not any(part.startswith("_") for part in qualified)


def defined(
    node: ast.AST, outer: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield each function below a node with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield (*outer, child.name), child
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from defined(child, (*outer, child.name))
        else:
            yield from defined(child, outer)


if __name__ == "__main__":
    main()
