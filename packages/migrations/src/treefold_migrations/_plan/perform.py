"""One step, carried out: the statements of a runner, as an operation of the ORM.

Transactions, locks, the journal and retries are the runner's.
"""

from __future__ import annotations

from typing import Any

from treefold_migrations._base.errors import RunError
from treefold_migrations._inspect.sqlite_losses import refuse_unknown_table_parts
from treefold_migrations._plan.guards import format_check_error
from treefold_migrations._plan.step import Step
from treefold_orm.schema import Operation, Statement


def perform_step(step: Step) -> Operation[None]:
    """Run one step and its check.

    Raises:
        RunError: the check found rows, or the live table has parts that the step would lose; the
            statement, where it ran, must be rolled back.
    """
    # inside of the transaction of the step, so that no part can be added between look and loss
    if step.known is not None:
        yield from refuse_unknown_table_parts(step.known)
    if step.generates:
        # all rows are read first: the statements change the catalog that the query reads
        rows: list[Any] = yield Statement("rows", step.sql)
        for row in rows:
            yield Statement("script", row[0])
    elif step.repeat:
        while (yield Statement("count", step.sql)):
            pass
    elif step.sql:
        yield Statement("script", step.sql)
    if step.verify:
        found: list[Any] = yield Statement("rows", step.verify)
        if found:
            raise RunError(format_check_error(step, tuple(found[0])))
