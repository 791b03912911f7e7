"""The pytest plugin: databases of the test run, and the fixture `db`, which undoes each test.

pytest imports this module at every start, in projects that never heard of treefold as well: it
imports `treefold_orm` only when a fixture is used. Of an application it knows one thing, that a
fixture named `app` has configured and prepared the databases once it is there.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from treefold_orm.testing import OwnDatabases


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--reuse-db`, unless the plugin of another framework has that option already."""
    about = "keep the PostgreSQL databases of the run, and use those that an earlier run has kept"
    with contextlib.suppress(ValueError):
        parser.getgroup("treefold").addoption(
            "--reuse-db", dest="reuse_db", action="store_true", help=about
        )


@pytest.fixture(scope="session")
def treefold_databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnDatabases]:
    """The databases of this run, which take the place of those that are configured.

    `TREEFOLD_TEST_DATABASE_URL` names one to use as the default database instead.
    """
    from treefold_orm.testing import OwnDatabases

    address = os.environ.get("TREEFOLD_TEST_DATABASE_URL")
    own = OwnDatabases(
        tmp_path_factory.mktemp("databases"),
        worker=os.environ.get("PYTEST_XDIST_WORKER", ""),
        named={"default": address} if address else {},
        reuse=bool(request.config.getoption("reuse_db", default=False)),
    )
    try:
        yield own
    finally:
        own.close()


@pytest.fixture
def db(request: pytest.FixtureRequest, treefold_databases: OwnDatabases) -> Iterator[None]:
    """Roll back, when the test is over, whatever it and the handlers it called did to any database.

    The databases are those of this test run, in the place of those of `configure()` or of the
    application under test.
    """
    from treefold_orm import aliases
    from treefold_orm.testing import sandbox

    with treefold_databases.active():
        if "app" in request.fixturenames or not aliases():
            # Without an application sandbox() says what is missing.
            with contextlib.suppress(pytest.FixtureLookupError):
                request.getfixturevalue("app")
        treefold_databases.prepare(request.config.rootpath)
        with sandbox():
            yield
