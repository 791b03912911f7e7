"""The names of jobs, which have a package of their own: `treefold_jobs`.

Code that was written for `treefold_orm.jobs` keeps running where treefold-jobs is installed. The
ORM requires it in no way; type checkers see the names in `treefold_jobs` alone.
"""

from importlib import import_module
from typing import Any

try:
    _jobs = import_module("treefold_jobs")
except ModuleNotFoundError as error:
    if error.name != "treefold_jobs":
        raise
    raise ModuleNotFoundError(
        "treefold_orm.jobs needs treefold-jobs: pip install treefold-jobs", name=error.name
    ) from None

Schedule: Any = _jobs.Schedule
aenqueue: Any = _jobs.aenqueue
enqueue: Any = _jobs.enqueue

__all__ = ["Schedule", "aenqueue", "enqueue"]
