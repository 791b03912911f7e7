"""Metrics of a server with two workers: in the multi-process mode of the library they add up."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from serving import Process, write_tree

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Middleware/__init__.py": """
        from treefold.middleware import Metrics

        middlewares = [Metrics()]
        """,
}


def test_workers_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "metrics"
    folder.mkdir()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(folder))
    server = Process(
        write_tree(tmp_path / "project", TREE),
        "httptools",
        dev=False,
        default_version=None,
        workers=2,
    )
    try:
        server.wait_for(lambda lines: sum("booted in" in line for line in lines) == 2)
        assert {server.get("/v1/ok").status for _ in range(40)} == {200}
        seen = [server.get("/metrics").text for _ in range(5)]
    finally:
        server.stop()
    line = r'^http_requests_total\{method="GET",route="/v1/ok",status="200"\} ([0-9.]+)$'
    assert [re.findall(line, text, re.MULTILINE) for text in seen] == [["40.0"]] * 5
