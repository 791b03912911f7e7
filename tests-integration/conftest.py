"""Fixtures of the integration tests: a project is declared, written, and served in every way.

`serve` runs each test that asks for it in process and over a socket with either HTTP parser.
Applications live as long as the module that declares them.
"""

import os
import shutil
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

# Under importlib mode pytest adds no folder; the support modules lie beside this one, those that
# find a real PostgreSQL and a real Redis, and that fork commands, beside the tests of the packages.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parent.parent / "packages" / "orm" / "tests"))
sys.path.append(str(Path(__file__).parent.parent / "packages" / "jobs" / "tests"))
sys.path.append(str(Path(__file__).parent.parent / "packages" / "http" / "tests"))
sys.path.append(str(Path(__file__).parent.parent / "packages" / "cli" / "tests"))

import orm_postgres
from forked_commands import ForkServer
from run_notes import print_notes
from serving import KINDS, NewDatabase, Serve, Served, start, write_tree


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the run leaves to say."""
    print_notes(terminalreporter)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The folder that holds `packages/`."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """A process that has imported treefold, and forks for each command."""
    server = ForkServer("treefold", loaded=["treefold.orm", "treefold_migrations"])
    yield server
    server.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a real PostgreSQL: one that runs, or one of this session's own."""
    try:
        with orm_postgres.server() as address:
            yield address
    except orm_postgres.NoServer as error:
        if os.environ.get("CI"):
            pytest.fail(f"No real PostgreSQL: {error}")
        pytest.skip(f"no real PostgreSQL: {error}")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    """Which database there is."""
    return request.param


@pytest.fixture(scope="module")
def new_database(
    engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> NewDatabase:
    """Make an empty database: `with new_database() as address`."""

    @contextmanager
    def make() -> Generator[str]:
        if engine == "sqlite":
            yield f"sqlite:///{tmp_path_factory.mktemp('database')}/shop.sqlite3"
            return
        with orm_postgres.database(request.getfixturevalue("postgres_server")) as address:
            yield address

    return make


@pytest.fixture(scope="module")
def sample(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample application, so that nothing is left in it."""
    root = tmp_path_factory.mktemp("sample") / "sample"
    shutil.copytree(
        repository / "tests-integration" / "sample",
        root,
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return root


@pytest.fixture(scope="module")
def realworld(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the RealWorld application, so that nothing is left in it."""
    root = tmp_path_factory.mktemp("realworld") / "realworld"
    shutil.copytree(
        repository / "tests-integration" / "realworld",
        root,
        ignore=shutil.ignore_patterns("__pycache__", "*.sqlite3*"),
    )
    return root


@pytest.fixture(scope="module")
def helpdesk(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the help desk, so that nothing is left in it."""
    root = tmp_path_factory.mktemp("helpdesk") / "helpdesk"
    shutil.copytree(
        repository / "tests-integration" / "helpdesk",
        root,
        ignore=shutil.ignore_patterns("__pycache__", "*.sqlite3*", "exports", "outgoing"),
    )
    return root


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
