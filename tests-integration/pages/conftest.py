"""Fixtures of the pages: a session in an empty folder, with databases and a Redis on demand."""

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import http_redis
import orm_postgres
from page_session import PageSession


@pytest.fixture
def session(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PageSession]:
    """A reader with an empty folder."""
    with ExitStack() as stack:

        def new_database() -> str:
            server = request.getfixturevalue("postgres_server")
            return stack.enter_context(orm_postgres.database(server))

        def redis() -> str:
            return stack.enter_context(http_redis.server())

        folder = tmp_path / "page"
        folder.mkdir()
        made = PageSession(folder, new_database, redis)
        made.terminal.environment["TERMINAL_PWD"] = str(tmp_path / "pwd")
        # The Redis may be one of other runs, where a page of the same name is being read.
        made.terminal.environment["TREEFOLD_TEST_RUN"] = os.environ.get("TREEFOLD_TEST_RUN", "")
        stack.callback(made.close)
        yield made
