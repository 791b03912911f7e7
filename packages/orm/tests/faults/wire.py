"""A relay between the driver and the server, which cuts a connection at a chosen message.

The answer of the server to that message is lost: the client cannot know whether it was done. An
answer may be held back instead, until it is released.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from types import TracebackType


class Wire:
    """Relays TCP connections on a thread of its own; `port` is where it listens."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._left = 0
        self._deliver = False
        self._hold = False
        self.held = threading.Event()
        self.cuts = 0
        self.cut_a_commit = False
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Wire:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join()

    def cut_at(self, message: int, *, deliver: bool) -> None:
        """Cut at the given message of the client from now on, before or after it is delivered; at
        none where it is 0.
        """
        self._deliver, self._hold = deliver, False
        self._left = message

    def hold_at(self, message: int) -> None:
        """Hold the answer to a message back; `held` is set once the server has given it."""
        self.held.clear()
        self._hold = True
        self._left = message

    def release(self) -> None:
        """Let the answer pass that is held back."""
        self._loop.call_soon_threadsafe(self._open.set)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        self._loop.close()

    async def _serve(self) -> None:
        self._end = asyncio.Event()
        self._open = asyncio.Event()
        self._open.set()
        self._relays: set[asyncio.Task[None]] = set()
        server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port: int = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._relays.add(task)
        server = writer
        try:
            from_server, server = await asyncio.open_connection(*self._server)
            answers = asyncio.ensure_future(self._answers(from_server, writer))
            try:
                await self._messages(reader, from_server, server, answers)
            finally:
                answers.cancel()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            for end in (server, writer):
                end.transport.abort()
            self._relays.discard(task)

    async def _messages(
        self,
        client: asyncio.StreamReader,
        from_server: asyncio.StreamReader,
        server: asyncio.StreamWriter,
        answers: asyncio.Task[None],
    ) -> None:
        while message := await client.read(65536):
            if self._left:
                self._left -= 1
                if self._left == 0 and self._hold:
                    self._open.clear()
                elif self._left == 0:
                    self.cuts += 1
                    self.cut_a_commit = b"COMMIT" in message
                    answers.cancel()
                    await asyncio.wait([answers])
                    if self._deliver:
                        server.write(message)
                        await from_server.read(1)
                    return
            server.write(message)
            if answers.done():
                return

    async def _answers(self, server: asyncio.StreamReader, client: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):  # of a server process that was killed
            while answer := await server.read(65536):
                if not self._open.is_set():
                    self.held.set()
                    await self._open.wait()
                client.write(answer)
        client.transport.abort()
