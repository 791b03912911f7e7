"""The pytest plugin: the fixtures `app`, `client` and `async_client`, and where the project is.

pytest imports this module at every start, in projects that never heard of treefold as well. It
lives outside `treefold_http`, and imports it only when a fixture is used.
"""

from __future__ import annotations

import functools
import inspect
import os
import secrets
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from treefold_http import Application
    from treefold_http.testing import AsyncTestClient, TestClient

_NAME = "treefold_app_dir"
_CONTRACT = "treefold_contract"
_CONTRACT_MODES = ("strict", "warn", "off")
_TEST_RUN = "TREEFOLD_TEST_RUN"

contract_mode = "off"
"""What test clients do, when they are not told, with answers that a contract does not declare."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--treefold-app-dir` and `--treefold-contract`, and the settings of the same names."""
    about = "folder that holds Api/; found from the test file upwards when it is not given"
    parser.getgroup("treefold").addoption(
        "--treefold-app-dir", dest=_NAME, default=None, metavar="DIR", help=about
    )
    parser.addini(_NAME, about, default="")
    about = "answers that the contract of their route does not declare: strict, warn or off"
    parser.getgroup("treefold").addoption(
        "--treefold-contract", dest=_CONTRACT, default=None, metavar="MODE", help=about
    )
    parser.addini(_CONTRACT, about, default="off")


def pytest_configure(config: pytest.Config) -> None:
    """Choose names of this run in Redis, also for the processes that its tests start.

    Before the tests are imported: a module may use a cache.

    Raises:
        pytest.UsageError: for an unknown mode of the contract.
    """
    _choose_contract_mode(config)
    before = os.environ.get(_TEST_RUN)
    os.environ[_TEST_RUN] = run = f"test-{secrets.token_hex(4)}"
    config.add_cleanup(lambda: _clean_up_redis_run(run, before))


def _choose_contract_mode(config: pytest.Config) -> None:
    global contract_mode
    before = contract_mode
    mode = config.getoption(_CONTRACT) or config.getini(_CONTRACT) or "off"
    if mode not in _CONTRACT_MODES:
        raise pytest.UsageError(f"{_CONTRACT} must be strict, warn or off, got {mode!r}")
    contract_mode = mode

    def restore() -> None:
        global contract_mode
        contract_mode = before

    config.add_cleanup(restore)


def _clean_up_redis_run(run: str, previous_run: str | None) -> None:
    if "treefold_http._redis.client" in sys.modules:  # otherwise nothing of it is in Redis
        from treefold_http._redis.ended_runs import delete_test_run_keys

        delete_test_run_keys(run)
    os.environ.pop(_TEST_RUN, None)
    if previous_run is not None:
        os.environ[_TEST_RUN] = previous_run


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Write the log of a phase while pytest captures it, not later between its dots."""
    return (yield from _flush_log_after_phase())


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Do the same for the test itself."""
    return (yield from _flush_log_after_phase())


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Do the same for the end of its fixtures."""
    return (yield from _flush_log_after_phase())


def _flush_log_after_phase() -> Generator[None]:
    try:
        return (yield)
    finally:
        if logging := sys.modules.get("treefold_logging"):  # otherwise nothing has logged
            logging.flush()


def find_app_dir(config: pytest.Config, start: Path) -> Path:
    """Find the application root: option, setting, or the nearest folder above that holds `Api/`.

    Args:
        start: where to look first; then the working directory, then pytest's root.

    Raises:
        pytest.UsageError: when there is none.
    """
    if option := config.getoption(_NAME):
        folder = config.invocation_params.dir / option
        return _require_api_folder(folder, f"--treefold-app-dir {option}")
    if setting := config.getini(_NAME):
        folder = config.inipath.parent if config.inipath else config.rootpath
        return _require_api_folder(folder / setting, f"{_NAME} {setting}")
    for origin in (start, config.invocation_params.dir, config.rootpath):
        for folder in (origin, *origin.parents):
            if (folder / "Api").is_dir():
                return folder
    raise pytest.UsageError(
        f"No folder above {start} contains Api/; name the application folder with"
        f" --treefold-app-dir DIR or {_NAME} in the settings of pytest"
    )


def _require_api_folder(folder: Path, setting_text: str) -> Path:
    if not (folder / "Api").is_dir():
        message = f"{setting_text}: {folder} must contain Api/; name the folder that does"
        raise pytest.UsageError(message)
    return folder


def make_test_application(root: Path) -> Application:
    """Return the application of a root, with a secret of its own if the project has none.

    Like the databases of a run: sessions and tokens work in tests without a secret of production.
    """
    from treefold_http import Application, Settings, TreefoldError

    try:
        settings = Settings.load(root).with_secret()
    except TreefoldError:
        return Application(root)  # its boot reports the error
    return Application(root, settings=settings)


@pytest.fixture(scope="session")
def treefold_apps() -> Callable[[Path], Application]:
    """Return the application of a root, booted and prepared for tests once in the session."""
    from treefold_http.extensions import prepare_tests

    made: dict[Path, Application] = {}
    prepared: set[Path] = set()

    def boot_application(root: Path) -> Application:
        if (app := made.get(root)) is None:
            app = made[root] = make_test_application(root)
        app.boot()
        if root not in prepared:
            prepare_tests(app)
            prepared.add(root)
        return app

    return boot_application


@pytest.fixture
def app(
    request: pytest.FixtureRequest, treefold_apps: Callable[[Path], Application]
) -> Iterator[Application]:
    """The project's application: booted once in the session, its overrides undone after a test.

    Its databases are those of the test run, never those of the settings.
    """
    root = find_app_dir(request.config, request.path.parent)
    with _use_test_databases(request) as own:
        if own is not None:
            own.prepared = True  # by `treefold_apps`
        app = treefold_apps(root)
        before = dict(app.overrides)
        yield app
    if dict(app.overrides) != before:
        app.overrides.clear()
        app.overrides.update(before)


@pytest.fixture(scope="session", autouse=True)
def treefold_keeps_off_configured_databases(request: pytest.FixtureRequest) -> Iterator[None]:
    """Use the databases of the run in every test of a project, also in one without our fixtures."""
    first: list[pytest.Item] = request.session.items[:1]
    try:
        find_app_dir(request.config, first[0].path.parent if first else request.config.rootpath)
    except pytest.UsageError:
        yield
        return
    with _use_test_databases(request):
        yield


@contextmanager
def _use_test_databases(request: pytest.FixtureRequest) -> Generator[Any]:
    """Keep off the configured databases, if a plugin beside this one knows how."""
    try:
        own: Any = request.getfixturevalue("treefold_databases")
    except pytest.FixtureLookupError:
        yield None
        return
    with own.active():
        yield own


@pytest.fixture
def client(app: Application) -> Iterator[TestClient]:
    """A `TestClient` of `app`, started for this test and stopped after it."""
    from treefold_http.testing import TestClient

    with TestClient(app) as client:
        yield client


@pytest.fixture
def async_client(request: pytest.FixtureRequest, app: Application) -> AsyncTestClient:
    """An `AsyncTestClient` of `app`, started and stopped on the event loop of the async test.

    The test may be run by anyio, pytest-asyncio or any other plugin; one that no plugin runs gets a
    loop from here.
    """
    from treefold_http.testing import AsyncTestClient

    test: Callable[..., Coroutine[Any, Any, None]] = request.function
    if not inspect.iscoroutinefunction(test):
        raise pytest.UsageError(
            f"{request.node.name} requests async_client; make it an `async def`, or use `client`"
        )
    client = AsyncTestClient(app)

    @functools.wraps(test)
    async def run_with_client(*args: Any, **kwargs: Any) -> None:
        async with client:
            await test(*args, **kwargs)

    request.node.obj = run_with_client
    return client


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object:
    """Run an async test that uses `async_client` and that no other plugin has run."""
    test = pyfuncitem.obj
    if "async_client" not in pyfuncitem.fixturenames or not inspect.iscoroutinefunction(test):
        return None
    import asyncio

    names = inspect.signature(test).parameters
    asyncio.run(test(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
