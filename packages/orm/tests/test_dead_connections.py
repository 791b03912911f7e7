"""Connections that die in the middle of something: the error says so and where, and the place in
the pool is free again. TREEFOLD_FAULT_KILLS says how many are killed under load (200 unless set).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import shutil
import ssl
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Tag

from treefold_orm import ConnectionFailed, aclose_all, araw, configure, raw, transaction
from treefold_orm._drivers.postgres import describe_server

KILLS = int(os.environ.get("TREEFOLD_FAULT_KILLS", "200"))
SIZE = 4
APPLICATION = f"treefold-faults-{os.getpid()}"

only_postgres = pytest.mark.parametrize("engine", ["postgres"], indirect=True)


@pytest.fixture
def pooled(place: Any, db: Any) -> Any:
    return place.configure(
        pool_size=SIZE, pool_timeout=5, server_settings={"application_name": APPLICATION}
    )


def kill(admin: Any, *, most: int = 1, state: str = "active") -> list[int]:
    """Terminate backends of this test; return their process ids."""
    return admin.value(
        "SELECT array_remove(array_agg(CASE WHEN pg_terminate_backend(pid) THEN pid END), NULL)"
        " FROM (SELECT pid FROM pg_stat_activity WHERE"
        f" application_name = '{APPLICATION}' AND state LIKE '{state}%' ORDER BY random()"
        f" LIMIT {most}) AS chosen"
    )


async def killed_soon(admin: Any, state: str = "active") -> None:
    while not await asyncio.to_thread(kill, admin, state=state):  # noqa: ASYNC110 - no event of the server says so
        await asyncio.sleep(0.01)


async def places(h: Handle) -> int:
    """How many transactions may be open at once."""

    async def hold(together: Callable[[], Awaitable[Any]]) -> None:
        async with transaction():
            await Tag.objects.acount()
            await together()

    barrier = asyncio.Barrier(SIZE)
    await asyncio.gather(*(hold(barrier.wait) for _ in range(SIZE)))
    return SIZE


async def slow(h: Handle) -> Any:
    sql = "SELECT pg_sleep(20)::text AS nap"
    return await araw(sql) if h.name == "async" else raw(sql)


async def in_a_statement(h: Handle) -> None:
    await slow(h)


async def in_a_transaction(h: Handle) -> None:
    async with h.transaction():
        await slow(h)


async def in_a_savepoint(h: Handle) -> None:
    async with h.transaction():
        await h(Tag.objects).create(name="lost")
        async with h.transaction():
            await slow(h)


async def in_several_statements(h: Handle) -> None:
    await h(Tag.objects).bulk_create([Tag(name="slow"), Tag(name="b")], batch_size=1)


async def while_idle_in_a_transaction(h: Handle) -> None:
    async with h.transaction():
        await h(Tag.objects).create(name="lost")
        await h(Tag.objects.filter(name__in=["x"])).count()
        await slow(h)


PLACES = (in_a_statement, in_a_transaction, in_a_savepoint, while_idle_in_a_transaction)


@only_postgres
@pytest.mark.parametrize("work", PLACES, ids=lambda f: f.__name__)
async def test_a_killed_backend_is_an_error_and_its_place_is_free(
    pooled: Any, half: Any, work: Any, admin: Any
) -> None:
    for _ in range(SIZE + 1):
        killing = asyncio.ensure_future(killed_soon(admin))
        with pytest.raises(ConnectionFailed, match=r"the server has ended it|was closed"):
            await in_half(half, work)
        await killing
    assert await places(Handle("async")) == SIZE
    assert await Tag.objects.acount() == 0


@only_postgres
async def test_a_backend_killed_between_statements_is_an_error(
    pooled: Any, half: Any, admin: Any
) -> None:
    async def body(h: Handle) -> None:
        tag = Tag(name="lost")

        async def block() -> None:
            async with h.transaction():
                await h(tag).save()
                if h.name == "async":
                    await killed_soon(admin, "idle in transaction")
                else:
                    while not kill(admin, state="idle in transaction"):
                        pass
                await h(Tag.objects).create(name="after")

        with pytest.raises(ConnectionFailed, match=r"The connection to PostgreSQL at .* failed"):
            await block()
        assert tag.pk is None
        await h(tag).save()

    for _ in range(SIZE + 1):
        await Tag.objects.adelete()
        await in_half(half, body)
    assert await places(Handle("async")) == SIZE


@only_postgres
@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside"])
async def test_a_backend_killed_between_chunks_is_an_error(
    pooled: Any, half: Any, admin: Any, inside: bool
) -> None:
    await Tag.objects.abulk_create([Tag(name=name) for name in "abc"])

    async def read(h: Handle) -> None:
        if h.name == "async":
            async for _ in Tag.objects.aiterator(1):
                await killed_soon(admin, "idle in transaction")
            return
        for _ in Tag.objects.iterator(1):
            while not kill(admin, state="idle in transaction"):
                pass

    async def body(h: Handle) -> None:
        if not inside:
            await read(h)
            return
        async with h.transaction():
            await h(Tag.objects).create(name="lost")
            await read(h)

    for _ in range(SIZE + 1):
        with pytest.raises(ConnectionFailed, match=r"The connection to PostgreSQL at .* failed"):
            await in_half(half, body)
    assert await places(Handle("async")) == SIZE
    assert await Tag.objects.acount() == 3


@only_postgres
async def test_killed_backends_under_load_use_up_no_place(
    pooled: Any, half: Any, admin: Any
) -> None:
    source = random.Random(200)  # noqa: S311, RUF100 - the same load in every run
    seen: list[Exception] = []
    ended = False

    async def short(h: Handle) -> None:
        sql = "SELECT pg_sleep(0.01)::text AS nap"
        await araw(sql) if h.name == "async" else raw(sql)

    async def written(h: Handle) -> None:
        async with h.transaction():
            await h(Tag.objects).create(name=f"t{source.random()}")
            await short(h)

    async def nested(h: Handle) -> None:
        async with h.transaction(), h.transaction():
            await short(h)

    async def worker(h: Handle) -> None:
        while not ended:
            try:
                await source.choice([short, written, nested])(h)
            except Exception as error:
                seen.append(error)

    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(3 * SIZE))
    await Tag.objects.acount()  # blocking calls of other threads share the pool of this loop
    workers = [asyncio.ensure_future(in_half(half, worker)) for _ in range(2 * SIZE)]
    killed: set[int] = set()
    while len(killed) < KILLS:
        killed.update(await asyncio.to_thread(kill, admin, most=2, state="") or [])
    ended = True
    await asyncio.gather(*workers)
    assert {type(error) for error in seen} == {ConnectionFailed}, seen
    assert len(seen) <= len(killed)
    assert await places(Handle("async")) == SIZE
    (pool,) = (p for p in pooled._pools.values() if not p.loop.is_closed())
    assert (pool.connection_count, len(pool.idle), len(pool._closing)) == (SIZE, SIZE, 0)


@only_postgres
async def test_cancelled_calls_leave_no_future_behind(pooled: Any) -> None:
    assert pooled._connect["ssl"] == "prefer"  # which asks in a task of the driver's own
    left: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))
    source = random.Random(7)  # noqa: S311, RUF100 - the same turns in every run

    async def cancelled(turns: int, pause: float) -> None:
        task = asyncio.ensure_future(araw("SELECT pg_sleep(0.05)::text AS nap"))
        for _ in range(turns):
            await asyncio.sleep(0)
        await asyncio.sleep(pause)
        task.cancel()
        await asyncio.wait([task])

    for turns in (60, 0):
        for _ in range(12):
            await asyncio.gather(
                *(
                    cancelled(source.randrange(turns or 1), 0.0 if turns else source.random() / 20)
                    for _ in range(2 * SIZE)
                )
            )
    await aclose_all()
    gc.collect()
    await asyncio.sleep(0)
    assert left == []


@only_postgres
async def test_a_connection_that_nobody_waits_for_serves_the_next(pooled: Any) -> None:
    waiting = asyncio.ensure_future(Tag.objects.acount())
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    (pool,) = pooled._pools.values()
    assert pool.connection_count == 1
    await asyncio.wait(pool._opening)
    await asyncio.sleep(0)
    assert (pool.connection_count, len(pool.idle)) == (1, 1)
    assert await Tag.objects.acount() == 0
    assert pool.connection_count == 1


# -- what the error says --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connect", "place"),
    [
        ({"dsn": "postgresql://u:pw@db.example.org:5433/shop"}, "db.example.org:5433"),
        ({"dsn": "postgresql://u:pw@db.example.org/shop?x=y"}, "db.example.org:5432"),
        ({"dsn": "postgresql://u:p%40w@[::1]/shop"}, "[::1]:5432"),
        ({"dsn": "postgresql://u:pw@one:1,two:2/shop"}, "one:1,two:2"),
        ({"dsn": "postgresql:///shop?host=/run/pg&user=u&password=pw"}, "/run/pg"),
        ({"host": "10.0.0.5", "port": 6000, "database": "shop", "password": "pw"}, "10.0.0.5:6000"),
    ],
)
def test_a_place_is_host_port_and_database(connect: dict[str, Any], place: str) -> None:
    assert describe_server(connect) == f"{place}, database 'shop'"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("postgresql://u:hush@127.0.0.1:1/x", "connection refused"),
        ("postgresql://u:hush@no.such.host.invalid:5432/x", "host name cannot be resolved"),
        (f"postgresql://u:hush@{'a' * 64}.invalid:5432/x", "host name is not valid"),
    ],
)
async def test_a_failed_connection_names_its_place_and_the_reason(
    half: Any, address: str, reason: str
) -> None:
    configure(database=address, connect_timeout=2, alias="nowhere")
    with pytest.raises(ConnectionFailed, match=rf"database 'x' failed: .*{reason}") as caught:
        await half(Tag.objects.using("nowhere")).count()
    assert address.partition("@")[2].partition("/")[0] in str(caught.value)
    assert "hush" not in str(caught.value)


@only_postgres
@pytest.mark.parametrize(
    "option", ["sslmode=hush", "target_session_attrs=hush", "port=70000", "port=hush"]
)
async def test_an_option_that_the_driver_refuses_is_a_failed_connection(
    db: Any, half: Any, option: str
) -> None:
    configure(database=f"postgresql:///x?host=127.0.0.1&{option}", alias="odd")
    with pytest.raises(ConnectionFailed, match=r"'x' failed: its options are not valid") as caught:
        await half(Tag.objects.using("odd")).count()
    assert "hush" not in str(caught.value).partition(", database")[2]


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes the certificate")
async def test_a_certificate_that_is_refused_is_a_failed_connection(
    half: Any, tmp_path: Path
) -> None:
    async with untrusted_server(tmp_path) as port:
        configure(
            database=f"postgresql://u@127.0.0.1:{port}/x",
            alias="untrusted",
            ssl=ssl.create_default_context(),
        )
        reason = r"'x' failed: its certificate is refused \(self.signed certificate\)"
        with pytest.raises(ConnectionFailed, match=reason):
            await half(Tag.objects.using("untrusted")).count()


@contextlib.asynccontextmanager
async def untrusted_server(folder: Path) -> AsyncGenerator[int]:
    """Listen as a server whose certificate no authority has signed; yield the port."""
    made = ["-keyout", folder / "key.pem", "-out", folder / "cert.pem"]
    subject = ["-days", "2", "-subj", "/CN=untrusted"]
    making = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", *subject, *made]
    await asyncio.to_thread(subprocess.run, making, check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(8)  # the request for TLS
        writer.write(b"S")
        with contextlib.suppress(OSError):
            await writer.start_tls(context)
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield listener.sockets[0].getsockname()[1]


@only_postgres
async def test_a_missing_database_is_named(place: Any, db: Any, half: Any) -> None:
    address = place.address.rpartition("/")[0] + "/no_such_database"
    configure(database=address, alias="missing")
    message = r"database 'no_such_database' failed: the server has no such database \(3D000\)"
    with pytest.raises(ConnectionFailed, match=message):
        await half(Tag.objects.using("missing")).count()


async def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, half: Any) -> None:
    file = tmp_path / "no" / "such.db"
    configure("sqlite", file, alias="missing")
    with pytest.raises(ConnectionFailed, match=rf"{file}.*SQLITE_CANTOPEN"):
        await half(Tag.objects.using("missing")).count()
