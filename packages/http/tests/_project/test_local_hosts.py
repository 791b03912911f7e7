"""Host names that a development server answers to (S-117)."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

HANDLER = "async def handler(request):\n    return {}\n"
OWN = (
    "from treefold_http._project.development import LocalHosts\n"
    "middlewares = [LocalHosts({name!r})]\n"
)
TRUSTED = "from treefold_http.middleware import TrustedHosts\n"


def asked(app: Application, ask: Ask, host: str, target: str = "/v1/x") -> int:
    return ask(app, "GET", target, headers=[("host", host)], host=False).status


def machine_named(project: Project, name: str) -> Application:
    """Return an application as development makes it on a machine of that name."""
    files = {"Api/v1/X/Get.py": HANDLER, "Middleware/__init__.py": OWN.format(name=name)}
    return project(files, dev=True)


@pytest.mark.parametrize("target", ["/v1/x", "/v1/nothing", "/openapi.json"])
@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.nip.io"),
        *("evil", "evil.local", "laptop.lan", "localhost.local"),
    ],
)
def test_s117_a_foreign_name_is_refused_in_development(
    project: Project, ask: Ask, host: str, target: str
) -> None:
    assert asked(machine_named(project, "workshop"), ask, host, target) == 400


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LOCALHOST:8000", "shop.localhost", "localhost."),
        *("127.0.0.1:8000", "192.168.1.20", "[::1]:8000", "[::1]"),
    ],
)
def test_s117_local_names_and_addresses_are_answered(project: Project, ask: Ask, host: str) -> None:
    assert asked(project({"Api/v1/X/Get.py": HANDLER}, dev=True), ask, host) == 200


@pytest.mark.parametrize(
    ("name", "host"),
    [
        *(("workshop", "workshop"), ("workshop", "WORKSHOP:8000"), ("workshop", "workshop.local")),
        *(("laptop.lan", "laptop.lan"), ("laptop.lan", "laptop.local")),
        *(("4711", "4711"), ("4711", "4711:8000"), ("4711", "4711.local")),
    ],
)
def test_s117_the_name_of_this_machine_is_answered(
    project: Project, ask: Ask, name: str, host: str
) -> None:
    assert asked(machine_named(project, name), ask, host) == 200


def test_s117_the_operating_system_names_this_machine(project: Project, ask: Ask) -> None:
    app = project({"Api/v1/X/Get.py": HANDLER}, dev=True)
    assert asked(app, ask, socket.gethostname()) == 200


def test_a_client_of_another_framework_is_told_which_host_to_send(
    project: Project, ask: Ask
) -> None:
    app = project({"Api/v1/X/Get.py": HANDLER}, dev=True)
    answer = ask(app, "GET", "/v1/x", headers=[("host", "testserver")], host=False)

    assert (answer.status, answer.json()["detail"]) == (
        400,
        "In development the names of this machine and addresses are answered, not 'testserver'; use"
        " 'localhost', or list it in TrustedHosts in Middleware/__init__.py",
    )


def test_production_answers_to_every_name(project: Project, ask: Ask) -> None:
    assert asked(project({"Api/v1/X/Get.py": HANDLER}), ask, "shop.example") == 200


@pytest.mark.parametrize(("host", "status"), [("shop.example", 200), ("evil.example", 400)])
def test_a_project_that_names_its_hosts_decides(
    project: Project, ask: Ask, host: str, status: int
) -> None:
    files = {
        "Api/v1/X/Get.py": HANDLER,
        "Middleware/__init__.py": f'{TRUSTED}middlewares = [TrustedHosts(["shop.example"])]\n',
    }

    assert asked(project(files, dev=True), ask, host) == status
