"""`treefold client`, and `treefold dev --client`: clients of the project."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Treefold = Callable[..., tuple[int, str, str]]
HANDLER = """
async def handler(page: int = 1) -> dict[str, int]:
    "List the users."
    return {}
"""


@pytest.fixture
def shop(project: Callable[..., Path]) -> Path:
    root = project("v1/User/Get.py")
    (root / "Api/v1/User/Get.py").write_text(HANDLER)
    return root


def test_a_client_of_the_project_has_its_words(shop: Path, treefold: Treefold) -> None:
    code, out, _ = treefold("client", "ts", "--out", "web/api", "--name", "shop")

    assert code == 0
    assert "wrote web/api/shop.d.ts\n" in out
    text = (shop / "web/api/shop.d.ts").read_text()
    assert "List the users." in text
    assert "page?: number" in text
    assert treefold("client", "ts", "--out", "web/api", "--name", "shop")[1] == "nothing to write\n"


def test_a_client_of_a_lock_needs_no_project_that_loads(shop: Path, treefold: Treefold) -> None:
    treefold("contract", "lock")
    (shop / "Api/v1/User/Get.py").write_text("broken(")

    code, out, _ = treefold("client", "python", "--out", "clients", "--from", "routes.lock")

    assert code == 0
    assert "wrote clients/client/__init__.pyi\n" in out
    assert "List the users." not in (shop / "clients/client/__init__.pyi").read_text()


def test_check_names_what_would_be_written(shop: Path, treefold: Treefold) -> None:
    code, out, err = treefold("client", "ts", "--out", "api", "--check")

    assert (code, out) == (1, "")
    assert "api/client.d.ts is not what would be written; run this without --check" in err
    assert not (shop / "api").exists()
    treefold("client", "ts", "--out", "api")
    assert treefold("client", "ts", "--out", "api", "--check")[:2] == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("java", "--out", "x"), "Unknown language 'java'; use ts or python"),
        (("ts",), "Name the folder of the client: --out DIR"),
        (("ts", "--out", "x", "--from", "no.lock"), "No file 'no.lock'"),
    ],
)
def test_wrong_use_is_named(
    shop: Path, treefold: Treefold, arguments: tuple[str, ...], words: str
) -> None:
    code, _, err = treefold("client", *arguments)

    assert (code, words in err) == (2, True)


def test_a_version_that_is_not_there_and_a_foreign_file_are_left(
    shop: Path, treefold: Treefold
) -> None:
    assert treefold("client", "ts", "--out", "x", "--version", "v9")[0] == 1
    (shop / "x").mkdir()
    (shop / "x/client.js").write_text("mine")

    code, _, err = treefold("client", "ts", "--out", "x")

    assert (code, "was not written by treefold-contract" in err) == (1, True)
    assert (shop / "x/client.js").read_text() == "mine"
    assert not (shop / "x/client.d.ts").exists()


def test_dev_writes_lock_and_clients_at_its_start(shop: Path, start: Callable[..., Any]) -> None:
    (shop / "treefold.toml").write_text("[contract]\nauto = true\n")
    server = start("dev", "--client", "ts:web/api", "--client", "python:clients:shop", cwd=shop)
    server.started()
    files = ["routes.lock", "web/api/client.js", "clients/shop/__init__.pyi"]
    deadline = time.monotonic() + 30

    while not all((shop / name).exists() for name in files) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert [name for name in files if not (shop / name).exists()] == []
    assert server.stop() == 0
    assert "wrote routes.lock" in server.output


def test_dev_refuses_a_client_that_it_cannot_read(shop: Path, treefold: Treefold) -> None:
    code, _, err = treefold("dev", "--port", "0", "--client", "web/api")

    assert code == 2
    assert "Invalid value 'web/api' for --client; write a language, a folder and perhaps" in err
