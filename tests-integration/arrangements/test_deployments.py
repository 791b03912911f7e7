"""Deployments on one Redis: two of them never meet, and the processes of one of them do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import http_redis
import pytest
from forked_commands import ForkServer

from arrangements.deployments import (
    Deployment,
    fail_to_serve,
    find_traces,
    is_emptied_by,
    serving,
)

SHOP = Deployment()
OTHERS = {
    "a second process": SHOP,
    "another application": Deployment(name="warehouse"),
    "another environment": Deployment(environment="staging"),
    "a test run": Deployment(test_run="test-1"),
    "another database": Deployment(database=1),
    "another application in another database": Deployment(name="warehouse", database=1),
}


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    with http_redis.started() as server:
        yield server.url


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_only_processes_of_one_deployment_meet(
    other: Deployment, tmp_path: Path, redis: str, fork_server: ForkServer
) -> None:
    with http_redis.connected(redis) as client:
        client.flushall()
    with (
        serving(SHOP, fork_server=fork_server, root=tmp_path / "one", redis=redis) as first,
        serving(other, fork_server=fork_server, root=tmp_path / "two", redis=redis) as second,
    ):
        assert find_traces(first, second) == SHOP.shares_with(other)
        assert is_emptied_by(first, second) is (other == SHOP)


@pytest.mark.parametrize(
    ("other", "found"),
    [
        (
            Deployment(secret="somebody else has this secret of 32 bytes"),
            "another secret_key",
        ),
        (Deployment(tables="sqlite:////tmp/another.sqlite3"), "/tmp/another.sqlite3"),
    ],
    ids=["secret", "database"],
)
def test_a_stranger_of_the_same_names_does_not_start(
    other: Deployment, found: str, tmp_path: Path, redis: str, fork_server: ForkServer
) -> None:
    with http_redis.connected(redis) as client:
        client.flushall()
    shop = replace(SHOP, tables="sqlite:////tmp/one.sqlite3") if other.tables else SHOP
    with serving(shop, fork_server=fork_server, root=tmp_path / "one", redis=redis):
        output = fail_to_serve(other, fork_server=fork_server, root=tmp_path / "two", redis=redis)
    assert f"must belong to one deployment, got {found}" in output
    assert "set name = '...' in treefold.toml" in output
