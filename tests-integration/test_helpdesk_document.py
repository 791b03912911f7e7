"""The document of the help desk is valid, the desk does what it says, and a client generated from
it talks to the desk; its code passes strict mypy.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from forked_commands import ForkServer
from openapi_spec_validator import validate
from serving import NewDatabase, migrate

from treefold import Application, Settings
from treefold.testing import TestClient


@pytest.fixture(scope="module", params=["sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    """Documents are the same on each database."""
    return request.param


@pytest.fixture(scope="module")
def client(helpdesk: Path, new_database: NewDatabase) -> Iterator[TestClient]:
    with new_database() as database:
        migrate(helpdesk, database)
        read = Settings.load(helpdesk).app
        own = {**read, "outgoing": str(helpdesk.parent / "outgoing")}
        settings = Settings.load(helpdesk, databases={"default": database}, app=own)
        app = Application(helpdesk, dev=True, settings=settings)
        with TestClient(app, base_url="https://localhost", contract="strict") as client:
            yield client


@pytest.fixture(scope="module")
def document(client: TestClient) -> Any:
    return client.get("/openapi.json").json()


def test_its_own_checks_find_nothing(
    helpdesk: Path, new_database: NewDatabase, fork_server: ForkServer
) -> None:
    with new_database() as database:
        variables = os.environ | {"TREEFOLD_DATABASE_URL": database}
        for words in (["migrate"], ["check", "--strict"]):
            done = fork_server.run(words, cwd=helpdesk, env=variables)
            assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "31 routes: 0 duplicate, 0 broken, 0 skipped\n"


def test_the_document_is_valid(document: Any) -> None:
    validate(document)


def test_each_operation_says_who_may_call_it(document: Any) -> None:
    operations = {
        f"{method} {path}": operation
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    open_to_all = [name for name, each in operations.items() if not each["security"]]
    assert open_to_all == ["post /v1/sessions"]
    assert operations["patch /v1/tickets/{ticket_id}/triage"]["security"] == [
        {"session": ["ticket:read", "ticket:triage"]},
        {"apiKey": ["ticket:read", "ticket:triage"]},
        {"bearer": ["ticket:read", "ticket:triage"]},
    ]
    one_of_three = [{name: ["admin"]} for name in ("session", "apiKey", "bearer")]
    assert operations["post /v1/organisations"]["security"] == one_of_three
    for name, each in operations.items():
        assert name in open_to_all or {"401"} <= each["responses"].keys(), name


def correct_method(request: httpx.Request) -> None:
    request.method = request.method.upper()


def test_a_generated_client_talks_to_the_desk(
    client: TestClient, document: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    words = ["generate", "--path", "openapi.json", "--output-path", "desk_client"]
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *words, "--meta", "none"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "warning" in done.stdout.lower()) == (0, False), done.stdout
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    made: Any = importlib.import_module("desk_client")
    models: Any = importlib.import_module("desk_client.models")
    api = made.Client(base_url="https://localhost").set_httpx_client(client)
    client.headers["Sec-Fetch-Site"] = "same-origin"
    # generated code writes methods in lower case, which httpx corrects and this client does not
    client.event_hooks = {"request": [correct_method]}

    def call(module: str, *arguments: Any, **named: Any) -> Any:
        operation: Any = importlib.import_module(f"desk_client.api.{module}")
        return operation.sync(*arguments, client=api, **named)

    admin = models.Credentials("admin@desk.example", "the password of an example")
    call("sessions.post_v1_sessions", body=admin)
    oak = call("organisations.post_v1_organisations", body=models.NewOrganisation("oak"))
    path = "organisations.post_v1_organisations_by_organisation_id_tickets"
    ticket = call(path, oak.id, body=models.NewTicket("It does not print", "Since Monday."))
    changes = models.TriageChanges(due_on=None, priority=models.TriageChangesPriority(4))
    patch = "tickets.patch_v1_tickets_by_ticket_id_triage"
    changed = call(patch, ticket.id, body=changes)
    assert (changed.priority, changed.due_on, changed.status) == (4, None, "open")
    wanted = [models.GetV1TicketsStatusInItem(each) for each in ("open", "waiting")]
    order = [models.GetV1TicketsOrderItem("-priority")]
    page = call("tickets.get_v1_tickets", status_in=wanted, order=order)
    assert [each.id for each in page.items] == [ticket.id]
