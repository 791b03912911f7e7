"""The package alone: what it needs, and what its root gives."""

from __future__ import annotations

import subprocess
import sys

import treefold_migrations
from treefold_migrations import MigrationError


def test_every_public_name_is_there() -> None:
    names = vars(treefold_migrations)["__all__"]
    assert [name for name in names if not hasattr(treefold_migrations, name)] == []


def test_every_error_is_a_migration_error() -> None:
    found = [getattr(treefold_migrations, name) for name in vars(treefold_migrations)["__all__"]]
    errors = [kind for kind in found if isinstance(kind, type) and issubclass(kind, Exception)]
    assert [kind for kind in errors if not issubclass(kind, MigrationError)] == []
    assert len(errors) >= 8


def test_a_boot_imports_no_part_of_the_package() -> None:
    code = (
        "import sys, treefold_migrations._extension.migrations as extension\n"
        "extension.Migrations()\n"
        "print([n for n in sys.modules if n.startswith('treefold_migrations._') and "
        "not n.startswith(('treefold_migrations._extension', 'treefold_migrations.__'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
