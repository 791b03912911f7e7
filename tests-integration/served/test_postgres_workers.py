"""The sample over real uvicorn workers on PostgreSQL: nothing of it is left when it ends."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import http_redis
import orm_postgres
import pytest
from http_messages import Call
from serving import PATIENCE, Process, migrate
from websockets.sync.client import ClientConnection, connect

ADA = ("Authorization", "Bearer ada")
ORDER = json.dumps({"lines": {"9780553293357": 1}}).encode()


@pytest.fixture
def postgres(postgres_server: str) -> Iterator[str]:
    with orm_postgres.database(postgres_server) as address:
        yield address


def connections(server: str, database: str) -> int:
    """How many connections the server has to a database."""
    name = urlsplit(database).path.removeprefix("/")
    return orm_postgres.ask(
        server, f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'"
    )


def talk(shop: Process) -> None:
    """Eight members of a room, in two processes, hear what each of them says."""
    host, port = shop.address
    with ExitStack() as open_sockets:
        room = f"ws://{host}:{port}/v1/chat/{secrets.token_hex(8)}"
        members: list[ClientConnection] = []
        for number in range(8):  # a member joins after its handshake, and then hears itself
            members.append(open_sockets.enter_context(connect(room, proxy=None)))
            members[-1].send(f"here {number}")
            assert [other.recv(PATIENCE) for other in members] == [f"here {number}"] * len(members)
        for number, member in enumerate(members):
            member.send(f"{number}")
            assert [other.recv(PATIENCE) for other in members] == [f"{number}"] * 8


@pytest.fixture
def redis() -> Iterator[str]:
    with http_redis.server() as address:
        yield address


def test_workers_share_one_database_and_one_chat_and_leave_no_connection(
    sample: Path, postgres: str, postgres_server: str, redis: str
) -> None:
    migrate(sample, postgres)
    shop = Process(
        sample,
        "httptools",
        dev=False,
        default_version=None,
        database=postgres,
        workers=2,
        variables={"TREEFOLD_REDIS_URL": redis},
    )
    try:
        fields = [("Content-Type", "application/json"), ADA]
        order = Call(
            method="POST", target="/v1/order", headers=fields, body=ORDER, host="localhost"
        )
        statuses = sorted(answer.status for answer in shop.send([order] * 12))
        assert statuses == [201] * 3 + [409] * 9
        users = Call(method="GET", target="/v1/user", headers=[ADA], body=b"", host="localhost")
        assert {answer.status for answer in shop.send([users] * 12)} == {200}
        assert len(shop.get("/v1/user/me/order", ADA).json()) == 3
        shop.wait_for(lambda lines: sum("booted in" in line for line in lines) == 2)
        assert connections(postgres_server, postgres) > 0
        talk(shop)
    finally:
        written = shop.stop()
    assert [line for line in written.splitlines() if "[ERROR]" in line] == []
    # A server notices that a connection was closed soon, but not in the same moment.
    deadline = time.monotonic() + PATIENCE
    while (left := connections(postgres_server, postgres)) and time.monotonic() < deadline:
        continue
    assert left == 0
