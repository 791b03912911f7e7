"""The tables of jobs, which are those of PgQueuer: migrations make them for projects that use jobs.

Found by the entry point `jobs` of the group `treefold.tables`, whose contract belongs to
treefold-migrations. Nothing of PgQueuer is imported before a project uses jobs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from treefold_jobs._sources import uses_jobs
from treefold_orm import ConfigurationError
from treefold_orm.connections import backend_of


@dataclass(frozen=True, slots=True)
class TableScripts:
    """The tables of the installed PgQueuer, as SQL for PostgreSQL.

    Attributes:
        digest: changes when the tables of another version differ.
        make: creates them; several statements.
        update: brings those of any earlier version up to date, one statement after the other.
        remove: drops them, with all jobs; several statements.
    """

    digest: str
    make: str
    update: list[str]
    remove: str


class JobTables:
    """What migrations ask about the tables of jobs."""

    title = "tables of jobs"
    words = "job tables"
    maker = "PgQueuer"
    tables: Collection[str] = frozenset(
        ("pgqueuer", "pgqueuer_log", "pgqueuer_schedules", "pgqueuer_statistics")
    )

    def find_scripts(self, root: Path) -> TableScripts | None:
        """Return the SQL of the tables, or None for a project that needs none of them.

        Raises:
            ConfigurationError: PgQueuer is not installed, and the database is not SQLite, where
                jobs need no table.
        """
        if not uses_jobs(root):
            return None
        try:
            return render_scripts()
        except ConfigurationError:
            if _is_default_database_sqlite():
                return None
            raise


def render_scripts() -> TableScripts:
    """Return the SQL of the installed PgQueuer.

    Raises:
        ConfigurationError: it is not installed.
    """
    from treefold_jobs._engine import require_pgqueuer

    require_pgqueuer()
    from pgqueuer.adapters.persistence import schema_ddl
    from pgqueuer.domain.settings import db_settings

    settings = db_settings()
    whole = schema_ddl.render_install(settings).partition("\n\n")[2]  # without its version
    return TableScripts(
        hashlib.sha256(whole.encode()).hexdigest()[:12],
        whole,
        list(schema_ddl.render_converge(settings)),
        schema_ddl.render_uninstall(settings),
    )


def _is_default_database_sqlite() -> bool:
    try:
        return backend_of("default") == "sqlite"
    except ConfigurationError:
        return False
