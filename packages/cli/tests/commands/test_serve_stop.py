"""A stop signal while clients keep their connections busy: no request is lost."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lossless_clients import Count, keep_asking, wait_until_served

Project = Callable[..., Path]
Start = Callable[..., Any]


@pytest.mark.parametrize(
    ("workers", "number", "group"),
    [
        ("1", signal.SIGTERM, False),
        ("1", signal.SIGINT, True),
        ("2", signal.SIGTERM, False),
        ("2", signal.SIGTERM, True),
    ],
)
def test_no_request_is_lost_at_the_end(
    start: Start, project: Project, workers: str, number: int, group: bool
):
    root = project("v1/User/Get.py")
    server = start("serve", "--workers", workers, cwd=root).started()
    # the lines of the requests would fill the pipe
    draining = threading.Thread(target=server.drain)
    draining.start()
    count = lost_at_stop(server, clients=16, number=number, group=group)
    draining.join(30)

    assert count.lost == 0
    assert count.answered >= 320


def lost_at_stop(server: Any, *, clients: int, number: int, group: bool) -> Count:
    """Stop a server that clients keep busy; return what they counted."""
    host, _, port = str(server.url).rpartition("/")[2].partition(":")
    address = host, int(port)
    count = Count()
    asking = threading.Thread(target=lambda: asyncio.run(keep_asking(address, clients, count)))
    wait_until_served(address)
    asking.start()
    while count.answered < 20 * clients:
        assert asking.is_alive()
        time.sleep(0.01)
    (os.killpg if group else os.kill)(server.process.pid, number)
    assert server.process.wait(30) == 0
    asking.join(30)
    assert not asking.is_alive()
    return count
