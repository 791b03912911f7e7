"""Print how much code each package has, and how often it gives a reason.

    python tools/sizes.py [FOLDER ...]          the sources in these folders, or all packages

Code is the lines without docstrings, comments and blanks. A comment that only speaks to a tool
(`# noqa`, `# pyright: ...`) is none, whether it stands on a line of its own or behind code.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIRECTIVE = re.compile(r"#\s*(noqa|type:|pyright:|ruff:|fmt:|pragma:|mypy:|!)")
WITHOUT_CODE = frozenset(
    (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
)


@dataclass(frozen=True)
class Size:
    """Files, and lines of each kind."""

    files: int = 0
    code: int = 0
    docstrings: int = 0
    comments: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(
            self.files + other.files,
            self.code + other.code,
            self.docstrings + other.docstrings,
            self.comments + other.comments,
        )

    @property
    def comments_per_thousand(self) -> float:
        return 1000 * self.comments / self.code if self.code else 0.0


def main() -> None:
    """Print a line for each folder, and their sum."""
    folders = [Path(word) for word in sys.argv[1:]] or sorted(ROOT.glob("packages/*/src"))
    print(f"{'':28}{'files':>7}{'code':>8}{'docstrings':>12}{'comments':>10}{'of 1,000':>10}")
    total = Size()
    for folder in folders:
        size = measure(sorted(folder.rglob("*.py")))
        name = folder.parent.name if folder.name == "src" else str(folder)
        print_row(name, size)
        total += size
    if len(folders) > 1:
        print_row("all", total)


def print_row(name: str, size: Size) -> None:
    counts = f"{size.files:7,}{size.code:8,}{size.docstrings:12,}{size.comments:10,}"
    print(f"{name:28}{counts}{size.comments_per_thousand:10.1f}")


def measure(files: Iterable[Path]) -> Size:
    """Return the sum of some files."""
    return sum((measure_text(file.read_text(encoding="utf-8")) for file in files), Size())


def measure_text(text: str) -> Size:
    """Return the size of one file."""
    documented = find_docstring_lines(text)
    code, comments = set[int](), set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        lines = range(token.start[0], token.end[0] + 1)
        if token.type == tokenize.COMMENT:
            if not DIRECTIVE.match(token.string):
                comments.update(lines)
        elif token.type not in WITHOUT_CODE:
            code.update(lines)
    return Size(1, len(code - documented), len(documented), len(comments))


def find_docstring_lines(text: str) -> set[int]:
    """Return the lines of the docstrings of modules, classes, functions, and of attributes."""
    lines = set[int]()
    for node in ast.walk(ast.parse(text)):
        match node:  # a string that is a statement of its own does nothing else
            case ast.Expr(value=ast.Constant(value=str()), lineno=first, end_lineno=last):
                lines.update(range(first, (last or first) + 1))
            case _:
                pass
    return lines


if __name__ == "__main__":
    main()
