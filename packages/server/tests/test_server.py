"""Binding, serving and stopping, over real sockets."""

import asyncio
import signal
import socket
from typing import Any

import pytest

from treefold_server import (
    Server,
    ServerError,
    ServerOptions,
    bind_port,
    format_address,
    serve_until_stopped,
)
from treefold_server._server import build_server_config


def has_address(host: str) -> bool:
    """Return True if an address is one of this machine, which may have none of IPv6."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as tried:
        try:
            tried.bind((host, 0))
        except OSError:
            return False
    return True


LOCAL = [host for host in ("127.0.0.1", "::1") if has_address(host)]


def test_port_0_binds_a_free_one():
    with bind_port("127.0.0.1", 0) as listener:
        assert format_address(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert listener.getsockname()[1] > 0


@pytest.mark.skipif("::1" not in LOCAL, reason="this machine has no address of IPv6")
def test_an_ipv6_address_is_shown_in_brackets():
    with bind_port("::1", 0) as listener:
        assert format_address(listener) == f"http://[::1]:{listener.getsockname()[1]}"


@pytest.mark.parametrize("host", LOCAL)
def test_what_is_written_is_sent_at_once(host: str):
    async def main() -> int:
        accepted = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                accepted.set_result(transport.get_extra_info("socket"))

        with bind_port(host, 0) as listener:
            server = await asyncio.get_running_loop().create_server(Protocol, sock=listener)
            with socket.create_connection(listener.getsockname()[:2]):
                connection = await accepted
                found = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            server.close()
        return found

    assert asyncio.run(main()) != 0


def test_a_port_in_use_names_the_way_out():
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServerError) as refused:
            bind_port("127.0.0.1", port)
    assert str(refused.value) == (
        f"Port {port} on '127.0.0.1' is in use; choose another with --port"
    )
    assert refused.value.exit_code == 1


@pytest.mark.parametrize("host", ["nope.invalid", "a" * 300, ".", ""])
def test_an_unknown_host_names_the_way_out(host: str):
    with pytest.raises(ServerError) as refused:
        bind_port(host, 0)
    assert str(refused.value) == (
        f"Unknown host {host!r}; give an address of this machine with --host"
    )
    assert refused.value.exit_code == 2


def test_an_address_of_another_machine_names_the_way_out():
    with pytest.raises(ServerError) as refused:
        bind_port("192.0.2.1", 0)
    assert str(refused.value) == (
        "Cannot listen on '192.0.2.1', port 0: Cannot assign requested address; choose others with"
        " --host and --port"
    )


def test_the_server_is_quiet_about_itself_and_trusts_no_proxy():
    config = build_server_config("app:create", ServerOptions(workers=3), is_factory=True)
    assert (config.access_log, config.server_header, config.proxy_headers) == (False, False, False)
    assert (config.ws_max_size, config.ws_per_message_deflate) == (1024 * 1024, False)
    assert (config.ws_ping_interval, config.ws_ping_timeout) == (20, 20)
    assert config.timeout_keep_alive == 5
    assert (config.timeout_graceful_shutdown, config.workers, config.factory) == (20, 3, True)


async def never_starts(scope: Any, receive: Any, send: Any) -> None:
    await receive()
    await send({"type": "lifespan.startup.failed", "message": "no database"})


def test_an_application_that_does_not_start_is_a_failure(caplog: pytest.LogCaptureFixture):
    listener = bind_port("127.0.0.1", 0)
    announced: list[str] = []
    with pytest.raises(ServerError) as failed:
        serve_until_stopped(never_starts, listener, on_start=lambda: announced.append("started"))
    assert str(failed.value) == "The application did not start; the reason is above"
    assert (listener.fileno(), announced) == (-1, [])
    assert "no database" in caplog.messages


async def starts(scope: Any, receive: Any, send: Any) -> None:
    while (message := await receive())["type"].startswith("lifespan."):
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


@pytest.mark.parametrize("stopped", [True, False])
def test_a_restart_after_a_stop_signal_is_an_end(*, stopped: bool):
    """A file is saved and Ctrl-C pressed at once: the reload asks for a restart of what ends."""

    async def save(server: Server) -> None:
        if stopped:
            signal.raise_signal(signal.SIGINT)
        server.request_restart()

    listener = bind_port("127.0.0.1", 0)
    restarts = serve_until_stopped(starts, listener, on_start=lambda: None, background=save)
    assert restarts is not stopped
