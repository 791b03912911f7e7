"""Jobs that a test looks at before they run, or in place of running them.

    client.post("/v1/orders", json={...})
    assert [(job.function, job.args) for job in outbox] == [(confirm, (1,))]
    outbox.run()

A job is held when its transaction has committed, and a second one of a unique name is not.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, overload

from treefold_jobs import _running as running
from treefold_jobs._call import Call
from treefold_jobs._in_process import run_blocking
from treefold_jobs._process import here


@dataclass(frozen=True, slots=True)
class HeldJob:
    """A job that was enqueued.

    Attributes:
        function: the function that is called.
        args, kwargs: its arguments, as they would arrive in a worker.
        delay, at, unique: the options of `later`; no delay, None and an empty text without.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    delay: timedelta = timedelta()
    at: datetime | None = None
    unique: str = ""


class Outbox(Sequence[HeldJob]):
    """The jobs that were enqueued, in their order."""

    def __init__(self) -> None:
        self._held: list[HeldJob] = []
        self._calls: list[Call] = []

    @overload
    def __getitem__(self, index: int) -> HeldJob: ...
    @overload
    def __getitem__(self, index: slice) -> list[HeldJob]: ...
    def __getitem__(self, index: int | slice) -> HeldJob | list[HeldJob]:
        return self._held[index]

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"Outbox({self._held!r})"

    def add(self, call: Call) -> None:
        """Hold a call, unless one of its unique name is held."""
        name = call.unique_name
        if name and any(one.unique_name == name for one in self._calls):
            return
        delivery = call.delivery
        job = HeldJob(
            *(call.resolve(), tuple(call.args), dict(call.kwargs)),
            *(delivery.delay, delivery.at, delivery.unique),
        )
        self._held.append(job)
        self._calls.append(call)

    def _take_first(self) -> Call:
        del self._held[0]
        return self._calls.pop(0)

    def clear(self) -> None:
        """Forget all jobs."""
        self._held.clear()
        self._calls.clear()

    def run(self) -> None:
        """Run all jobs, those that they enqueue included, without waiting for their time.

        Raises:
            Exception: of the first job that fails, which is out of the outbox then.
        """
        while self._held:
            call = self._take_first()
            try:
                run_blocking(call)
            except running.JobFailed as error:
                failure = error.__cause__ or error
            else:
                continue
            raise failure

    async def arun(self) -> None:
        """`run` for async code."""
        while self._held:
            call = self._take_first()
            try:
                await running.arun(call)
            except running.JobFailed as error:
                failure = error.__cause__ or error
            else:
                continue
            raise failure


@contextmanager
def hold_jobs() -> Generator[Outbox]:
    """Hold the jobs that are enqueued in a block, on any database, in place of running them."""
    before, here.outbox = here.outbox, (made := Outbox())
    try:
        yield made
    finally:
        here.outbox = before
