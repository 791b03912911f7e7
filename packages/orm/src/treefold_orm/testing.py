"""For tests: `OwnDatabases` replaces the configured databases for the length of a run, `sandbox`
undoes what a test did. The pytest fixture `db` is made of both. `make` creates rows whose values
fit their fields. `is_diverted` tells whether the
databases are those of a run.
"""

from treefold_orm._framework.making import amake as amake, make as make
from treefold_orm._framework.own_databases import OwnDatabases as OwnDatabases
from treefold_orm._runtime.connections import is_diverted as is_diverted
from treefold_orm._runtime.sandbox import sandbox as sandbox

__all__ = ["OwnDatabases", "amake", "is_diverted", "make", "sandbox"]
