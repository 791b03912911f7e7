"""Background work that survives: calls kept in PostgreSQL with the data, run by `treefold worker`.

`enqueue` and `aenqueue` keep a call, `Schedule` declares one that is repeated. The queue is
PgQueuer, of the extra `jobs`.
"""

from treefold_orm._jobs.enqueueing import aenqueue as aenqueue, enqueue as enqueue
from treefold_orm._jobs.schedules import Schedule as Schedule

__all__ = ["Schedule", "aenqueue", "enqueue"]
