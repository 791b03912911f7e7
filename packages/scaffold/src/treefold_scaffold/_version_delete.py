"""`version delete`: remove a whole version, unless another one inherits from it."""

import contextlib
import os
import secrets
from pathlib import Path

from treefold_scaffold._errors import ScaffoldError
from treefold_scaffold._inherited_names import list_named_versions
from treefold_scaffold._layered_tree import read_layers, walk_entries
from treefold_scaffold._version_copy import DRAFT, choose_draft_parent, lock_api, remove_tree
from treefold_scaffold._version_overlay import list_heirs, require_api
from treefold_scaffold._version_plan import choose_source_version


def delete_version(app_dir: str | os.PathLike[str], version: str) -> tuple[str, int]:
    """Remove the folder of a version.

    Args:
        app_dir: the application root, the folder that holds `Api/`.
        version: the version, `1` or `v1`.

    Returns:
        Its name, and the number of its files.

    Raises:
        ScaffoldError: there is no such version, another one inherits from it or calls one of its
            handlers, or another process is making a version.
        RouterError: a `version.toml` is invalid.
        OSError: the folder cannot be removed.
    """
    api = require_api(app_dir)
    name = choose_source_version(api, version)
    if heirs := list_heirs(read_layers(api), name):
        shown = ", ".join(heirs)
        verb = "inherits" if len(heirs) == 1 else "inherit"
        raise ScaffoldError(
            f"Version {name!r} cannot be deleted, {shown} {verb} from it; run 'treefold version"
            f" flatten {heirs[0][1:]}' first, or write serve = false in Api/{name}/version.toml"
        )
    if file := _find_file_that_calls(api, name):
        raise ScaffoldError(
            f"Version {name!r} cannot be deleted, {file!r} calls its handler by Inherited; give"
            f" that file an answer of its own, or write serve = false in Api/{name}/version.toml"
        )
    count = sum(not entry.is_dir(follow_symlinks=False) for _, entry in walk_entries(api / name))
    with lock_api(api):
        # out of `Api/` in one step: a watcher or a killed run never sees half a version
        draft = choose_draft_parent(Path(app_dir), api) / f"{DRAFT}{secrets.token_hex(4)}"
        (api / name).rename(draft)
        remove_tree(draft)
    return name, count


def _find_file_that_calls(api: Path, version: str) -> str:
    """Return the first file of another version that converts answers of a version by its name."""
    for path, entry in walk_entries(api):
        is_source = path.endswith(".py") and not path.startswith(f"{version}/")
        if is_source and entry.is_file(follow_symlinks=False):
            with contextlib.suppress(SyntaxError, ValueError):
                if version in list_named_versions(Path(entry.path).read_bytes()):
                    return f"Api/{path}"
    return ""
