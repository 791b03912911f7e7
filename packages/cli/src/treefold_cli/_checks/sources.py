"""The source files of a project, without environments, caches and hidden files; their syntax."""

import ast
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

_ELSEWHERE = frozenset({"node_modules", "__pycache__", "site-packages", ".git"})


def project_files(root: Path) -> Iterator[Path]:
    """Yield every file below `root`, sorted within its folder; links to folders are not followed.

    Hidden folders, virtual environments and packages installed by tools are left out, except that
    a folder such as `.well-known` in `Api/` is a URL segment.
    """
    api = root / "Api"
    for folder, names, files in os.walk(root):
        shows = Path(folder).is_relative_to(api)
        entered = (n for n in names if _should_enter_folder(folder, n, shows_hidden=shows))
        names[:] = sorted(entered)
        place = Path(folder)
        yield from (place / name for name in sorted(files) if (place / name).is_file())


def parse_source(source: bytes) -> ast.Module | None:
    """Return the syntax tree of a source, without its warnings; None if it has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _should_enter_folder(folder: str, name: str, *, shows_hidden: bool) -> bool:
    is_environment = os.path.exists(os.path.join(folder, name, "pyvenv.cfg"))
    is_shown = shows_hidden or not name.startswith(".")
    return is_shown and name not in _ELSEWHERE and not is_environment
