"""News of orders, for whoever is listening."""

import asyncio
from collections.abc import AsyncIterator

from treefold import Event

_listeners: set[asyncio.Queue[Event]] = set()


def publish(order_id: int, cents: int) -> None:
    for listener in _listeners:
        listener.put_nowait(Event({"order": order_id, "total": cents / 100}, "order"))


async def listen() -> AsyncIterator[Event]:
    listener: asyncio.Queue[Event] = asyncio.Queue()
    _listeners.add(listener)
    try:
        yield Event({"listeners": len(_listeners)}, "hello")
        while True:
            yield await listener.get()
    finally:
        _listeners.discard(listener)
