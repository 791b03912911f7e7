"""Return True if databases can serve, as readiness and `doctor` ask; the servers are real."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from orm_models import Country

from treefold_orm import ConfigurationError, acreate_all, configure, transaction
from treefold_orm._framework.extension import Databases
from treefold_orm._framework.readiness import PATIENCE, Check, probe_address
from treefold_orm._runtime.connections import _databases

if TYPE_CHECKING:
    from conftest import Place


@dataclass
class Project:
    """The part of an application that is read."""

    root: Path
    databases: Mapping[str, str]

    @property
    def settings(self) -> Project:
        return self


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """No database is left for the next test."""
    yield
    for database in list(_databases.values()):
        database.close()
    _databases.clear()


@pytest.fixture
def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def stranger() -> Iterator[Callable[[bytes], int]]:
    """A server of another kind: it answers with the same bytes, or never."""
    listeners: list[socket.socket] = []

    def start(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            with suppress(OSError):  # until the listener is closed
                while True:
                    threading.Thread(target=reply, args=listener.accept()[:1], daemon=True).start()

        def reply(client: socket.socket) -> None:
            with client, suppress(ConnectionError):
                if answer:
                    client.sendall(answer)
                while client.recv(1000):
                    continue

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    yield start
    for listener in listeners:
        listener.close()


async def test_a_server_of_another_kind_is_not_taken_for_it(
    stranger: Callable[[bytes], int],
) -> None:
    port = stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    found = await probe_address("main", f"postgresql://u:hunter2@127.0.0.1:{port}/x")
    text = f"postgresql at 127.0.0.1:{port} answers, but not as PostgreSQL does"
    assert found == Check("main", text, advice="start it, or mend the URL")


async def test_a_server_that_is_silent_is_given_up(stranger: Callable[[bytes], int]) -> None:
    port = stranger(b"")
    found = await probe_address("main", f"postgresql://127.0.0.1:{port}/x")
    assert found.text == f"postgresql at 127.0.0.1:{port} takes no login within {PATIENCE:g} s"
    assert found.advice == "see that it is PostgreSQL and not too busy, or mend the URL"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("postgresql://x:99999999/", "postgresql: the URL has no valid port"),
        ("postgresql://[::1/", "postgresql: the URL cannot be read"),
        (
            "postgresql:///x?host=/nowhere",
            "postgresql: /nowhere/.s.PGSQL.5432 cannot be reached (No such file or directory)",
        ),
        ("mysql://root:hunter2@x/y", "unknown kind 'mysql'"),
        ("sqlite:///missing/db.sqlite3", "sqlite: folder 'missing' does not exist"),
        ("sqlite:///folder", "sqlite: 'folder' is a folder"),
        ("sqlite:///notes.txt", "sqlite: 'notes.txt' is no SQLite database"),
        ("sqlite:///x.db?mode=ro", "sqlite: SQLite takes no option 'mode': it takes synchronous="),
    ],
)
async def test_what_cannot_serve_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "notes.txt").write_text("not a database at all")
    found = await probe_address("main", address)
    assert not found.ok
    assert found.text.startswith(text)
    assert found.advice
    assert "hunter2" not in found.text + found.advice


async def test_a_refused_connection_is_named(free_port: int) -> None:
    found = await probe_address("main", f"postgresql://u:hunter2@127.0.0.1:{free_port}/x")
    assert found.text == f"postgresql: 127.0.0.1:{free_port} cannot be reached (Connection refused)"


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("sqlite:///x.db", "x.db, synchronous=normal: a power cut may take the last commits"),
        (
            "sqlite:///x.db?synchronous=full",
            "x.db, synchronous=full: commits survive a power cut",
        ),
        ("sqlite:///:memory:", ":memory:"),
        ("sqlite://", ":memory:"),
    ],
)
async def test_how_far_commits_are_written_is_told_and_no_file_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert await probe_address("main", address) == Check("main", f"sqlite at {text}", ok=True)
    assert os.listdir(tmp_path) == []


async def test_databases_of_the_settings_and_explicit_ones_are_asked(
    tmp_path: Path, postgres_dsn: str
) -> None:
    configure(database=postgres_dsn, alias="reports")
    extension = Databases()
    extension.setup(Project(tmp_path, {"default": f"sqlite:///{tmp_path}/a.sqlite3"}))
    one, two = await extension.ready()
    assert (one.name, one.ok, one.topic) == ("default", True, "database")
    assert one.text.startswith(f"sqlite at {tmp_path}/a.sqlite3, ")
    assert two == Check("reports", "postgresql answers", ok=True)


async def test_addresses_that_cannot_be_set_up_are_asked_all_the_same(tmp_path: Path) -> None:
    extension = Databases()
    here = f"sqlite:///{tmp_path}/b.sqlite3"
    wrong = Project(tmp_path, {"lost": "sqlite:////missing/x", "here": here})
    with pytest.raises(ConfigurationError, match="Database 'lost' lies in"):
        extension.setup(wrong)
    assert [(check.name, check.ok) for check in await extension.ready()] == [
        ("lost", False),
        ("here", True),
    ]


async def test_a_database_in_use_is_asked_over_its_pool(place: Place) -> None:
    place.configure()
    extension = Databases()
    (before,) = await extension.ready()
    await acreate_all(Country)
    async with transaction():
        (after,) = await extension.ready()
    kind = "postgresql" if place.engine == "postgres" else "sqlite"
    assert before == after == Check("default", f"{kind} answers", ok=True)


async def test_a_pool_that_cannot_connect_is_not_ready(free_port: int) -> None:
    configure(database=f"postgresql://ann:hunter2@127.0.0.1:{free_port}/x")
    (found,) = await Databases().ready()
    assert not found.ok
    assert "hunter2" not in found.text
    assert "ann" not in found.text
