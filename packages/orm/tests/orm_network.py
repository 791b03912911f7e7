"""Networks and poolers that tests put between the ORM and a server.

`Wire` passes bytes on and can swallow them. `Pooler` hands out server connections per transaction,
as PgBouncer does in that mode, and never the same one twice in a row.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import struct
import subprocess
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orm_postgres

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Wire:
    """A TCP line to a server; while it is cut, everything vanishes and nothing is refused."""

    def __init__(self, dsn: str) -> None:
        self._target = urlsplit(dsn)
        self.whole = asyncio.Event()
        self.whole.set()
        self.dsn = ""
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def laid(self) -> AsyncGenerator[Wire]:
        """Listen until the block ends."""
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        self.dsn = self._target._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
        try:
            yield self
        finally:
            listener.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        task: Any = asyncio.current_task()
        self._tasks.add(task)
        there, back = await asyncio.open_connection("127.0.0.1", self._target.port)
        try:
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            back.close()

    async def _pass(self, reader: Reader, writer: Writer) -> None:
        while data := await reader.read(65536):
            await self.whole.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


class Pooler:
    """A pooler in transaction mode over a few server connections."""

    def __init__(self, dsn: str, size: int) -> None:
        self._target = urlsplit(dsn)
        self._size = size
        self._turn = itertools.count()
        self._free: asyncio.Queue[tuple[int, Reader, Writer]] = asyncio.Queue()
        self.used: set[int] = set()
        self.settings: list[dict[str, str]] = []  # of each client, as it connected
        self.dsn = ""

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[Pooler]:
        """Open the server connections and listen until the block ends."""
        for number in range(self._size):
            self._free.put_nowait((number, *await self._connected()))
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        self.dsn = self._target._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
        try:
            yield self
        finally:
            listener.close()
            while not self._free.empty():
                self._free.get_nowait()[2].close()

    async def _connected(self) -> tuple[Reader, Writer]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._target.port)
        names = f"user\0postgres\0database\0{self._target.path[1:]}\0\0".encode()
        writer.write(struct.pack("!ii", len(names) + 8, 196608) + names)
        while (await message(reader))[0] != b"Z":
            pass
        return reader, writer

    async def _serve(self, reader: Reader, writer: Writer) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await self._greet(reader, writer)
            while True:
                first = await message(reader)
                if first[0] == b"X":
                    break
                await self._transaction(first, reader, writer)
        writer.close()

    async def _greet(self, reader: Reader, writer: Writer) -> None:
        while True:
            size, code = struct.unpack("!ii", await reader.readexactly(8))
            names = (await reader.readexactly(size - 8)).decode().split("\0")
            if code == 196608:
                self.settings.append(dict(zip(names[::2], names[1::2], strict=False)))
                break
            writer.write(b"N")  # no TLS here
        said = {"server_version": "15.0", "client_encoding": "UTF8", "TimeZone": "UTC"}
        for key, value in {**said, "integer_datetimes": "on"}.items():
            writer.write(framed(b"S", f"{key}\0{value}\0".encode()))
        writer.write(framed(b"R", struct.pack("!i", 0)) + framed(b"K", struct.pack("!ii", 1, 1)))
        writer.write(framed(b"Z", b"I"))

    async def _transaction(
        self, first: tuple[bytes, bytes], reader: Reader, writer: Writer
    ) -> None:
        number, there, back = await self._free.get()
        self.used.add(number)
        back.write(framed(*first))
        up = asyncio.ensure_future(self._upwards(reader, back))
        try:
            while True:
                kind, body = await message(there)
                writer.write(framed(kind, body))
                if kind == b"Z" and body == b"I":
                    break
        finally:
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
        self._free.put_nowait((number, there, back))  # at the end of the line

    async def _upwards(self, reader: Reader, back: Writer) -> None:
        while True:
            # only whole messages are taken, and none is begun when this is cancelled
            header = await peeked(reader)
            size = struct.unpack("!i", header[1:])[0]
            body = await reader.readexactly(size + 1)
            back.write(body)


async def peeked(reader: Reader) -> bytes:
    """The first five bytes of what comes next, left in place."""
    inside: Any = reader  # a stream has no public look-ahead
    buffer: bytearray = inside._buffer
    while len(buffer) < 5:
        if reader.at_eof():
            raise asyncio.IncompleteReadError(bytes(buffer), 5)
        await inside._wait_for_data("peeked")
    return bytes(buffer[:5])


async def message(reader: Reader) -> tuple[bytes, bytes]:
    """One message of the protocol: its kind and its body."""
    kind = await reader.readexactly(1)
    size = struct.unpack("!i", await reader.readexactly(4))[0]
    return kind, await reader.readexactly(size - 4)


def framed(kind: bytes, body: bytes) -> bytes:
    """One message as bytes."""
    return kind + struct.pack("!i", len(body) + 4) + body


@contextlib.contextmanager
def pgbouncer(dsn: str, program: str, size: int) -> Generator[str]:
    """A real PgBouncer in transaction mode."""
    port = orm_postgres.free_port()
    target = urlsplit(dsn)
    ids: dict[str, Any] = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "users").write_text('"postgres" ""\n')
        (place / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={target.port} user=postgres\n"
            f"[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={port}\nunix_socket_dir=\n"
            f"auth_type=trust\nauth_file={place}/users\npool_mode=transaction\n"
            f"default_pool_size={size}\nmax_client_conn=200\nserver_round_robin=1\n"
        )
        child = subprocess.Popen(
            [program, place / "pgbouncer.ini"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **ids,
        )
        try:
            pooled = target._replace(netloc=f"postgres@127.0.0.1:{port}").geturl()
            while not orm_postgres.answers(pooled):
                assert child.poll() is None
            yield pooled
        finally:
            child.terminate()
            child.wait()
