"""Writing migration files: a docstring that describes them, imports, and one assignment.

Example, the file of `AddField("book", "pages", fields.IntegerField(null=True))` after another one;
it opens with the docstring `Add field book.pages.`:

    from treefold_migrations import AddField, Migration
    from treefold_orm import fields

    migration = Migration(
        after=["0001_initial"],
        operations=[
            AddField("book", "pages", fields.IntegerField(null=True)),
        ],
    )
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from treefold_migrations._base.errors import FileError
from treefold_migrations._files.layout import WIDTH, format_expression
from treefold_migrations._files.names import require_migration_name
from treefold_migrations._operations.base import Operation
from treefold_orm.schema import Import, Imports, quoted

_OWN_PACKAGES = ("treefold_orm", "treefold_migrations")
_DOCSTRING_WIDTH = 80
"""Characters of one operation in the docstring: with its quotes it stays below `WIDTH`."""


def render_migration_source(
    after: Sequence[str],
    operations: Sequence[Operation],
    *,
    replaces: Mapping[str, str] | None = None,
    title: str = "",
) -> str:
    """Return the text of a migration file.

    Raises `StateError` for a part that a file cannot hold.
    """
    imports = Imports()
    imports.name("treefold_migrations", "Migration")
    written = [operation.source(imports) for operation in operations]
    given = {"after": f"[{', '.join(map(quoted, after))}]"}
    if replaces:
        pairs = [f"{quoted(name)}: {quoted(digest)}" for name, digest in replaces.items()]
        given["replaces"] = f"{{{', '.join(pairs)}}}"
    lines = ["migration = Migration("]
    for name, text in given.items():
        shown = format_expression(text, indent=4, prefix_width=len(name) + 1, suffix_width=1)
        lines.append(f"    {name}={shown},")
    if written:
        lines.append("    operations=[")
        lines += [
            f"        {format_expression(text, indent=8, suffix_width=1)}," for text in written
        ]
        lines.append("    ],")
    else:
        lines.append("    operations=[],")
    lines.append(")")
    head = f"{_render_docstring(operations, title)}\n\n{render_imports(imports)}\n\n"
    return head + "\n".join(lines) + "\n"


def _render_docstring(operations: Sequence[Operation], title: str) -> str:
    described = [title] if title else []
    described += [operation.describe() for operation in operations]
    described = described or ["change nothing yet"]
    lines = [_sanitize_docstring_line(line[0].upper() + line[1:]) for line in described]
    if len(lines) == 1:
        return f'"""{lines[0]}."""'
    return '"""' + ".\n".join(lines) + '.\n"""'


def _sanitize_docstring_line(line: str) -> str:
    # names come from models: a quote or backslash would end the docstring, or escape its end
    kept = "".join(c for c in line if c.isprintable()).replace("\\", "/").replace('"', "'")
    return kept[:_DOCSTRING_WIDTH].rstrip()


def render_imports(imports: Iterable[Import]) -> str:
    """Return import statements, sorted as isort does, our own packages last."""
    modules: dict[str, list[str]] = {}
    for module, name in imports:
        modules.setdefault(module, []).append(name)
    plain = [f"import {m}" for m, names in sorted(modules.items()) if "" in names]
    others = [m for m in sorted(modules) if m not in _OWN_PACKAGES and any(modules[m])]
    head = plain + [_render_from_import(m, modules[m]) for m in others]
    ours = [_render_from_import(m, modules[m]) for m in sorted(_OWN_PACKAGES) if m in modules]
    return "\n".join(head) + ("\n\n" if head else "") + "\n".join(ours)


def _render_from_import(module: str, names: Sequence[str]) -> str:
    kept = sorted({name for name in names if name}, key=_isort_key)
    line = f"from {module} import {', '.join(kept)}"
    if len(line) <= WIDTH:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in kept) + ")"


def _isort_key(name: str) -> tuple[int, str]:
    # CONSTANTS, then Classes, then functions
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def write_migration(
    folder: str | os.PathLike[str],
    name: str,
    after: Sequence[str],
    operations: Sequence[Operation],
    *,
    replaces: Mapping[str, str] | None = None,
    title: str = "",
) -> Path:
    """Write a migration file, completely or not at all; return its path.

    Raises `FileError` for a name that is none, or that a file has already.
    """
    path = Path(folder) / f"{require_migration_name(name)}.py"
    write_new_file(path, render_migration_source(after, operations, replaces=replaces, title=title))
    return path


def write_new_file(path: Path, text: str) -> None:
    """Write a file where there is none, completely or not at all.

    Raises `FileError` for a file that is there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp")
    try:
        # in the same folder, since a link cannot cross file systems
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _move_without_overwrite(temporary, path)
    except FileExistsError:
        raise FileError(f"{path} must not exist yet; choose another name") from None
    finally:
        temporary.unlink(missing_ok=True)


def _move_without_overwrite(source: Path, target: Path) -> None:
    """Move a file to a place where there is none; `FileExistsError` where there is one."""
    try:
        os.link(source, target)  # fails where the file exists, unlike a rename
    except FileExistsError:
        raise
    except OSError:  # the file system has no links
        if target.exists():
            raise FileExistsError(target) from None
        source.rename(target)
