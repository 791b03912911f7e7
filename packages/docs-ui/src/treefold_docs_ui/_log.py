"""The log as an event stream: batches of lines, until the client disconnects.

Server-sent events are written by hand, as this package uses no framework. The lines are already
masked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from typing import Any

TYPE = (b"content-type", b"text/event-stream; charset=utf-8")
KEEP_ALIVE = 15.0
"""Seconds of silence before a comment is sent, which keeps the connection open in proxies."""


async def stream_log(
    batches: AsyncIterator[Sequence[str]],
    receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
) -> None:
    """Send each batch as one event, until the batches end or the client disconnects."""
    disconnected = asyncio.ensure_future(_wait_for_disconnect(receive))
    next_batch = asyncio.ensure_future(_next_batch(batches))
    try:
        while True:
            await asyncio.wait(
                {disconnected, next_batch}, timeout=KEEP_ALIVE, return_when="FIRST_COMPLETED"
            )
            if disconnected.done():
                return
            body = b": keep-alive\n\n"
            if next_batch.done():
                if (lines := next_batch.result()) is None:
                    await send({"type": "http.response.body", "body": b""})
                    return
                body = f"data: {json.dumps(list(lines))}\n\n".encode()
                next_batch = asyncio.ensure_future(_next_batch(batches))
            await send({"type": "http.response.body", "body": body, "more_body": True})
    finally:
        for task in (disconnected, next_batch):
            task.cancel()
        await asyncio.gather(disconnected, next_batch, return_exceptions=True)
        if (close := getattr(batches, "aclose", None)) is not None:
            await close()


async def _next_batch(batches: AsyncIterator[Sequence[str]]) -> Sequence[str] | None:
    return await anext(batches, None)


async def _wait_for_disconnect(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
