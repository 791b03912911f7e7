"""New connections are refused while earlier ones are accepted, also for a user without rights."""

import os
import socket
import subprocess
import sys

import pytest

PROGRAM = """
import os, socket, sys
from treefold_server import _refusal as refusal

name, host, user = sys.argv[1:]
socket.getaddrinfo(host, 80)  # imports what it needs while the folders can be read
if int(user):
    os.setgroups([])
    os.setuid(int(user))
with socket.socket(getattr(socket, name)) as listener:
    listener.bind((host, 0))
    listener.listen(8)
    address = listener.getsockname()[:2]
    with socket.create_connection(address) as early:
        assert refusal.is_refusing(listener) is False
        refusal.refuse_connections(listener)
        assert refusal.is_refusing(listener) is True
        try:
            socket.create_connection(address, timeout=0.5)
            sys.exit("a connection began")
        except OSError as error:
            print(type(error).__name__)
        accepted, _ = listener.accept()
        with accepted:
            early.sendall(b"asked")
            assert accepted.recv(5) == b"asked"
            accepted.sendall(b"answered")
            assert early.recv(8) == b"answered"
"""
NOBODY = 65534
IS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as trial:
            trial.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="other systems shorten the queue")
@pytest.mark.parametrize(
    ("family", "host"),
    [("AF_INET", "127.0.0.1")] + ([("AF_INET6", "::1")] if has_ipv6() else []),
)
@pytest.mark.parametrize("user", [NOBODY, 0] if IS_ROOT else [0])
def test_new_connections_are_refused_and_earlier_ones_accepted(
    family: str, host: str, user: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, family, host, str(user)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() in ("ConnectionRefusedError", "TimeoutError")
