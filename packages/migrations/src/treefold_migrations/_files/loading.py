"""Loading migration files: executed apart, without a trace in `sys.modules`.

Compiled code is cached beside the files, and used only for the very text that it was compiled
from: Python's own cache goes by size and whole seconds, and would run an edited file as it was.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from pathlib import Path
from types import CodeType, ModuleType

from treefold_migrations._base.errors import FileError, MigrationError
from treefold_migrations._files.history import History, LoadedMigration
from treefold_migrations._files.migration import Migration
from treefold_migrations._files.names import is_migration_name
from treefold_migrations._operations.base import MIGRATION_MODULE


def load_folder(folder: str | os.PathLike[str]) -> History:
    """Load all migrations of a folder; one that does not exist has none.

    Raises `FileError` for a file that fails or declares nothing, and `HistoryError` where the files
    do not fit together.
    """
    path = Path(folder)
    if not path.exists():
        return History(path, [])
    return History(path, [load_file(file) for file in _find_migration_files(path)])


def _find_migration_files(folder: Path) -> list[Path]:
    found: list[Path] = []
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        stem, ending = os.path.splitext(entry.name)
        # helpers of migrations may lie beside them
        if ending != ".py" or not stem[:1].isdigit():
            continue
        if not is_migration_name(stem):
            raise FileError(
                f"{entry.path} must be called like 0002_add_slug.py to be a migration; rename it, "
                "or begin its name with a letter"
            )
        found.append(Path(entry.path))
    return found


def load_file(path: Path) -> LoadedMigration:
    """Execute one migration file.

    Raises `FileError` with the file's name for any error in it.
    """
    name = path.stem
    module = ModuleType(f"{MIGRATION_MODULE}{name}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # dataclasses and annotations look there meanwhile
    try:
        exec(_compile_with_cache(path), module.__dict__)  # noqa: S102 - a migration is code of the application
    except MigrationError as error:
        raise FileError(f"{path.name} cannot be loaded: {error}") from error
    except Exception as error:
        kind = type(error).__name__
        raise FileError(f"{path.name} cannot be loaded: {kind}: {error}") from error
    finally:
        sys.modules.pop(module.__name__, None)
    declared = module.__dict__.get("migration")
    if not isinstance(declared, Migration):
        raise FileError(f"{path.name} must set migration = Migration(...), got {declared!r}")
    return LoadedMigration(name, declared, path)


_CHECKED_HASH = (3).to_bytes(4, "little")  # the flags of a cache that is valid by hash (PEP 552)


def _compile_with_cache(path: Path) -> CodeType:
    source = path.read_bytes()
    cache = Path(cache_from_source(str(path)))
    # The header of a `.pyc`, 16 bytes: 4 of the interpreter, 4 of flags, 8 of the source's hash. By
    # the hash of the text and not by its time: a checkout may give two texts one time.
    header = MAGIC_NUMBER + _CHECKED_HASH + source_hash(source)
    with contextlib.suppress(OSError, EOFError, ValueError, TypeError):
        cached = cache.read_bytes()
        if cached.startswith(header):
            code = marshal.loads(cached[len(header) :])  # noqa: S302 - as Python reads its caches
            if isinstance(code, CodeType):
                return code
    # without the `from __future__ import annotations` of this module
    code = compile(source, str(path), "exec", dont_inherit=True)
    if not sys.dont_write_bytecode:
        with contextlib.suppress(OSError):  # a folder that cannot be written has no cache
            cache.parent.mkdir(parents=True, exist_ok=True)
            unfinished = cache.with_name(f"{cache.name}.{os.getpid()}")
            unfinished.write_bytes(header + marshal.dumps(code))
            # in one move: another process must not read half of it
            unfinished.replace(cache)
    return code
