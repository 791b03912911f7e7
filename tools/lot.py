"""Draw functions and files by lot, for a reader who judges names and pages and was not there.

    python tools/lot.py SEED                    100 functions and 40 files
    python tools/lot.py SEED --places           the functions with the places where they stand

The reader says what each function does from its class, name and signature alone, and reads the
files whole. A commit chosen after the work is done is a seed that nobody could prepare for. Lists
and scores stand in `docs/project/decisions.md`.
"""

from __future__ import annotations

import ast
import random
import sys
from pathlib import Path

from verbs import ROOT, defined, functions, is_private

FUNCTIONS, FILES = 100, 40
SHORTEST = 40
"""The lines of a file that is worth a reading."""


def main() -> None:
    """Print the lot of a seed."""
    seed, places = sys.argv[1], "--places" in sys.argv
    draw = random.Random(seed)  # noqa: S311 - a lot that anybody can draw again
    packages = sorted((ROOT / "packages").iterdir())
    everything = [(package, each) for package in packages for each in functions(package)]
    for number, (package, each) in enumerate(draw.sample(everything, FUNCTIONS), 1):
        print(f"{number:3} {render_signature(package, each.place, each.qualified)}")
        if places:
            print(f"    {package.name}: {each.place}")
    files = [
        file
        for package in packages
        for file in sorted((package / "src").rglob("*.py"))
        if is_private(file) and len(file.read_text("utf-8").splitlines()) >= SHORTEST
    ]
    print()
    for file in sorted(draw.sample(files, FILES)):
        print(file.relative_to(ROOT))


def render_signature(package: Path, place: str, qualified: str) -> str:
    """Return a function as its caller sees it: class, name, parameters and result."""
    path, _, line = place.rpartition(":")
    tree = ast.parse((package / "src" / path).read_bytes())
    for names, node in defined(tree, ()):
        if node.lineno == int(line) and ".".join(names) == qualified:
            result = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
            kind = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
            return f"{kind}{qualified}({ast.unparse(node.args)}){result}"
    raise LookupError(f"{place} has no function {qualified}")


if __name__ == "__main__":
    main()
