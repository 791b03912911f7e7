"""Counts requests on Redis: those that arrive together go there in one script.

One script at a time is under way for each event loop. While Redis answers, a request waits for at
most two of them; when it does not answer, all that wait fail together.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias
from weakref import WeakKeyDictionary

from treefold_http._redis import RedisUnavailable, RedisUse
from treefold_http._runtime.name_space import NameSpace
from treefold_http.middleware._gcra import SCRIPT

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

Reply: TypeAlias = tuple[int, int]

MOST = 100
"""Requests in one script."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    key: str
    interval: int
    capacity: int
    reply: asyncio.Future[Reply]


@dataclass(slots=True)
class _Queue:
    """The requests of one event loop, and the task that sends them."""

    waiting: list[_Waiting] = field(default_factory=list[_Waiting])
    sender: asyncio.Task[None] | None = None


class RedisLimits:
    """The limits of an application on one Redis.

    Args:
        url: URL of the server.
        effect: the effect of its absence, for the log.
        app: the application.

    Raises:
        TreefoldError: if the `redis` extra is not installed.
        ValueError: if the URL is not one of Redis.
    """

    def __init__(self, url: str, *, effect: str, app: Runtime) -> None:
        self._use = RedisUse(url, effect=effect, app=app)
        self._queues: WeakKeyDictionary[asyncio.AbstractEventLoop, _Queue] = WeakKeyDictionary()

    async def claim_names_if_due(self, names: NameSpace) -> None:
        """Make sure that no other deployment counts under the names of an application.

        Raises:
            RedisUnavailable: after 100 ms at most.
            SettingsError: another one does.
        """
        client = self._use.client
        if client.is_claim_due(names):
            await client.claim_names(names)

    async def count_request_and_compute_wait(self, key: str, interval: int, capacity: int) -> Reply:
        """Count one request of a key.

        Args:
            interval, capacity: of its rate, in microseconds.

        Returns:
            As `MemoryTable.count_request_and_compute_wait`, in microseconds.

        Raises:
            RedisUnavailable: after 100 ms at most.
        """
        loop = asyncio.get_running_loop()
        if (queue := self._queues.get(loop)) is None:
            queue = self._queues[loop] = _Queue()
        one = _Waiting(key, interval, capacity, loop.create_future())
        queue.waiting.append(one)
        # The first request of a batch sends it, and those that come while it is on its way make the
        # next one; `_send_queued_batches` ends without an await after its last look at the queue,
        # so none is left.
        if queue.sender is None:
            queue.sender = loop.create_task(self._send_queued_batches(queue))
        return await one.reply

    async def _send_queued_batches(self, queue: _Queue) -> None:
        try:
            while batch := queue.waiting[:MOST]:
                del queue.waiting[:MOST]
                try:
                    replies = await self._count_batch(batch)
                except BaseException as error:
                    _fail_requests([*batch, *queue.waiting], error)
                    queue.waiting.clear()
                    # a cancellation at the end of the loop has to end the task
                    if not isinstance(error, Exception):
                        raise
                else:
                    for one, (wait, used) in zip(batch, replies, strict=True):
                        if not one.reply.done():  # its request was cancelled
                            one.reply.set_result((wait, used))
        finally:
            queue.sender = None

    async def _count_batch(self, batch: list[_Waiting]) -> list[Reply]:
        keys = [one.key for one in batch]
        arguments = [number for one in batch for number in (one.interval, one.capacity)]
        return await self._use.client.execute("EVAL", SCRIPT, len(keys), *keys, *arguments)


def _fail_requests(requests: list[_Waiting], error: BaseException) -> None:
    for one in requests:
        if one.reply.done():
            continue
        if isinstance(error, RedisUnavailable):
            # one for each: tasks that raise the same object add to its traceback
            one.reply.set_exception(RedisUnavailable(str(error)))
        elif isinstance(error, Exception):
            one.reply.set_exception(error)
        else:
            one.reply.cancel()
