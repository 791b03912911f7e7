"""Durable background work: the public names of `treefold_jobs`."""

try:
    from treefold_jobs import (
        Schedule as Schedule,
        aenqueue as aenqueue,
        alater as alater,
        enqueue as enqueue,
        job as job,
        later as later,
    )
except ModuleNotFoundError as error:
    if error.name != "treefold_jobs":
        raise
    raise ModuleNotFoundError(
        "treefold.jobs needs treefold-jobs: pip install treefold-jobs", name=error.name
    ) from None

__all__ = ["Schedule", "aenqueue", "alater", "enqueue", "job", "later"]
