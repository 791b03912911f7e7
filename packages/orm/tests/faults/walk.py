"""The walk itself: blocks of random calls that end in every way.

After each block the tables, the instances, the hooks and the pool must be what the oracle holds.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from typing import Any

from orm_halves import Handle

from faults.oracle import MODELS, NAMES, Coin, Owner, Shadow
from faults.steps import Steps, Undo
from faults.wire import Wire
from treefold_orm import (
    ConnectionFailed,
    IntegrityError,
    TransactionAborted,
    TransactionConflict,
    UniqueViolation,
    araw,
    raw,
    transaction,
)

INSTANCES = 14
ROWS = 16


async def query(h: Handle, sql: Any, **values: Any) -> Any:
    """Raw SQL in either half."""
    return await araw(sql, **values) if h.name == "async" else raw(sql, **values)


class Walk(Steps):
    """One walk over one database in one half."""

    def __init__(self, h: Handle, engine: str, seed: str, admin: Any, wire: Wire | None) -> None:
        super().__init__(h, engine, seed)
        self.admin = admin
        self.wire = wire
        self.kills = 0
        self.ends: dict[str, int] = {}
        self.fragile = False  # SQLite ends a transaction of which a write was cancelled

    # -- the walk ---------------------------------------------------------------------------------

    async def run(self, blocks: int) -> None:
        """Walk over a number of blocks."""
        for _ in range(2):
            await self.h(Owner.objects).create(name="o")
        ends: list[tuple[Callable[[], Awaitable[None]], int]] = [
            (self.plain, 6),
            (self.undone, 4),
            (self.outside, 4),
            (self.aborted, 1),
            (self.refused_commit, 1),
            (self.retried, 2),
        ]
        if self.engine == "postgres":
            ends += [(self.killed_between, 1), (self.killed_within, 1), (self.cut, 4)]
            ends += [(self.cut_outside, 2)]
        if self.h.name == "async":
            ends += [(self.cancelled, 4), (self.cancelled_savepoint, 2)]
        kinds, weights = zip(*ends, strict=True)
        for _ in range(blocks):
            self._forget_some()
            self.log.append("--")
            (end,) = self.source.choices(kinds, weights)
            self.ends[end.__name__] = self.ends.get(end.__name__, 0) + 1
            self.log.append(end.__name__)
            await end()
            await self.check()
            await self.save_again()

    def _forget_some(self) -> None:
        shadows = self.oracle.shadows
        self.source.shuffle(shadows)
        del shadows[INSTANCES:]
        del self.log[:-200]

    # -- ends of blocks ---------------------------------------------------------------------------

    async def plain(self) -> None:
        """A block that commits."""
        level = self.oracle.begin()
        async with self.h.transaction():
            await self.steps()
        self.oracle.commit(level)

    async def undone(self) -> None:
        """A block that is rolled back, by an exception or by its option."""
        level = self.oracle.begin()
        if self.source.random() < 0.5:
            async with self.h.transaction(rollback=True):
                await self.steps()
        else:
            with contextlib.suppress(Undo):
                async with self.h.transaction():
                    await self.steps()
                    raise Undo
        self.oracle.rollback(level)

    async def outside(self) -> None:
        """Calls outside of any transaction."""
        await self.steps(nested=False)

    async def aborted(self) -> None:
        """A violation that is caught inside the block."""
        level = self.oracle.begin()

        async def block() -> None:
            async with self.h.transaction():
                await self.steps()
                first = self.new(Coin, f"twice {self.number()}")
                self.oracle.writes()
                await self.h(first.obj).save()
                self.oracle.inserted(first)
                second = self.new(Coin, first.state.attrs["name"])
                await self.fails(UniqueViolation, lambda: self.h(second.obj).save())

        if self.engine == "sqlite":  # a statement that fails undoes itself alone
            await block()
            self.oracle.commit(level)
        else:
            await self.fails(TransactionAborted, block)
            self.oracle.rollback(level)

    async def refused_commit(self) -> None:
        """A deferred constraint that is not met."""
        level = self.oracle.begin()
        coins: list[Shadow] = []

        async def block() -> None:
            async with self.h.transaction():
                if self.engine == "sqlite":
                    self.oracle.writes()  # raw SQL may be anything
                    await query(self.h, "PRAGMA defer_foreign_keys = ON")
                await self.steps()
                coins.append(coin := self.new(Coin, f"homeless {self.number()}"))
                self.oracle.app_set(coin, "owner_id", 99)
                self.oracle.writes()
                await self.h(coin.obj).save()
                self.oracle.inserted(coin)

        await self.fails(IntegrityError, block)
        self.oracle.rollback(level)
        self.oracle.app_set(coins[0], "owner_id", None)

    async def retried(self) -> None:
        """A block that collides with another transaction, and is run again."""
        model = self.source.choice(MODELS)
        if not self.oracle.table[model]:
            await self.plain()
            return
        key = self.source.choice([*self.oracle.table[model]])
        conflicts = self.source.randrange(1, 3)
        tries: list[None] = []

        async def body() -> None:
            tries.append(None)
            if self.oracle.levels:
                self.oracle.rollback(self.oracle.levels[0])
                if self.engine == "postgres":
                    self.oracle.updated(model, [key], "count", 7)
            self.oracle.begin()
            await self.h(Owner.objects).count()  # a snapshot is taken by the first statement
            if self.engine == "postgres" and len(tries) <= conflicts:
                with transaction.detach():
                    await self.h(model.objects.filter(pk=key)).update(count=7)
            await self.steps()
            if len(tries) <= conflicts:
                if self.engine == "postgres":
                    await self.h(model.objects.filter(pk=key)).update(count=8)
                else:
                    raise TransactionConflict("no other writer makes one", code="40001")

        options = {"isolation": "repeatable read"} if self.engine == "postgres" else {}
        await self.h.decorated(body, retries=3, **options)
        assert len(tries) == conflicts + 1
        self.oracle.commit(self.oracle.levels[0])

    async def killed_between(self) -> None:
        """A block whose backend dies between two statements."""
        level = self.oracle.begin()

        async def block() -> None:
            async with self.h.transaction():
                await self.steps()
                await self.kill(await self.backend())
                await self.steps()

        await self.fails(ConnectionFailed, block)
        self.oracle.rollback(level)

    async def backend(self) -> int:
        """The process of the server behind this transaction."""
        return (await query(self.h, "SELECT pg_backend_pid() AS pid"))[0]["pid"]

    async def kill(self, pid: int) -> None:
        """Terminate a backend, and wait until it is gone."""
        self.kills += 1
        sql = f"SELECT pg_terminate_backend({pid}, 5000)"
        if self.h.name == "async":
            await asyncio.to_thread(self.admin.value, sql)
        else:
            self.admin.value(sql)

    async def killed_within(self) -> None:
        """A block whose backend dies while a statement runs."""
        level = self.oracle.begin()
        nested = self.source.random() < 0.5

        async def block() -> None:
            async with self.h.transaction():
                await self.steps()
                if nested:
                    inner = self.oracle.begin()
                    async with self.h.transaction():
                        await self.steps()
                        await self.slow()
                    self.oracle.commit(inner)
                await self.slow()

        await self.fails(ConnectionFailed, block)
        self.oracle.rollback(level)

    async def slow(self) -> None:
        """A statement whose backend is killed while it runs."""
        pid = await self.backend()
        sql = (
            f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid = {pid}"
            " AND state = 'active'"
        )

        ended = threading.Event()

        def killing() -> None:
            while self.admin.value(sql) is None and not ended.is_set():
                pass

        self.kills += 1
        killer = threading.Thread(target=killing)
        killer.start()
        try:
            await query(self.h, "SELECT pg_sleep(20)::text AS nap")
        finally:
            ended.set()
            killer.join()

    async def cut(self) -> None:
        """A block whose connection is cut at some message, which may be its COMMIT."""
        assert self.wire is not None
        before = len(self.hooks)
        level = self.oracle.begin()
        complete = False

        async def block() -> None:
            nonlocal complete
            async with self.h.transaction():
                await self.steps()
                complete = True
                if self.source.random() < 0.5:
                    self.arm(1)

        self.arm(self.source.randrange(1, 30))
        try:
            await block()
        except ConnectionFailed:
            self.arm(0)
            assert len(self.hooks) == before, "hooks have run, and the outcome is unknown"
            stored = complete and await self.rows() == self.oracle.table
            later = self.oracle.table
            self.oracle.rollback(level, in_doubt=complete)
            if stored:
                self.log.append("committed")
                self.oracle.table = later
        else:
            self.arm(0)
            self.oracle.commit(level)

    def arm(self, message: int) -> None:
        """Cut the connection at this message."""
        assert self.wire is not None
        self.wire.cut_at(message, deliver=self.source.random() < 0.7)

    async def cut_outside(self) -> None:
        """A call outside of any transaction whose connection is cut."""
        assert self.wire is not None
        level = self.oracle.begin()  # a call by itself is a transaction
        await self.h(Owner.objects).count()  # a connection, so that the call's own one is cut
        self.arm(self.source.randrange(1, 6))
        self.alone = []
        try:
            await self.step(nested=False)
        except ConnectionFailed:
            self.arm(0)
            found = await self.rows()
            self.log.append("done" if found != level.table else "not done")
            self.oracle.rollback(level)
            self.oracle.table = found  # the database alone can tell
            for shadow in self.alone:
                if self.single or self.wire.cut_a_commit:
                    shadow.state.unsure = True
        else:
            self.arm(0)
            self.oracle.commit(level)

    async def cancelled(self) -> None:
        """A task that is cancelled somewhere in its block."""
        level = self.oracle.begin()
        complete = False

        async def block() -> None:
            nonlocal complete
            async with transaction():
                await self.steps()
                complete = True

        await self.cancel_soon(block())
        if complete:
            self.oracle.commit(level)
        else:
            self.oracle.rollback(level)

    async def cancel_soon(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        if self.source.random() < 0.5:
            for _ in range(self.source.randrange(40)):
                await asyncio.sleep(0)
        else:
            await asyncio.sleep(self.source.random() * 0.01)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    async def cancelled_savepoint(self) -> None:
        """A block of which a task with a savepoint is cancelled."""
        level = self.oracle.begin()
        self.fragile = False

        async def part() -> None:
            nonlocal complete
            async with transaction():
                await self.steps()
                complete = True

        complete = False
        try:
            async with transaction():
                await self.steps()
                inner = self.oracle.begin()
                await self.cancel_soon(part())
                if complete:
                    self.oracle.commit(inner)
                else:
                    self.oracle.rollback(inner)
                    self.fragile = self.engine == "sqlite"
                await self.steps()
        except TransactionAborted:
            if not self.fragile:
                raise
            self.log.append("aborted")
            self.oracle.rollback(level)
        else:
            self.oracle.commit(level)

    # -- what must hold ---------------------------------------------------------------------------

    async def rows(self) -> dict[Any, dict[int, dict[str, Any]]]:
        """What the tables hold."""
        found: dict[Any, dict[int, dict[str, Any]]] = {}
        for model in MODELS:
            rows = await self.h.rows(model.objects.values("pk", *NAMES[model]))
            found[model] = {row.pop("pk"): row for row in rows}
        return found

    async def check(self) -> None:
        """Compare tables, instances and hooks with the oracle."""
        found = await self.rows()
        assert found == self.oracle.table, self.story(found)
        for shadow in self.oracle.shadows:
            assert shadow.shows == shadow.state.attrs, self.story(
                (self.shown(shadow), shadow.shows)
            )
        assert self.hooks == self.oracle.hooks, self.story(self.hooks)

    async def save_again(self) -> None:
        """Change and save some instances: what `save()` says it has written is in the table."""
        for shadow in self.source.sample(self.oracle.shadows, min(3, len(self.oracle.shadows))):
            self.log.append(f"again {self.shown(shadow)} {shadow.state.unsure}")
            self.oracle.app_set(shadow, "count", self.number())
            await self.save_one(shadow)
        await self.check()
        await self.prune()

    async def prune(self) -> None:
        """Delete rows by a query, so that the tables stay small."""
        for model in MODELS:
            rows = self.oracle.table[model]
            for key in [*rows][: max(0, len(rows) - ROWS)]:
                await self.h(model.objects.filter(pk=key)).delete()
                del rows[key]

    def story(self, found: Any) -> str:
        """What was done, for the message of a failure."""
        table = {m.__name__: rows for m, rows in self.oracle.table.items()}
        return "\n".join([*self.log[-60:], f"expected {table}", f"found {found}"])
