"""`treefold doctor` and Redis, asked through the driver that the extra `redis` installs.

A Redis that answers is asked in the integration tests.
"""

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from treefold_cli._checks.redis_login import (
    TIMEOUT,
    Unreachable,
    find_redis_urls,
    log_in_and_ping_redis,
)
from treefold_http import Settings

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def root(project: Project) -> Path:
    return project("v1/Health/Get.py")


@pytest.fixture
def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def test_a_redis_of_the_settings_that_is_away_fails_once(
    forked: Executable, root: Path, free_port: int
):
    url = f"redis://:hunter2@127.0.0.1:{free_port}"
    (root / "treefold.toml").write_text(
        f'redis_url = "{url}"\n[caches]\ndefault = "{url}/1"\nsame = "{url}"\nmine = "memory://"\n'
    )
    done = forked("doctor", "--json", cwd=root)
    assert done.returncode == 1
    found = [each for each in json.loads(done.stdout)["findings"] if each["topic"] == "redis"]
    assert [(each["status"], each["text"].partition(": ")[0]) for each in found] == [
        ("fail", "setting redis_url"),
        ("fail", "cache 'default'"),
    ]
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize("option", ["shared=true", "db=1&shared=true", "db=1"])
def test_a_cache_at_a_unix_socket_is_asked_there(forked: Executable, root: Path, option: str):
    (root / "treefold.toml").write_text(f'[caches]\ndefault = "unix:///nowhere.sock?{option}"\n')
    done = forked("doctor", "--json", cwd=root)
    found = [each for each in json.loads(done.stdout)["findings"] if each["topic"] == "redis"]
    assert [each["text"].partition(" (")[0] for each in found] == [
        "cache 'default': /nowhere.sock cannot be reached"
    ]


def test_a_cache_that_is_shared_is_asked_at_its_server(
    forked: Executable, root: Path, free_port: int
):
    url = f"redis://127.0.0.1:{free_port}"
    (root / "treefold.toml").write_text(
        f'redis_url = "{url}"\n[caches]\ndefault = "{url}?shared=true"\n'
    )
    done = forked("doctor", "--json", cwd=root)
    found = [each for each in json.loads(done.stdout)["findings"] if each["topic"] == "redis"]
    assert [each["text"].partition(" (")[0] for each in found] == [
        f"setting redis_url: 127.0.0.1:{free_port} cannot be reached"
    ]


def test_a_redis_that_is_not_there_fails_without_its_password(
    forked: Executable, root: Path, free_port: int
):
    done = forked("doctor", cwd=root, REDIS_URL=f"redis://:hunter2@127.0.0.1:{free_port}")
    assert (done.returncode, "hunter2" in done.stdout) == (1, False)
    where = f"127.0.0.1:{free_port} cannot be reached (Connection refused)"
    line = f"fail redis     REDIS_URL: {where}  (start it, or mend the URL)"
    assert line in done.stdout.splitlines()


@pytest.fixture
def stranger() -> Iterator[Callable[[bytes], int]]:
    """A server of another kind: it answers with the same bytes, or never, whatever it is asked."""
    listeners: list[socket.socket] = []

    def start(answer: bytes) -> int:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def serve() -> None:
            with closing(listener.accept()[0]) as client:
                if answer:
                    client.sendall(answer)
                client.recv(1000)
                client.recv(1000)  # until the other side has had enough

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1]

    yield start
    for listener in listeners:
        listener.close()


def test_another_kind_of_server_is_not_taken_for_it(stranger: Callable[[bytes], int]):
    port = stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port} answers, but not as "):
        log_in_and_ping_redis(f"redis://127.0.0.1:{port}")


def test_a_server_that_loads_its_data_is_named(stranger: Callable[[bytes], int]):
    port = stranger(b"-LOADING Redis is loading the dataset in memory\r\n")
    with pytest.raises(Unreachable, match=f"127.0.0.1:{port} loads its data still"):
        log_in_and_ping_redis(f"redis://127.0.0.1:{port}")


def test_a_server_that_is_silent_is_given_up(stranger: Callable[[bytes], int]):
    port = stranger(b"")
    with pytest.raises(Unreachable, match=f"does not answer within {TIMEOUT:g} s"):
        log_in_and_ping_redis(f"redis://127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://x:99999999/", "the URL has no valid port"),
        ("redis://[::1/", "the URL cannot be read"),
        ("redis://nowhere.invalid", "nowhere.invalid:6379 cannot be reached"),
        ("unix:///nowhere.sock", "/nowhere.sock cannot be reached"),
        ("127.0.0.1:6379", "the URL is of no kind that Redis has"),
        ("http://127.0.0.1:6379", "the URL is of no kind that Redis has"),
    ],
)
def test_a_server_that_cannot_be_reached_is_named(url: str, message: str):
    with pytest.raises(Unreachable) as caught:
        log_in_and_ping_redis(url)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "url",
    [
        # The host ends at `/`, `?` and `#`, so that a password with one of them is read as another
        # part, and its digits as a port.
        "redis://hunter2:12345/x@127.0.0.1:1",
        "redis://:12345/hunter2@127.0.0.1:1",
        "redis://hunter2/x@127.0.0.1:1",
        "rediss://hunter2:12345#x@127.0.0.1:1",
        "redis://hunter2:12345?x@127.0.0.1:1",
        "redis://hunter2:12345?x=y@127.0.0.1:1",
        "redis://127.0.0.1:1?hunter2=12345",
        "redis://127.0.0.1:1?socket_timeout=hunter2",
        "redis://:hunter2\u2100@127.0.0.1:1",
        "redis://:hunter2@[::1/",
        "redis://:hunter2@a..b:1",
        f"redis://:hunter2@{'a' * 70}.b:1",
        "redis://:hunter2@\udce4x:1",
        "redis://:hunter2@a\0b:1",
        "redis://:hunter2@127.0.0.1:hunter2",
        "redis://:x@hunter2@127.0.0.1:1",
        "unix://:hunter2@/nowhere.sock",
    ],
)
def test_no_part_of_a_password_is_in_a_finding(url: str):
    for given in (url, f"{url}{'&' if '?' in url else '?'}shared=true"):
        for _, asked in find_redis_urls(Settings(caches={"default": given})):
            with pytest.raises(Unreachable) as caught:
                log_in_and_ping_redis(asked)
            said = f"{caught.value} {caught.value.advice}"
            assert not any(secret in said for secret in ("hunter2", "12345")), said


def test_a_password_that_is_no_text_is_in_no_finding():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Unreachable) as caught:
            log_in_and_ping_redis(f"redis://:hunter\udce42@127.0.0.1:{port}")
    assert str(caught.value) == (
        f"127.0.0.1:{port} cannot be reached (a part of the URL cannot be encoded)"
    )


def test_a_password_in_a_query_may_have_an_at_sign():
    with pytest.raises(Unreachable, match=r"^127\.0\.0\.1:1 cannot be reached"):
        log_in_and_ping_redis("redis://127.0.0.1:1?password=p@ss")
