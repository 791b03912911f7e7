"""`treefold dev`, started as users start it, over real sockets."""

import importlib.util
import json
import signal
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from treefold_cli.commands._dev import is_loopback

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]
Start = Callable[..., Any]


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_it_prints_the_tree_then_the_address_and_serves(start: Start, project: Project):
    root = project("v1/User/[id]/Get.py", "v1/Health/Get.py")
    server = start("dev", cwd=root).started()
    assert get(f"{server.url}/v1/user/7")["file"].endswith("Api/v1/User/[id]/Get.py")
    assert server.stop() == 0
    lines = server.output.splitlines()
    tree = ["/v1", "  /health  GET", "  /user", "    /{id}  GET"]
    assert [line for line in lines if line in tree] == tree
    announced = lines.index(f"serving on {server.url} (stop with Ctrl-C)")
    assert announced > lines.index(tree[-1])
    assert any("GET /v1/user/7 200 " in line for line in lines[announced:])


def test_it_runs_in_development_mode(start: Start, project: Project):
    root = project()
    write(root, "Api/v1/Dev/Get.py", "def handler(request):\n    return [request.app.dev]\n")
    server = start("dev", cwd=root).started()
    assert get(f"{server.url}/v1/dev") == [True]


def test_control_c_ends_it_with_code_0(start: Start, project: Project):
    server = start("dev", cwd=project("v1/Health/Get.py")).started()
    assert server.stop(signal.SIGINT, group=True) == 0
    assert "Traceback" not in server.output


def test_it_says_once_whether_files_are_watched(start: Start, project: Project):
    root = project("v1/Health/Get.py")
    server = start("dev", cwd=root).started()
    get(f"{server.url}/v1/health")
    server.stop()
    watches = importlib.util.find_spec("watchfiles") is not None
    assert server.output.count(f"watching {root}") == watches
    said = "watcher is disabled: the extra is missing (pip install 'treefold[watch]');"
    assert server.output.count(said) == (not watches)


def test_unversioned_requests_can_be_served_from_the_latest_version(start: Start, project: Project):
    root = project("v2/User/Get.py", "v10/User/Get.py")
    server = start("dev", "--default-version", "latest", cwd=root).started()
    assert get(f"{server.url}/user")["file"].endswith("Api/v10/User/Get.py")


def test_another_project_can_be_served(start: Start, project: Project, tmp_path: Path):
    root = project("v1/Health/Get.py")
    server = start("dev", "--app-dir", str(root), cwd=tmp_path).started()
    assert "file" in get(f"{server.url}/v1/health")


def test_an_address_that_others_reach_is_warned_of(start: Start, project: Project):
    server = start("dev", "--host", "0.0.0.0", cwd=project("v1/Health/Get.py")).started()
    warning = (
        "Warning: host '0.0.0.0' lets other machines reach the development server; source and log"
        " are readable for the network"
    )
    assert server.output.splitlines().count(warning) == 1


def test_a_port_in_use_is_one_line_and_imports_nothing(treefold: Treefold, project: Project):
    root = project()
    write(root, "Api/v1/User/Get.py", "open('imported', 'w')\n")
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert treefold("dev", "--port", port) == (
            1,
            "",
            f"Error: Port {port} on '127.0.0.1' is in use; choose another with --port\n",
        )
    assert not (root / "imported").exists()


def test_a_boot_file_that_fails_is_the_last_line(treefold: Treefold, project: Project):
    write(project("v1/Health/Get.py"), "hooks.py", "1 / 0\n")
    code, out, err = treefold("dev", "--port", "0")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == (
        "Error: hooks.py cannot be used: ZeroDivisionError: division by zero"
    )


@pytest.mark.parametrize("version", ["newest", "V1", "1", "v1.2", "v42"])
def test_an_unknown_default_version_is_wrong_use(
    treefold: Treefold, project: Project, version: str
):
    project("v1/Health/Get.py")
    assert treefold("dev", "--port", "0", "--default-version", version) == (
        2,
        "",
        f"Error: Invalid value {version!r} for --default-version; use 'latest' or a version of"
        " Api/ (v1)\n",
    )


def test_a_port_that_is_no_number_is_wrong_use(treefold: Treefold, project: Project):
    project()
    code, _, err = treefold("dev", "--port", "80x")
    assert (code, err.startswith("Error: Invalid value '80x' for --port")) == (2, True)


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.5", False),
        ("example.test", False),
    ],
)
def test_only_loopback_addresses_stay_on_this_machine(host: str, ours: bool):
    assert is_loopback(host) is ours
