"""What `check` reports about versions that inherit."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._checks.findings import Kind, Problem
from treefold_router import RouteTable

if TYPE_CHECKING:
    from treefold_http import Application


def find_layer_problems(table: RouteTable) -> Iterator[Problem]:
    """Yield marks that remove nothing, and names that mean something else than in a copy."""
    for finding in table.find_layer_findings():
        files = tuple(f"Api/{file}" for file in finding.files)
        yield Problem(Kind.LAYER, finding.message, files, code=finding.code)


def find_lost_guard_problems(app: "Application") -> Iterator[Problem]:
    """Yield middleware that covers a version, and not the same place of one that inherits it."""
    from treefold_http.extensions import find_lost_guards

    project = app.project
    for lost in find_lost_guards(app.table, project.boot_files.middlewares, project.modules):
        yield Problem(Kind.LAYER, str(lost), ("Middleware/__init__.py",), code="guard-lost")


def find_unread_data_files(table: RouteTable) -> Iterator[Problem]:
    """Yield data files beside inherited code that reads the files beside itself, in its base."""
    api, layers = table.root, table.layers
    for path, file in sorted(layers.files.items()):
        folder = api / path.rpartition("/")[0]
        own = sorted(filter(_is_data_file, folder.iterdir())) if folder.is_dir() else []
        if own and b"__file__" in (api / file).read_bytes():
            base, version = file.partition("/")[0], path.partition("/")[0]
            shown = f"Api/{own[0].relative_to(api).as_posix()}"
            message = (
                f"Api/{file} reads files beside itself, which are those of {base}; give {version} a"
                f" file of its own in its place, or remove {shown}"
            )
            yield Problem(Kind.LAYER, message, (shown,), code="layer-data")


def _is_data_file(path: Path) -> bool:
    if path.name.startswith(".") or path.name == "version.toml":
        return False
    return path.is_file() and path.suffix not in (".py", ".pyi", ".gone")


def find_unchanged_files(table: RouteTable) -> Iterator[Problem]:
    """Yield own files that are the same as the file that would be inherited."""
    layers = table.layers
    for version, chain in layers.chains.items():
        for entry in layers.own[version]:
            below = "/".join(entry.parts[1:])
            base = layers.files.get(f"{chain[1]}/{below}", f"{chain[1]}/{below}")
            own, inherited = table.root / entry.file, table.root / base
            if entry.defect or not inherited.is_file():
                continue
            if own.read_bytes() == inherited.read_bytes():
                message = f"File equals Api/{base}, which {version} would inherit; remove it"
                yield Problem(Kind.LINT, message, (f"Api/{entry.file}",), code="layer-unchanged")
