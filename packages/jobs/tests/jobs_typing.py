"""What type checkers must infer of calls that are enqueued.

pyright checks this file with all others; `mypy --strict` on this file must be clean as well. The
lines marked as ignored must be errors: both checkers report an ignore that is not needed.
"""

from __future__ import annotations

from treefold_jobs import Schedule, aenqueue, enqueue


async def confirm(order: int, *, by: str) -> bool:
    return bool(order and by)


async def arguments_of_jobs() -> None:
    """The arguments of a job are those of its function."""
    await aenqueue(confirm, 1, by="mail")
    await aenqueue(confirm, "1", by="mail")  # type: ignore[arg-type]
    enqueue(confirm, 1)  # type: ignore[call-arg]
    Schedule("0 6 * * *", confirm, 1, to="mail")  # type: ignore[call-arg]
