"""Work: the second argument of a function of RunPython, after the models: progress, and batches
that resume.

`batched` hands rows to a function in batches. Where the operation is not atomic, each batch is a
transaction of its own, which keeps the position in the journal; a run after a crash goes on there.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack
from typing import Any, TypeVar

from treefold_migrations._base.errors import RunError
from treefold_migrations._records.effects import Flow, aexecute_flow, execute_flow
from treefold_orm import QuerySet
from treefold_orm.schema import HeldConnection

M = TypeVar("M", bound=Any)
SIZE = 1000
"""Rows that a batch has in memory, unless its author says otherwise."""
END = ""

Keep = Callable[[str, int], Flow[Callable[[], None]]]
"""Writes a position and a number of rows into the journal; what it returns is called once the
transaction is committed.
"""


class Work:
    """Given to the functions of RunPython as their second argument.

    Attributes:
        database: the alias of the database.
    """

    def __init__(
        self,
        held: HeldConnection,
        *,
        keep: Keep | None,
        position: str | None,
        tell: Callable[[str, int, int], None],
    ) -> None:
        self.database = held.alias
        self._held = held
        self._keep = keep
        # one for each call of `batched` in the function, by their order
        self._positions: list[str | None] = json.loads(position) if position else []
        self._calls = 0
        self._tell = tell

    def __call__(self, text: str, rows: int = 0, total: int = 0) -> None:
        """Tell how far the work has come.

        Args:
            text: for people.
            rows: how many rows are done.
            total: how many there are.
        """
        self._tell(text, rows, total)

    def batched(
        self, query: QuerySet[M], function: Callable[[list[M]], object], *, size: int = SIZE
    ) -> int:
        """Call a function with the rows of a query, at most `size` at a time, in the query's order,
        or that of the key.

        The changes of the function must not move rows in that order.

        Returns:
            How many rows this run has handed over; batches of an earlier run do not count.
        """
        place, after = self._take_next_batch_position()
        rows, total = 0, 0 if after == END else query.count()
        committed = ignore_commit
        while after != END:
            with ExitStack() as stack:
                if self._keep is not None:
                    stack.enter_context(self._held.transaction())
                # by key and not by OFFSET: rows that the function has changed may have left the
                # query
                page = query.keyset(size, after=after)
                if page.items:
                    function(page.items)
                after = page.next or END
                if self._keep is not None:
                    keep = self._keep(self._store_batch_position(place, after), len(page.items))
                    committed = execute_flow(self._held, keep)
            # behind the transaction: until then the batch may still be undone
            committed()
            rows += len(page.items)
            self._tell("", rows, max(rows, total))
        return rows

    async def abatched(
        self,
        query: QuerySet[M],
        function: Callable[[list[M]], Awaitable[object]],
        *,
        size: int = SIZE,
    ) -> int:
        """`batched` for async code."""
        place, after = self._take_next_batch_position()
        rows, total = 0, 0 if after == END else await query.acount()
        committed = ignore_commit
        while after != END:
            async with AsyncExitStack() as stack:
                if self._keep is not None:
                    await stack.enter_async_context(self._held.transaction())
                page = await query.akeyset(size, after=after)
                if page.items:
                    await function(page.items)
                after = page.next or END
                if self._keep is not None:
                    keep = self._keep(self._store_batch_position(place, after), len(page.items))
                    committed = await aexecute_flow(self._held, keep)
            committed()
            rows += len(page.items)
            self._tell("", rows, max(rows, total))
        return rows

    def _take_next_batch_position(self) -> tuple[int, str | None]:
        place = self._calls
        self._calls += 1
        if place == len(self._positions):
            self._positions.append(None)
        if place > len(self._positions):
            raise RunError("Batches cannot run side by side: await one before the next begins")
        return place, self._positions[place]

    def _store_batch_position(self, batch_call_index: int, position: str | None) -> str:
        self._positions[batch_call_index] = position
        return json.dumps(self._positions)


def ignore_commit() -> None:
    """Stands for what is done after a commit where nothing is kept."""
