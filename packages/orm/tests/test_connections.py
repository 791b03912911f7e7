"""Configuring databases: addresses, aliases, TLS, memory, threads, forks, and the ends of
connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import orm_postgres
import pytest
from conftest import Half
from hypothesis import HealthCheck, example, given, settings, strategies as st
from orm_models import Author, Country, Tag

from treefold_orm import (
    ConfigurationError,
    ConnectionFailed,
    aclose_all,
    acreate_all,
    aliases,
    araw,
    close_all,
    configure,
    create_all,
    raw,
    transaction,
)
from treefold_orm._drivers.postgres import PostgresDatabase
from treefold_orm._drivers.sqlite import SQLiteDatabase
from treefold_orm._runtime.connections import _databases, database_for


@pytest.fixture(autouse=True)
def fresh() -> Any:
    _databases.clear()
    yield
    close_all()
    _databases.clear()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "needs backend='sqlite' or 'postgres', or a database address"),
        (("mysql", "x"), "'mysql' is not a known backend: use 'sqlite' or 'postgres'"),
        ((None, "mysql://x/y"), "'mysql' is not a known backend"),
        (("sqlite",), r"needs database=: a path or ':memory:'"),
    ],
)
def test_wrong_configurations_say_what_is_wrong(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        configure(*arguments)


def test_sqlite_takes_a_path_and_nothing_of_a_server() -> None:
    with pytest.raises(ConfigurationError, match="SQLite takes no option 'host'"):
        configure("sqlite", "x.db", host="example.org")
    with pytest.raises(ConfigurationError, match="SQLite takes no option 'ssl'"):
        configure("sqlite", "x.db", ssl=True)


def test_an_alias_that_is_not_configured_is_named() -> None:
    configure("sqlite", ":memory:", alias="other")
    assert aliases() == ["other"]
    with pytest.raises(
        ConfigurationError,
        match=r"Database 'default' is not configured \(other\): call configure\(\) first",
    ):
        Tag.objects.count()


def test_a_relative_path_belongs_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("here.db", "sqlite:///here.db"):
        configure(None if "://" in place else "sqlite", place)
        database = database_for("default")
        assert isinstance(database, SQLiteDatabase)
        assert database.database == str(tmp_path / "here.db")
    configure(database="sqlite:////somewhere/else.db")
    database = database_for("default")
    assert isinstance(database, SQLiteDatabase)
    assert database.database == "/somewhere/else.db"


@pytest.mark.parametrize(
    ("address", "options", "level"),
    [
        ("sqlite:///{}", {}, 1),
        ("sqlite:///{}?synchronous=normal", {}, 1),
        ("sqlite:///{}?synchronous=full", {}, 2),
        ("sqlite:///{}", {"synchronous": "full"}, 2),
        ("sqlite:///{}?synchronous=normal", {"synchronous": "full"}, 2),
    ],
)
def test_how_far_a_commit_is_written_can_be_chosen(
    tmp_path: Path, address: str, options: dict[str, Any], level: int
) -> None:
    configure(database=address.format(tmp_path / "x.db"), **options)
    database = database_for("default")
    assert isinstance(database, SQLiteDatabase)
    assert database.database == str(tmp_path / "x.db")
    session = database._writer.take_item()
    assert session.ensure_connection().execute("PRAGMA synchronous").fetchone() == (level,)
    database._writer.return_item(session)


def test_synchronous_is_checked_and_belongs_to_sqlite() -> None:
    with pytest.raises(ConfigurationError, match="one of 'normal', 'full', got 'off'"):
        configure("sqlite", "x.db", synchronous=cast("Any", "off"))
    with pytest.raises(ConfigurationError, match="PostgreSQL has synchronous_commit"):
        configure("postgres", "x", synchronous="full")
    with pytest.raises(ConfigurationError, match="SQLite takes no option 'mode'"):
        configure(database="sqlite:///x.db?mode=ro")


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("postgresql://u@localhost/x", True),
        ("postgresql://u@127.0.0.1/x", True),
        ("postgresql://u@[::1]/x", True),
        ("postgresql://u@db.example.org/x", False),
        ("postgresql://u@10.0.0.5/x", False),
        ("postgresql://u@localhost.evil.org/x", False),
    ],
)
def test_remote_servers_must_prove_who_they_are(address: str, local: bool) -> None:
    configure(database=address)
    database = database_for("default")
    assert isinstance(database, PostgresDatabase)
    tls = database._connect["ssl"]
    if local:
        assert tls == "prefer"
    else:
        assert isinstance(tls, ssl.SSLContext)
        assert tls.verify_mode is ssl.CERT_REQUIRED
        assert tls.check_hostname


def test_an_address_may_carry_the_pool_size_and_its_own_sslmode() -> None:
    configure(database="postgresql://u:pw@db.example.org:5433/x?pool_size=7&sslmode=require")
    database = database_for("default")
    assert isinstance(database, PostgresDatabase)
    assert database._size == 7
    assert "ssl" not in database._connect
    assert "pool_size" not in str(database._connect["dsn"])
    configure("postgres", "shop", host="10.0.0.5", user="u", password="pw", pool_size=3)
    database = database_for("default")
    assert isinstance(database, PostgresDatabase)
    assert (database._size, database._connect["database"], database._connect["user"]) == (
        3,
        "shop",
        "u",
    )


TEXTS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=200
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(text=TEXTS)
@example(text="a&b=c")
@example(text="a+b")
@example(text="a#b")
@example(text="100%41 ; = ?")
def test_an_option_of_an_address_keeps_its_text(postgres_dsn: str, text: str) -> None:
    close_all()
    _databases.clear()
    options = urlencode({"pool_size": 2, "probe.text": text, "password": text})
    configure(database=f"{postgres_dsn}?{options}")
    assert raw("SELECT current_setting('probe.text') AS text") == [{"text": text}]


@pytest.mark.parametrize("pooler", ["session", "transaction"])
async def test_an_address_may_name_the_application(
    postgres_dsn: str, half: Half, pooler: Any
) -> None:
    configure(database=f"{postgres_dsn}?application_name=till+%26+shop", pooler=pooler)
    sql = "SELECT current_setting('application_name') AS name"
    assert await half.call(lambda: raw(sql), lambda: araw(sql)) == [{"name": "till & shop"}]
    configure(
        database=f"{postgres_dsn}?application_name=till",
        pooler=pooler,
        server_settings={"application_name": "given"},
    )
    assert await half.call(lambda: raw(sql), lambda: araw(sql)) == [{"name": "given"}]


def test_r_04_a_server_that_is_not_there_fails_soon() -> None:
    configure(database="postgresql://u@127.0.0.1:1/x", connect_timeout=1)

    async def ask() -> None:
        with pytest.raises(ConnectionFailed, match=r"at 127.0.0.1:1, database 'x' failed"):
            await Tag.objects.acount()

    asyncio.run(asyncio.wait_for(ask(), 5))


def test_r_04_a_server_that_swallows_everything_fails_in_time() -> None:
    import socket

    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen()
        configure(
            database=f"postgresql://u@127.0.0.1:{hole.getsockname()[1]}/x", connect_timeout=0.2
        )

        async def ask() -> None:
            with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1.*no answer"):
                await Tag.objects.acount()

        asyncio.run(asyncio.wait_for(ask(), 5))


def test_a_missing_file_is_reported_without_its_contents(tmp_path: Path) -> None:
    configure("sqlite", tmp_path / "no" / "such" / "folder.db")
    with pytest.raises(ConnectionFailed, match=r"The database file .*folder.db cannot be used"):
        Tag.objects.count()


def test_memory_databases_serve_both_halves_and_every_thread() -> None:
    configure("sqlite", ":memory:")
    create_all(Tag)
    Tag.objects.create(name="a")

    async def work() -> int:
        await Tag.objects.acreate(name="b")
        async with transaction():
            await Tag.objects.acreate(name="c")
            return await Tag.objects.acount()

    assert asyncio.run(work()) == 3
    counts: list[int] = []
    threads = [
        threading.Thread(target=lambda: counts.append(Tag.objects.count())) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 5


async def test_several_databases_by_alias(tmp_path: Path) -> None:
    configure("sqlite", tmp_path / "one.db")
    configure("sqlite", tmp_path / "two.db", alias="two")
    for alias in ("default", "two"):
        await acreate_all(Country, Author, using=alias)
    await Author.objects.acreate(name="one")
    made = await Author.objects.using("two").acreate(name="two")
    assert [a.name for a in await Author.objects.all()] == ["one"]
    found = await Author.objects.using("two").aget()
    found.name = "changed"
    await found.asave()
    made.age = 3
    await made.asave()
    assert [(a.name, a.age) for a in await Author.objects.using("two")] == [("changed", 3)]
    async with transaction("two"):
        await Author.objects.using("two").aupdate(age=4)
        await Author.objects.aupdate(age=5)
    assert (await Author.objects.aget()).age == 5
    await aclose_all()


def test_close_and_use_again(tmp_path: Path) -> None:
    configure("sqlite", tmp_path / "x.db")
    create_all(Tag)
    Tag.objects.create(name="a")
    close_all()
    assert Tag.objects.count() == 1

    async def work() -> int:
        found = await Tag.objects.acount()
        await aclose_all()
        return found + await Tag.objects.acount()

    assert asyncio.run(work()) == 2


FORKING = """
import asyncio, os, sys
from treefold_orm import Model, aclose_all, close_all, configure, create_all, fields, raw

class Row(Model):
    text = fields.CharField(max_length=40)

configure(database=sys.argv[1])
create_all(Row)
Row.objects.create(text="parent")
children = []
for worker in range(4):
    child = os.fork()
    if child == 0:
        async def work():
            await asyncio.gather(*(Row.objects.acreate(text=f"{worker}-{n}") for n in range(25)))
            await aclose_all()
        Row.objects.create(text=f"{worker}-sync")
        asyncio.run(work())
        os._exit(0)
    children.append(child)
assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
rows = list(Row.objects.all())
print(len(rows), len({row.pk for row in rows}), len({row.text for row in rows}))
close_all()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_r_29_workers_forked_from_one_process_have_connections_of_their_own(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with contextlib.ExitStack() as stack:
        if engine == "sqlite":
            address = f"sqlite:///{tmp_path / 'x.db'}"
        else:
            dsn: str = request.getfixturevalue("postgres_dsn")
            address = stack.enter_context(orm_postgres.database(dsn))
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", FORKING, address],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("105 105 105\n", "")


@pytest.mark.parametrize("ending", ["", "close_all()"])
def test_a_script_that_forgets_to_close_ends_all_the_same(tmp_path: Path, ending: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio\n"
        "from treefold_orm import Model, acreate_all, close_all, configure, fields\n"
        "class Tag(Model):\n    name = fields.CharField(max_length=9)\n"
        f"configure('sqlite', {str(tmp_path / 'x.db')!r})\n"
        "async def main():\n    await acreate_all(Tag)\n    await "
        "Tag.objects.acreate(name='a')\n    print(await Tag.objects.acount())\n"
        f"asyncio.run(main())\n{ending}\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_importing_the_package_loads_no_server_driver() -> None:
    code = "import sys, treefold_orm; print('asyncpg' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "False\n"


def test_configuring_again_before_any_use_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        configure("sqlite", ":memory:")
    assert caplog.records == []


_OPENS = """
import sys
from treefold_orm import configure, raw
configure("sqlite", sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
print(raw("PRAGMA journal_mode")[0]["journal_mode"])
"""


def test_a_new_file_is_opened_by_many_processes_at_once(tmp_path: Path) -> None:
    for round_ in range(3):
        path = str(tmp_path / f"new{round_}.sqlite3")
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _OPENS, path],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for _ in range(6)
        ]
        assert [_line(process) for process in processes] == ["ready\n"] * 6
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        answers = [process.communicate(timeout=60) for process in processes]
        assert answers == [("wal\n", "")] * 6


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()
