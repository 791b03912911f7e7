"""The pytest plugin: the fixture `db`, a database of which nothing is kept after a test.

pytest imports this module at every start, in projects that never heard of treefold as well: it
imports `treefold_orm` only when the fixture is used. Of an application it knows one thing, that a
fixture named `app` has configured the databases once it is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest


@pytest.fixture
def db(request: pytest.FixtureRequest) -> Iterator[None]:
    """Roll back, when the test is over, whatever it and the handlers it called did to any database.

    The databases are those of `configure()`, or of the application under test.
    """
    from treefold_orm import aliases
    from treefold_orm.testing import sandbox

    if "app" in request.fixturenames or not aliases():
        # Without an application sandbox() says what is missing.
        with contextlib.suppress(pytest.FixtureLookupError):
            request.getfixturevalue("app")
    with sandbox():
        yield
