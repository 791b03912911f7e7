"""Each test begins without caches, and without the applications of former tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from treefold_http._runtime import current_application
from treefold_http.cache._aliases import forget_caches


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    # Their lifespans were started by a request and never stopped.
    current_application._running.clear()
    current_application._latest.clear()
    yield
    forget_caches()
