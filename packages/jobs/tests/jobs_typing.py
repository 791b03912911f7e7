"""What type checkers must infer of calls that are enqueued.

pyright checks this file with all others; `mypy --strict` on this file must be clean as well. The
lines marked as ignored must be errors: both checkers report an ignore that is not needed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from treefold_jobs import Schedule, aenqueue, alater, enqueue, job, later

INJECTED: Any = None
"""What `Depends()` is for a type checker."""


class Shop: ...


async def confirm(order: int, *, by: str) -> bool:
    return bool(order and by)


async def arguments_of_jobs() -> None:
    """The arguments of a job are those of its function."""
    await aenqueue(confirm, 1, by="mail")
    await aenqueue(confirm, "1", by="mail")  # type: ignore[arg-type]
    enqueue(confirm, 1)  # type: ignore[call-arg]
    Schedule("0 6 * * *", confirm, 1, to="mail")  # type: ignore[call-arg]


async def send(order: int, settings: Shop = INJECTED) -> None: ...


async def injected_parameters_have_defaults() -> None:
    """A call may leave out what the application provides."""
    await aenqueue(send, 7)
    enqueue(send, 7, settings=Shop())
    Schedule("0 6 * * *", send, 7)
    await aenqueue(send)  # type: ignore[call-arg]


async def options_are_bound_before_the_call() -> None:
    """The arguments of a later job are those of its function."""
    await alater(confirm, delay=60)(1, by="mail")
    later(confirm, at=datetime.now(UTC), unique="x")(1, by="mail")
    later(send, delay=timedelta(minutes=1))(7)
    later(confirm, delay=60)(1)  # type: ignore[call-arg]
    later(confirm, delay=60)("1", by="mail")  # type: ignore[arg-type]
    await alater(confirm, unique="x")(1, to="mail")  # type: ignore[call-arg]
    later(confirm, delay="60")(1, by="mail")  # type: ignore[arg-type]
    await later(confirm)(1, by="mail")  # type: ignore[misc]


@job(attempts=3)
async def charge(order: int) -> None: ...


async def a_declared_job_stays_its_function() -> None:
    """`@job` keeps the types of its function."""
    await charge(1)
    await aenqueue(charge, 1)
    await aenqueue(charge, "1")  # type: ignore[arg-type]
    job(attempts="3")  # type: ignore[arg-type]
