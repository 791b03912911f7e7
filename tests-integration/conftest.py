"""Fixtures of the integration tests: a project is declared, written, and served in every way.

`serve` runs each test that asks for it in process and over a socket with either HTTP parser.
Applications live as long as the module that declares them.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

# Under importlib mode pytest adds no folder; the support module lies beside this one.
sys.path.insert(0, str(Path(__file__).parent))

from serving import KINDS, Serve, Served, start, write_tree


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds `packages/`."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """How the application is served."""
    return request.param


@pytest.fixture(scope="module")
def serve(kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Serve a tree `{path: source}`; keywords as in `serving.start`. Stopped after the module."""
    with ExitStack() as running:

        def write_and_start(
            tree: Mapping[str, str], *, dev: bool = False, default_version: str | None = None
        ) -> Served:
            root = write_tree(tmp_path_factory.mktemp("project"), tree)
            served = start(kind, root, dev=dev, default_version=default_version)
            running.callback(served.stop)
            return served

        yield write_and_start
