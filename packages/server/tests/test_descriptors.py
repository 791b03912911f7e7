"""A process without free file descriptors: one line of log, and it goes on when some are free."""

import asyncio
import logging
import resource
import socket
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from treefold_logging import get_logger
from treefold_server import bind_port
from treefold_server._descriptors import DescriptorWatch


@contextmanager
def no_descriptors() -> Generator[None, None, None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@pytest.fixture
def kept() -> Generator[Kept, None, None]:
    handler = Kept()
    loggers = [get_logger(), logging.getLogger("asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    yield handler
    for logger in loggers:
        logger.removeHandler(handler)


LINE = (
    "cannot accept connections: Too many open files (at most 1); raise the limit of the process"
    " (ulimit -n, LimitNOFILE)"
)


def test_r34_exhausted_descriptors_are_one_line_and_waiting_clients_are_served_later(kept: Kept):
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(1))
        writer.close()

    async def main() -> list[bytes]:
        loop = asyncio.get_running_loop()
        DescriptorWatch().install_accept_error_handler(loop)
        with bind_port("127.0.0.1", 0) as listener:
            listener.listen()
            clients = [socket.create_connection(listener.getsockname()) for _ in range(3)]
            server = await asyncio.start_server(echo, sock=listener, start_serving=False)
            with no_descriptors():
                await server.start_serving()
                await asyncio.sleep(0.05)
            answers: list[bytes] = []
            for client in clients:
                client.sendall(b"x")
                client.setblocking(False)
                async with asyncio.timeout(10):
                    answers.append(await loop.sock_recv(client, 1))
                client.close()
            server.close()
        return answers

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        assert runner.run(main()) == [b"x", b"x", b"x"]
    assert kept.messages == [LINE]


def test_r34_a_loop_that_reports_nothing_is_looked_at(kept: Kept):
    watch = DescriptorWatch()
    watch.probe_free_descriptor()
    assert kept.messages == []
    with no_descriptors():
        watch.probe_free_descriptor()
        watch.probe_free_descriptor()
    assert kept.messages == [LINE]


def test_other_reports_of_the_loop_stay(kept: Kept):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        DescriptorWatch().install_accept_error_handler(loop)
        loop.call_soon(int, "x")
        await asyncio.sleep(0)

    asyncio.run(main())
    assert len(kept.messages) == 1
    assert "Exception in callback int(" in kept.messages[0]
