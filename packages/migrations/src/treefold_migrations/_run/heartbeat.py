"""Heartbeat: renews the lock that is a row, from a connection of its own, while long steps run."""

from __future__ import annotations

import contextlib
import threading
from typing import Self

from treefold_migrations._records.effects import execute_flow
from treefold_migrations._run.lock import BEAT, RowLock
from treefold_orm import ORMError
from treefold_orm.schema import HeldConnection


class Heartbeat:
    """A thread that renews a lock as long as the block runs; its first beat comes after `BEAT`
    seconds, so that short runs open no second connection.
    """

    def __init__(self, lock: object, held: HeldConnection) -> None:
        # an advisory lock lives as long as its session; a database in memory has no second
        # connection
        self._lock = lock if isinstance(lock, RowLock) and not held.single else None
        self._alias = held.alias
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._renew_lease_periodically, name="treefold-migrations-heartbeat", daemon=True
        )

    def __enter__(self) -> Self:
        if self._lock is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # without join(): a beat behind the release finds no row, and waiting for it would block the
        # loop of async code
        self._stop.set()

    def _renew_lease_periodically(self) -> None:
        lock = self._lock
        while lock is not None and not self._stop.wait(BEAT):
            # the next beat tries again; where none succeeds, the runner finds its lock lost
            with contextlib.suppress(ORMError), HeldConnection(self._alias) as own:
                while not self._stop.wait(BEAT):
                    execute_flow(own, lock.renew_lease())
