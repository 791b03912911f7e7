"""`treefold test`: pytest over the project, or only what touches a URL."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from treefold_cli._checks.choose_tests import (
    find_routes_by_url,
    find_test_files as files_of,
    find_tests_for_routes,
)
from treefold_router import RouteTable

Project = Callable[..., Path]
Executable = Callable[..., "subprocess.CompletedProcess[str]"]

TESTS = """\
import pytest

BASE = "/v1/health"


def test_concrete():
    assert "/v1/user/42?full=1"


@pytest.mark.parametrize("n", [1, 2])
def test_formatted(n):
    assert f"/v1/user/{n}"


@pytest.mark.parametrize("url", ["http://test/v1/user/9"])
def test_decorated(url): ...


def test_other():
    assert "/v1/user/3/orders"


class TestThings:
    def test_file(self):
        assert "Api/v1/User/[id]/Get.py"

    def test_module(self):
        assert "Api.v1.User.[id].Get"

    async def test_nothing(self): ...
"""


@pytest.fixture
def root(project: Project) -> Path:
    root = project("v1/User/[id]/Get.py", "v1/User/[id]/Orders/Get.py", "v1/Health/Get.py")
    put(root, "Tests/test_api.py", TESTS)
    put(root, "Tests/v1/User/[id]/test_mirror.py", "def test_mirrored(): ...\n")
    put(root, "Tests/test_import.py", "def test_it():\n    from Api.v1.Health.Services import x\n")
    put(root, ".venv/test_hidden.py", "raise SystemExit('collected')\n")
    return root


def put(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def touching(root: Path, url: str) -> dict[str, list[str]]:
    table = RouteTable.scan(root / "Api")
    return {
        k: list(v)
        for k, v in find_tests_for_routes(root, table, find_routes_by_url(table, url)).items()
    }


@pytest.mark.parametrize("url", ["/v1/user/[id]", "/v1/user/{id}", "/v1/user/[x]/", "/v1/user/7"])
def test_a_url_finds_the_tests_that_name_it(root: Path, url: str):
    assert touching(root, url) == {
        "Tests/test_api.py": [
            "test_concrete",
            "test_formatted",
            "test_decorated",
            "TestThings::test_file",
            "TestThings::test_module",
        ],
        "Tests/v1/User/[id]/test_mirror.py": [""],
    }


def test_what_a_whole_file_shares_means_all_of_its_tests(root: Path):
    assert touching(root, "/v1/health") == {
        "Tests/test_api.py": [""],
        "Tests/test_import.py": ["test_it"],
    }


UNVERSIONED = """\
def test_by_the_default_version():
    assert "/user/42"


def test_by_name():
    assert "/v1/user/42"


def test_page():
    assert "/docs/operations?x=1"


def test_other_page():
    assert "/docsx"
"""


@pytest.mark.parametrize(
    ("url", "tests"),
    [
        ("/user/[id]", ["by_the_default_version", "by_name"]),
        ("/user/7", ["by_the_default_version", "by_name"]),
        ("/v1/user/7", ["by_the_default_version", "by_name"]),
        ("/docs", ["page"]),
    ],
)
def test_a_url_without_a_version_finds_its_tests(
    forked: Executable, project: Project, url: str, tests: list[str]
):
    root = project("v1/User/[id]/Get.py", "v2/Health/Get.py")
    put(root, "test_it.py", UNVERSIONED)
    put(root, "treefold.toml", "default_version = 'v1'\n")
    done = forked("test", url, "-v", "-p", "no:cacheprovider", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"::test_(\w+) PASSED", done.stdout) == tests


def test_a_file_that_is_no_python_is_left_to_pytest(root: Path):
    put(root, "Tests/test_bad.py", "x = = '/v1/health'\n")
    assert "Tests/test_bad.py" not in touching(root, "/v1/health")
    assert "Tests/test_bad.py" in files_of(root)


def test_everything_runs_without_a_url(forked: Executable, root: Path):
    (root / "Tests/test_import.py").unlink()
    done = forked("test", "-p", "no:cacheprovider", "-k", "not nothing", cwd=root)
    assert done.returncode == 0, done.stdout
    assert "8 passed, 1 deselected" in done.stdout


def test_a_url_runs_only_what_touches_it(forked: Executable, root: Path):
    done = forked("test", "/v1/user/[id]", "-v", "-p", "no:cacheprovider", cwd=root)
    assert done.returncode == 0, done.stdout
    ran = re.findall(r"^(\S+::\S+) PASSED", done.stdout, re.MULTILINE)
    assert ran == [
        "Tests/test_api.py::test_concrete",
        "Tests/test_api.py::test_formatted[1]",
        "Tests/test_api.py::test_formatted[2]",
        "Tests/test_api.py::test_decorated[http://test/v1/user/9]",
        "Tests/test_api.py::TestThings::test_file",
        "Tests/test_api.py::TestThings::test_module",
        "Tests/v1/User/[id]/test_mirror.py::test_mirrored",
    ]
    assert done.stderr.startswith("Tests of GET /v1/user/{id} are in Tests/test_api.py, ")


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (["Tests/v1/User/[id]/test_mirror.py"], 1),
        (["Tests/v1/User/[id]/test_mirror.py::test_mirrored"], 1),
        (["Tests/v1/User/[id]"], 1),
        (["Tests/v1/User/[id]/test_mirror.py", "Tests/test_api.py::test_formatted"], 3),
        (["Tests/test_api.py::test_formatted[2]"], 1),
        (["/v1/user/3/orders", "Tests/v1/User/[id]/test_mirror.py"], 2),
    ],
)
def test_brackets_in_paths_are_no_trap(
    forked: Executable, root: Path, arguments: list[str], passed: int
):
    done = forked("test", *arguments, "-q", "-p", "no:cacheprovider", cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{passed} passed" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["/v1/user/3/orders"], ["Tests/test_api.py"]])
def test_the_project_itself_may_lie_below_brackets(
    forked: Executable, root: Path, tmp_path: Path, arguments: list[str]
):
    (root / "Tests/test_import.py").unlink()
    moved = root.rename(tmp_path / "a [project]")
    options = ["-q", "-p", "no:cacheprovider", "-k", "not nothing"]
    done = forked("test", *arguments, *options, cwd=moved)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_the_exit_code_is_that_of_pytest(forked: Executable, root: Path):
    put(root, "Tests/test_red.py", "def test_red():\n    assert '/v1/health' == 1\n")
    options = ["-q", "-p", "no:cacheprovider"]
    assert forked("test", "Tests/test_red.py", *options, cwd=root).returncode == 1
    assert forked("test", "Tests/missing.py", *options, cwd=root).returncode == 4


UNPLACED = """\
URL = "/v1/" + "user"


def test_by_a_name(client):
    client.get(URL)


def test_by_a_prefix(client):
    client.get(f"{URL}/1")


def test_read(client):
    client.get("/v1/user/3/orders", headers={"a": URL}).json().get(URL)
    {}.get(URL)


def test_formatted(client, n=1):
    client.post(f"/v1/user/{n}/orders?x={URL}")


HEALTH = "/v1/health?"


def test_by_a_text(client):
    client.get(HEALTH)


@pytest.mark.parametrize("url", ["/v1/health"])
def test_by_a_parameter(client, url):
    client.get(url)


class TestMade:
    async def test_with(self):
        async with AsyncTestClient(app) as c:
            await c.request("GET", url=URL)

    def test_without_a_client(self, cache):
        cache.get(URL)
"""


def test_tests_whose_url_is_computed_are_named(forked: Executable, root: Path):
    put(root, "Tests/test_computed.py", UNPLACED)
    done = forked("test", "/v1/user/3/orders", "--collect-only", "-q", cwd=root)
    expected = ", ".join(
        f"Tests/test_computed.py::{name}"
        for name in ("test_by_a_name", "test_by_a_prefix", "TestMade::test_with")
    )
    assert done.stderr.splitlines()[1] == f"Not placed, because their URL is computed: {expected}"
    put(root, "Tests/test_many.py", "".join(f"{MANY.format(n)}\n" for n in range(9)))
    done = forked("test", "/v1/user/3/orders", "--collect-only", "-q", cwd=root)
    assert done.stderr.splitlines()[1].endswith("test_6 and 2 more tests")


MANY = "def test_{}(client):\n    client.get(url())\n"


@pytest.mark.parametrize("url", ["/api/v1/user/3/orders", "/v1/user/3/orders"])
def test_urls_below_the_prefix_of_root_path_are_the_same(forked: Executable, root: Path, url: str):
    put(root, "treefold.toml", 'root_path = "/api"\n')
    text = 'def test_it(client):\n    client.get("/api/v1/user/1/orders")\n'
    put(root, "Tests/test_prefix.py", text)
    done = forked("test", url, "--collect-only", "-q", cwd=root)
    assert "Tests/test_prefix.py::test_it" in done.stdout
    plain = forked("test", "/v1/health", "--collect-only", "-q", cwd=root)
    assert "Tests/test_prefix.py" not in plain.stdout + plain.stderr


def test_no_test_and_no_route_are_told_apart(forked: Executable, root: Path):
    put(root, "Api/v1/Lonely/Get.py", "def handler(request): ...\n")
    done = forked("test", "/v1/lonely", cwd=root)
    expected = "No test touches GET /v1/lonely; looked in 3 test files for its URL or its file\n"
    assert (done.returncode, done.stdout, done.stderr) == (5, "", expected)
    done = forked("test", "/v1/nope", cwd=root)
    expected = "Error: No route at '/v1/nope'; 'treefold why get /v1/nope' says why\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


@pytest.mark.parametrize(
    ("module", "command", "message"),
    [
        ("pytest", "test", "pytest is not installed; pip install 'treefold[test]'"),
        ("mypy", "typecheck --with mypy", "mypy is not installed; pip install mypy"),
        ("mypy pyright", "typecheck", "No type checker is installed; pip install mypy, or pyright"),
    ],
)
def test_a_missing_tool_is_one_line(root: Path, module: str, command: str, message: str):
    program = "import sys\nsys.modules.update(dict.fromkeys(sys.argv.pop(1).split()))\n"
    program += "from treefold_cli import main\nmain()\n"
    done = subprocess.run(
        [sys.executable, "-c", program, module, *command.split()],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"Error: {message}\n")


def test_the_choice_is_read_from_one_variable(root: Path):
    from treefold_cli._checks.pytest_choice import VARIABLE

    command = [sys.executable, "-m", "pytest", "-q", "-p", "treefold_cli._checks.pytest_choice"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider"],
        cwd=root,
        env={VARIABLE: json.dumps({"Tests/test_api.py": ["TestThings"]})},
        capture_output=True,
        text=True,
    )
    assert "2 passed" in done.stdout
