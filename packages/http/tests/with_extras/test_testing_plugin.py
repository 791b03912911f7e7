"""The pytest plugin, in a pytest of its own for each project."""

import os
import secrets
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import http_redis
import pytest

from _treefold_pytest import make_test_application
from treefold_http import TreefoldError

Write = Callable[..., Path]

PROJECT = {
    "hooks.py": """
        def begin(app):
            app.state.starts = getattr(app.state, "starts", 0) + 1

        on_startup = [begin]
    """,
    "Middleware/__init__.py": """
        from treefold_http.middleware import Sessions

        middlewares = [Sessions()]
    """,
    "Services/__init__.py": "",
    "Services/clock.py": "def now():\n    return 'real'\n",
    "Api/v1/Time/Get.py": """
        from Services.clock import now
        from treefold_http import Depends

        async def handler(time: str = Depends(now)):
            return time
    """,
}


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run pytest with the plugin and no other; give its exit code and its output."""
    environment = {name: value for name, value in os.environ.items() if name[:7] != "PYTEST_"}
    environment |= {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [sys.executable, "-W", "error", "-m", "pytest", "-p", "_treefold_pytest"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-W", "error", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


TESTS = """
    import pytest

    def test_the_client_asks_the_application(client):
        assert client.get("/v1/time").text == "real"

    def test_the_application_is_started_for_each_test(app, client):
        assert app.state.starts == 2

    def test_an_override_of_a_test(app, client):
        from Services.clock import now
        app.overrides[now] = lambda: "fake"
        assert client.get("/v1/time").text == "fake"

    def test_it_is_undone_after_it(app, client):
        assert client.get("/v1/time").text == "real"

    async def test_async_without_a_plugin(async_client):
        assert (await async_client.get("/v1/time")).text == "real"
        assert async_client.app.state.starts == 5

    @pytest.mark.parametrize("number", [1, 2])
    async def test_async_with_parameters(number, async_client):
        assert (await async_client.get("/v1/time")).text == "real"

    class TestClass:
        async def test_async_in_a_class(self, async_client):
            assert (await async_client.get("/v1/time")).text == "real"
"""

SECRET = "of this project: at least 32 bytes long"


@pytest.mark.parametrize(("toml", "kept"), [("", False), (f"secret_key = '{SECRET}'", True)])
def test_a_run_has_a_secret_unless_the_project_has_one(
    write: Write, monkeypatch: pytest.MonkeyPatch, toml: str, kept: bool
) -> None:
    monkeypatch.delenv("TREEFOLD_SECRET_KEY", raising=False)
    root = write(PROJECT | {"treefold.toml": toml})
    secrets = {make_test_application(root).settings.secret_key for _ in range(2)}
    if kept:
        assert secrets == {SECRET}
    else:
        assert len({secret for secret in secrets if secret and len(secret) >= 32}) == 2


def test_settings_that_cannot_be_read_are_the_error_of_the_boot(write: Write) -> None:
    app = make_test_application(write(PROJECT | {"treefold.toml": "unknown = 1"}))
    with pytest.raises(TreefoldError, match="unknown"):
        app.boot()


ANYIO_TESTS = """
    import asyncio
    import pytest

    pytestmark = pytest.mark.anyio

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @pytest.fixture
    async def loop():
        return asyncio.get_running_loop()

    async def test_the_client_lives_on_the_loop_of_anyio(loop, async_client):
        assert (await async_client.get("/v1/time")).text == "real"
        assert async_client.app.state.starts == 1
        assert asyncio.get_running_loop() is loop
"""


@pytest.mark.parametrize("plugins", [[], ["-p", "anyio"]])
def test_the_fixtures_serve_the_project(write: Write, plugins: list[str]) -> None:
    root = write(PROJECT | {"Tests/test_time.py": TESTS})

    code, output = run_pytest(root, *plugins)

    assert "8 passed" in output, output
    assert code == 0


def test_the_async_client_works_in_a_test_of_anyio(write: Write) -> None:
    root = write(PROJECT | {"Tests/test_time.py": ANYIO_TESTS})

    code, output = run_pytest(root, "-p", "anyio")

    assert "1 passed" in output, output
    assert code == 0


ASKS = "def test_it(client):\n    assert client.get('/v1/time').text == 'real'\n"


def test_the_project_is_found_from_the_test_upwards(write: Write) -> None:
    root = write(PROJECT | {"Tests/deep/test_time.py": ASKS})

    code, output = run_pytest(root.parent)

    assert "1 passed" in output, output
    assert code == 0


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (["--treefold-app-dir", "../app"], ""),
        ([], "treefold_app_dir = ../app"),
        (["--treefold-app-dir", "../app"], "treefold_app_dir = nowhere"),
    ],
)
def test_option_and_setting_say_where_the_project_is(
    write: Write, arguments: list[str], settings: str
) -> None:
    write(PROJECT, "app")
    tests = write({"test_time.py": ASKS, "pytest.ini": f"[pytest]\n{settings}\n"}, "tests")

    code, output = run_pytest(tests, *arguments)

    assert "1 passed" in output, output
    assert code == 0


LOGS = """
    import pytest

    @pytest.fixture
    def noisy(client):
        client.get("/v1/time")
        yield
        client.get("/v1/time")

    @pytest.mark.parametrize("number", range(20))
    def test_it(noisy, client, number):
        assert client.get("/v1/time").text == "real"

    def test_fails(client):
        client.get("/v1/time?last=1")
        assert False
"""


@pytest.mark.parametrize("capture", ["fd", "sys"])
def test_request_lines_do_not_fall_between_the_dots(write: Write, capture: str) -> None:
    root = write(PROJECT | {"Tests/test_time.py": LOGS})

    code, output = run_pytest(root, "-q", f"--capture={capture}")

    assert output.startswith(f"{'.' * 20}F"), output
    report, summary = output.split("short test summary")
    assert report.count("[INFO] GET") == 1  # below 'Captured stderr call' of the failure
    assert "[INFO] GET" not in summary
    assert code == 1


def _bare(tmp_path: Path, source: str) -> Path:
    (tmp_path / "test_bare.py").write_text(source)
    return tmp_path


def test_no_project_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    code, output = run_pytest(_bare(tmp_path, ASKS))

    assert "contains Api/; name the application folder with --treefold-app-dir DIR" in output
    assert code != 0


def test_a_named_folder_that_is_none_is_an_error(tmp_path: Path) -> None:
    code, output = run_pytest(_bare(tmp_path, ASKS), "--treefold-app-dir", "nowhere")

    assert "--treefold-app-dir nowhere: " in output
    assert "nowhere must contain Api/; name the folder that does" in output
    assert code != 0


def test_a_plain_test_cannot_use_the_async_client(write: Write) -> None:
    root = write(PROJECT | {"test_time.py": "def test_it(async_client):\n    pass\n"})

    code, output = run_pytest(root)

    assert "test_it requests async_client; make it an `async def`, or use `client`" in output
    assert code != 0


def test_a_project_without_treefold_notices_nothing(tmp_path: Path) -> None:
    source = """
import sys

def test_nothing_is_imported():
    assert not {"treefold_http", "treefold_router", "httpx"} & set(sys.modules)
"""
    code, output = run_pytest(_bare(tmp_path, source))

    assert "1 passed" in output, output
    assert code == 0


def test_the_run_takes_its_keys_out_of_redis(write: Write, redis_url: str) -> None:
    name = f"keys-{secrets.token_hex(6)}"
    folder = write(
        {
            "treefold.toml": f'name = "{name}"\n[caches]\ndefault = "{redis_url}"\n',
            "Api/v1/Kept/Get.py": """
                from treefold_http.cache import cached

                @cached(600, tags=["kept"])
                async def handler():
                    return "kept"
            """,
            "test_kept.py": f"""
                from redis import Redis

                def test_an_answer_is_kept(client):
                    assert client.get("/v1/kept").text == "kept"
                    with Redis.from_url({redis_url!r}) as redis:
                        assert list(redis.scan_iter("treefold:{name}:*"))
            """,
        }
    )
    code, output = run_pytest(folder, "-q")
    assert code == 0, output
    with http_redis.connected(redis_url) as redis:
        assert list(redis.scan_iter(f"treefold:{name}:*")) == []


def test_without_httpx_the_client_says_what_to_install() -> None:
    program = "import sys; sys.modules['httpx'] = None; import treefold_http.testing"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )

    expected = 'The test client needs httpx; install it: pip install "treefold[test]"'
    assert f"TreefoldError: {expected}" in done.stderr


WRONG = {
    "Api/v1/Wrong/Get.py": "async def handler() -> list[int]:\n    return ['a']\n",
    "test_wrong.py": """
        from treefold_http.testing import TestClient

        def test_fixture(client):
            client.get("/v1/wrong")

        def test_own_client(app):
            TestClient(app).get("/v1/wrong")

        def test_told(app):
            TestClient(app, contract="off").get("/v1/wrong")
    """,
}


@pytest.mark.parametrize(
    ("ini", "arguments", "outcome"),
    [
        ("", [], "3 passed"),
        ("treefold_contract = strict", [], "2 failed, 1 passed"),
        ("", ["--treefold-contract", "strict"], "2 failed, 1 passed"),
        ("treefold_contract = strict", ["--treefold-contract", "off"], "3 passed"),
        ("treefold_contract = warn", ["-W", "default"], "3 passed, 1 warning"),
    ],
)
def test_a_setting_chooses_the_contract_of_all_clients(
    ini: str, arguments: list[str], outcome: str, write: Write
) -> None:
    folder = write({**WRONG, "pytest.ini": f"[pytest]\n{ini}\n"})
    _, output = run_pytest(folder, *arguments)
    assert outcome in output, output


def test_an_unknown_contract_is_refused(write: Write) -> None:
    code, output = run_pytest(write({**WRONG, "pytest.ini": "[pytest]\ntreefold_contract = loud"}))
    assert (code, "must be strict, warn or off, got 'loud'" in output) == (4, True), output
