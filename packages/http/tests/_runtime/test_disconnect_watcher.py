"""The watch of streams: begun late, and given up at any moment."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

from treefold_http import Request
from treefold_http._runtime.disconnect_watcher import DisconnectWatcher


def test_a_stream_that_ends_as_its_watch_begins_leaves_nothing_behind(
    request_of: Callable[..., Request],
) -> None:
    """Its watchers are cancelled before their first step; what they wait for is not begun."""

    async def main() -> None:
        watcher, sender = DisconnectWatcher(), asyncio.current_task()
        assert sender is not None
        watcher.watch_sender(sender, request_of(), asyncio.Event())
        watcher._start_watchers()  # as its timer does
        assert watcher.stop_watching_sender(sender) is None
        await asyncio.sleep(0)

    asyncio.run(main())
    gc.collect()  # a coroutine that nobody awaited would say so here
