"""`treefold check --deploy` and a Redis that does not answer, asked through its driver."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]


def test_a_redis_that_does_not_answer_is_a_warning_without_its_password(
    treefold: Treefold, project: Project
):
    root = project("v1/Health/Get.py")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (root / "treefold.toml").write_text(f'redis_url = "redis://:hunter2hunter2@127.0.0.1:{port}"\n')
    code, out, _ = treefold("check", "--deploy")
    assert code == 0
    assert f"redis-unreachable (warning): setting redis_url: 127.0.0.1:{port} cannot be" in out
    assert "hunter2" not in out
