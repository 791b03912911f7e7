"""Rows to results inside of operations.

What is read in a transaction that has written may be undone with it: such instances carry the
transaction's journal, and `save()` after a rollback does not trust what they were read with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.journal import Journal, active

if TYPE_CHECKING:
    from treefold_orm._compile.plan import Plan


def decoded(plan: Plan, rows: Sequence[Any], *, batch_lazy: bool) -> list[Any]:
    """Results of the rows of a statement."""
    found: list[Any] = (plan.decode_lazy if batch_lazy else plan.decode)(rows)
    if active.journal is not None:
        mark_read(found, active.journal)
    return found


def decoded_one(plan: Plan, row: Any) -> Any:
    """The result of one row, alone in its result."""
    found = plan.decode_one(row)
    if active.journal is not None:
        mark_read([found], active.journal)
    return found


def mark_read(found: Sequence[Any], journal: Journal) -> None:
    """Note the transaction that rows were read in, where it has written before."""
    mark = journal.mark()
    if mark is None or not found or not hasattr(found[0], "_read_in"):
        return
    joined = [name for name in found[0].__dict__ if name.startswith("_cached_")]
    for item in found:
        item._read_in = mark
    for name in joined:
        mark_read([o for item in found if (o := item.__dict__[name]) is not None], mark)
