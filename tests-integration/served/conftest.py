"""Fixtures of the tests that need a real server: one per HTTP parser, spoken to byte for byte."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

# Under importlib mode pytest adds no folder; the support modules lie beside this one.
sys.path.insert(0, str(Path(__file__).parent))

from docs_pages import axe as axe, browser as browser, contexts as contexts, open_docs as open_docs
from docs_site import build_site
from serving import Process, write_tree
from wire import ServeOnSocket


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the documentation as a release builds it, without a network."""
    return build_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module", params=["h11", "httptools"])
def parser(request: pytest.FixtureRequest) -> str:
    """The HTTP parser of the server."""
    return request.param


@pytest.fixture(scope="module")
def serve_on_socket(
    parser: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServeOnSocket]:
    """Serve a tree `{path: source}` behind the parser. Stopped after the module."""
    with ExitStack() as running:

        def write_and_start(tree: Mapping[str, str]) -> Process:
            root = write_tree(tmp_path_factory.mktemp("project"), tree)
            server = Process(root, parser, dev=False, default_version=None)
            running.callback(server.stop)
            return server

        yield write_and_start
