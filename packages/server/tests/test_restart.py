"""The listening socket on its way from one process to the next."""

import os
import socket
import subprocess
import sys

import pytest

from treefold_server import open_inherited_listener

AGAIN = """
import os, sys
from treefold_server import bind_port, open_inherited_listener, restart_process

listener = open_inherited_listener()
if listener is None:
    listener = bind_port("127.0.0.1", 0)
    listener.listen()
    print(listener.getsockname()[1], os.getpid(), flush=True)
    os.environ["READ_FROM_A_FILE"] = "old"
    folder, environment = os.getcwd(), dict(os.environ)
    environment.pop("READ_FROM_A_FILE")
    os.chdir("/")
    restart_process(listener, environment=environment, folder=folder)
assert os.getcwd() == os.environ["EXPECTED_FOLDER"]
print(listener.getsockname()[1], os.getpid(), os.environ.get("READ_FROM_A_FILE"), sys.argv[1:])
print([name for name in os.environ if name == "TREEFOLD_DEV_SOCKET"], listener.get_inheritable())
"""


def test_a_process_starts_again_on_its_socket_with_its_arguments_and_first_environment():
    done = subprocess.run(
        [sys.executable, "-c", AGAIN, "dev", "--port", "0"],
        capture_output=True,
        text=True,
        env={**os.environ, "EXPECTED_FOLDER": os.getcwd()},
    )
    assert done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert second == f"{first} None ['dev', '--port', '0']"
    assert third == "[] False"


@pytest.mark.parametrize("value", ["", "x", "-1", "99999999"])
def test_a_variable_that_names_no_socket_is_ignored(monkeypatch: pytest.MonkeyPatch, value: str):
    monkeypatch.setenv("TREEFOLD_DEV_SOCKET", value)
    assert open_inherited_listener() is None
    assert "TREEFOLD_DEV_SOCKET" not in os.environ


def test_a_file_that_is_no_socket_stays_open(monkeypatch: pytest.MonkeyPatch):
    reading, writing = os.pipe()
    monkeypatch.setenv("TREEFOLD_DEV_SOCKET", str(reading))
    assert open_inherited_listener() is None
    os.write(writing, b"x")
    assert os.read(reading, 1) == b"x"
    os.close(reading)
    os.close(writing)


def test_an_inherited_listener_is_used_once(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setenv("TREEFOLD_DEV_SOCKET", str(os.dup(listener.fileno())))
        given = open_inherited_listener()
        assert given is not None
        with given:
            assert given.getsockname() == listener.getsockname()
        assert open_inherited_listener() is None
