"""Background work that survives: calls kept in PostgreSQL with the data, run by `treefold worker`.

`enqueue` and `aenqueue` keep a call, `later` and `alater` one with a time or a name, `Schedule`
declares one that is repeated. The queue is PgQueuer, of the extra `postgres`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from treefold_jobs.__about__ import __version__ as __version__

if TYPE_CHECKING:
    from treefold_jobs._enqueueing import (
        aenqueue as aenqueue,
        alater as alater,
        enqueue as enqueue,
        later as later,
    )
    from treefold_jobs._retries import job as job
    from treefold_jobs._schedules import Schedule as Schedule

# every boot of an application imports this package, and few of them use jobs
_LATER = {
    "Schedule": "_schedules",
    "aenqueue": "_enqueueing",
    "alater": "_enqueueing",
    "enqueue": "_enqueueing",
    "job": "_retries",
    "later": "_enqueueing",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)


__all__ = ["Schedule", "__version__", "aenqueue", "alater", "enqueue", "job", "later"]
