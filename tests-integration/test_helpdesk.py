"""The help desk, on SQLite and PostgreSQL: the rights of each role on each route by a table, lists
with each filter, PATCH, three logins on one route, and jobs with their settings.
"""

from __future__ import annotations

import hmac
import itertools
import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from mailbox import Maildir
from pathlib import Path
from typing import Any

import pytest
from forked_commands import ForkServer
from serving import NewDatabase

from treefold import Application, Settings
from treefold.jobs import enqueue
from treefold.testing import TestClient

PASSWORD = "nine words that are long enough"
ADMIN = {"email": "admin@desk.example", "password": "the password of an example"}
SAME_SITE = {"Sec-Fetch-Site": "same-origin"}


@dataclass
class Desk:
    """A help desk with one caller of each kind.

    Attributes:
        callers: the header fields by which each of them is known.
        ids: keys of rows that addresses name.
        run: a command in the folder of the application; returns what it wrote.
    """

    client: TestClient
    app: Application
    folder: Path
    run: Callable[..., str]
    callers: dict[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    ids: dict[str, int] = field(default_factory=dict[str, int])

    def ask(self, caller: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Return the status and the JSON of an answer; the text of one that has another type."""
        sent = {} if body is None else {"json": body}
        fields = dict(self.callers[caller])
        answer = self.client.request(method, f"/v1{path}", headers=fields, **sent)
        self.client.cookies.clear()
        kind = answer.headers.get("content-type", "")
        return answer.status_code, answer.json() if "json" in kind else answer.text

    def get(self, caller: str, path: str) -> Any:
        status, found = self.ask(caller, "GET", path)
        assert status == 200, found
        return found

    def make(self, caller: str, path: str, body: Any) -> Any:
        status, made = self.ask(caller, "POST", path, body)
        assert status in (201, 202), made
        return made

    def work(self) -> None:
        """Run the jobs that are due, where a worker runs them."""
        if not self.app.dev:
            self.run("worker", "--drain")

    def read_mail(self) -> list[tuple[str, str]]:
        """Return whom a message goes to and what it is about, of each that was sent, sorted."""
        box = Maildir(self.folder / "outgoing")
        return sorted((each["To"], each["Subject"]) for each in box)

    def log_in(self, given: Mapping[str, str]) -> dict[str, str]:
        answer = self.client.post("/v1/sessions", json=given, headers=SAME_SITE)
        assert answer.status_code == 204, answer.text
        cookie = "; ".join(f"{name}={value}" for name, value in self.client.cookies.items())
        self.client.cookies.clear()
        return {"Cookie": cookie, **SAME_SITE}

    def log_in_by_token(self, given: Mapping[str, str]) -> dict[str, str]:
        self.callers["logged in"] = self.log_in(given)
        secret = self.make("logged in", "/me/tokens", {"label": "tests"})["secret"]
        return {"Authorization": f"Bearer {secret}"}


@pytest.fixture(scope="module")
def desk(
    helpdesk: Path, new_database: NewDatabase, fork_server: ForkServer, engine: str
) -> Iterator[Desk]:
    folder = helpdesk.parent / engine
    folder.mkdir()
    # a reminder is due at once, and so is the end of what is solved
    own = {"exports": f"{folder}/exports", "outgoing": f"{folder}/outgoing"}
    own |= {"answer_hours": "0", "close_after_days": "0"}
    with new_database() as database:
        variables = {f"TREEFOLD_APP__{name.upper()}": value for name, value in own.items()}
        variables["TREEFOLD_DATABASE_URL"] = database

        def run(*words: str) -> str:
            done = fork_server.run(words, cwd=helpdesk, env=os.environ | variables)
            assert done.returncode == 0, done.stderr
            return done.stdout + done.stderr

        run("migrate")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            # without PostgreSQL, jobs run in the process of development
            settings = Settings.load(helpdesk, docs=True)
            app = Application(helpdesk, dev=engine == "sqlite", settings=settings)
        base = "https://localhost"
        with TestClient(app, base_url=base, raise_app_errors=False, contract="strict") as client:
            made = Desk(client, app, folder, run)
            fill(made)
            yield made


def fill(desk: Desk) -> None:
    """Make two organisations, and a caller of each kind."""
    desk.callers["nobody"] = {}
    desk.callers["admin"] = desk.log_in_by_token(ADMIN)
    for name in ("oak", "elm"):
        desk.ids[name] = desk.make("admin", "/organisations", {"name": name})["id"]
        person = {"name": f"Cy {name}", "email": f"cy@{name}.example", "password": PASSWORD}
        made = desk.make("admin", f"/organisations/{desk.ids[name]}/people", person)
        desk.ids[f"cy {name}"] = made["id"]
    agent = {"name": "Al", "email": "al@desk.example", "password": PASSWORD}
    desk.ids["agent"] = desk.make("admin", "/agents", agent)["id"]
    for name, email in (("agent", "al@desk"), ("stranger", "cy@elm"), ("customer", "cy@oak")):
        given = {"email": f"{email}.example", "password": PASSWORD}
        desk.callers[name] = desk.log_in_by_token(given)
    desk.callers["session"] = desk.log_in(given)
    made = desk.make("admin", f"/organisations/{desk.ids['oak']}/integrations", {"label": "shop"})
    desk.callers["program"] = {"X-Api-Key": made["secret"]}
    desk.ids["ticket"] = desk.make("customer", "/tickets", TICKET)["id"]
    desk.ids["export"] = desk.make("agent", "/exports", None)["id"]
    desk.work()


TICKET = {"subject": "It does not print", "text": "Since Monday."}
COMMENT = {"text": "Is it plugged in?"}

# -- who may do what ------------------------------------------------------------------------------

CALLERS = ("nobody", "customer", "stranger", "program", "agent", "admin")
ORGANISATION, THIS = "/organisations/{oak}", "/tickets/{ticket}"
PERSON = {"name": "New", "email": "new{n}@desk.example", "password": PASSWORD}
RIGHTS: dict[str, tuple[Any, str]] = {
    # the answer to nobody, to a customer, to one of another organisation, to a program of the
    # first, to an agent and to an administrator
    "POST /sessions": (ADMIN, "204 204 204 204 204 204"),
    "DELETE /sessions": (None, "401 204 204 401 204 204"),
    "GET /me": (None, "401 200 200 200 200 200"),
    "POST /me/tokens": ({"label": "x"}, "401 201 201 401 201 201"),
    "GET /organisations": (None, "401 403 403 403 200 200"),
    "POST /organisations": ({"name": "new {n}"}, "401 403 403 403 403 201"),
    f"GET {ORGANISATION}": (None, "401 403 403 403 200 200"),
    f"PATCH {ORGANISATION}": ({"note": "x"}, "401 403 403 403 403 200"),
    f"GET {ORGANISATION}/people": (None, "401 403 403 403 200 200"),
    f"POST {ORGANISATION}/people": (PERSON, "401 403 403 403 403 201"),
    f"POST {ORGANISATION}/integrations": ({"label": "x"}, "401 403 403 403 403 201"),
    f"POST {ORGANISATION}/tickets": (TICKET, "401 403 403 403 201 201"),
    "GET /agents": (None, "401 403 403 403 200 200"),
    "POST /agents": (PERSON, "401 403 403 403 403 201"),
    "PATCH /people/{agent}": ({"name": "Al"}, "401 403 403 403 403 200"),
    "GET /tickets": (None, "401 200 200 200 200 200"),
    "POST /tickets": (TICKET, "401 201 201 201 403 403"),
    "GET /tickets/csv": (None, "401 200 200 200 200 200"),
    f"GET {THIS}": (None, "401 200 404 200 200 200"),
    f"PATCH {THIS}": ({"text": "x"}, "401 200 404 200 403 403"),
    f"PATCH {THIS}/triage": ({"priority": 3}, "401 403 404 403 200 200"),
    f"PUT {THIS}/tags": ([{"name": "printer"}], "401 403 404 403 200 200"),
    f"GET {THIS}/comments": (None, "401 200 404 200 200 200"),
    f"POST {THIS}/comments": (COMMENT, "401 201 404 403 201 201"),
    f"POST {THIS}/answers": (COMMENT, "401 403 404 403 201 201"),
    f"GET {THIS}/notes": (None, "401 403 404 403 200 200"),
    f"POST {THIS}/notes": (COMMENT, "401 403 404 403 201 201"),
    f"GET {THIS}/audit": (None, "401 403 404 403 200 200"),
    "POST /exports": (None, "401 403 403 401 202 202"),
    "GET /exports/{export}": (None, "401 403 403 401 200 404"),
    "POST /mail": (
        {"sender": "cy@oak.example", "ticket_id": 1, "content": COMMENT},
        "401 401 401 401 401 401",
    ),
}
NUMBERS = itertools.count()


def test_each_route_is_in_the_table(desk: Desk) -> None:
    known = {
        (method, path.replace("{oak}", "{}").replace("{ticket}", "{}").replace("{agent}", "{}"))
        for method, path in (line.replace("{export}", "{}").split() for line in RIGHTS)
    }
    document = desk.client.get("/openapi.json").json()
    served = {
        (method.upper(), path.removeprefix("/v1"))
        for path, item in document["paths"].items()
        for method in item
    }
    assert {(method, "/".join(hide_names(path))) for method, path in served} == known


def hide_names(path: str) -> Iterator[str]:
    for part in path.split("/"):
        yield "{}" if part.startswith("{") else part


@pytest.mark.parametrize("line", RIGHTS)
def test_each_role_may_do_what_the_table_says(desk: Desk, line: str) -> None:
    method, path = line.split()
    body, expected = RIGHTS[line]
    found: list[str] = []
    for caller in CALLERS:
        text = json.dumps(body).replace("{n}", str(next(NUMBERS)))
        status, answer = desk.ask(caller, method, path.format(**desk.ids), json.loads(text))
        assert status < 500, answer
        found.append(str(status))
    assert " ".join(found) == expected


def test_the_mail_server_signs_what_it_delivers(desk: Desk) -> None:
    mail = {"sender": "cy@oak.example", "ticket_id": desk.ids["ticket"], "content": COMMENT}
    sent = json.dumps(mail).encode()
    secret = desk.app.settings.app["mail_secret"].encode()
    for content, status in ((sent, 201), (sent + b" ", 401)):
        signature = hmac.digest(secret, sent, "sha256").hex()
        fields = {"X-Mail-Signature": signature, "Content-Type": "application/json"}
        answer = desk.client.post("/v1/mail", content=content, headers=fields)
        assert answer.status_code == status, answer.text
    entries = desk.get("agent", f"/tickets/{desk.ids['ticket']}/audit?order=-created_at")["items"]
    assert [(each["actor"], each["action"]) for each in entries[:2]] == [
        ("mailServer:'mail'", "commented"),
        ("mailServer:'mail'", "reopened"),
    ]


def test_a_closed_account_is_nobody(desk: Desk) -> None:
    person = {"name": "Bo", "email": "bo@desk.example", "password": PASSWORD}
    made = desk.make("admin", "/agents", person)
    given = {"email": person["email"], "password": PASSWORD}
    desk.callers["bo"], desk.callers["bo's session"] = (
        desk.log_in_by_token(given),
        desk.log_in(given),
    )
    desk.get("bo", "/me")
    assert desk.ask("admin", "PATCH", f"/people/{made['id']}", {"active": False})[0] == 200
    for caller in ("bo", "bo's session"):
        assert desk.ask(caller, "GET", "/me")[0] == 401
    assert desk.ask("nobody", "POST", "/sessions", given)[0] == 401


# -- three logins on one route --------------------------------------------------------------------


def test_one_route_takes_one_of_three_logins(desk: Desk) -> None:
    good = {
        "session": desk.callers["session"],
        "apiKey": desk.callers["program"],
        "bearer": desk.callers["agent"],
    }
    bad = {"apiKey": {"X-Api-Key": "x" * 40}, "bearer": {"Authorization": "Bearer x"}}
    for count in (1, 2, 3):
        for names in itertools.combinations(good, count):
            desk.callers["several"] = {k: v for name in names for k, v in good[name].items()}
            status, answer = desk.ask("several", "GET", "/me")
            assert status == (200 if count == 1 else 400), names
            assert count > 1 or answer["source"] == names[0]
    for wrong, right in itertools.product(bad, good):
        if wrong != right:
            desk.callers["several"] = {**good[right], **bad[wrong]}
            assert desk.ask("several", "GET", "/me")[0] == 401, (wrong, right)


def test_a_session_is_guarded_against_other_sites_and_a_key_is_not(desk: Desk) -> None:
    other = {"Sec-Fetch-Site": "cross-site"}
    desk.callers["forged"] = dict(desk.callers["session"]) | other
    assert desk.ask("forged", "POST", "/tickets", TICKET)[0] == 403
    desk.callers["forged"] = dict(desk.callers["program"]) | other
    assert desk.ask("forged", "POST", "/tickets", TICKET)[0] == 201


# -- lists ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def listed(desk: Desk) -> str:
    """The address of a list of five tickets `a` to `e` of an organisation of their own."""
    own = desk.make("admin", "/organisations", {"name": "listed"})["id"]
    for number, subject in enumerate("abcde"):
        new = {"subject": f"{subject} ticket", "text": "x", "priority": 1 + number % 4}
        made = desk.make("agent", f"/organisations/{own}/tickets", new)["id"]
        at = f"/tickets/{made}"
        tags = [{"name": name} for name in ("vowel", "first") if subject in "ae" or name == subject]
        assert desk.ask("agent", "PUT", f"{at}/tags", tags)[0] == 200
        change: dict[str, Any] = {"due_on": f"2026-01-0{number + 1}"} if number < 3 else {}
        if subject in "bc":
            change |= {"assignee_id": desk.ids["agent"], "status": "waiting"}
        assert desk.ask("agent", "PATCH", f"{at}/triage", change)[0] == 200
    return f"/tickets?organisation={own}"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "edcba"),
        ("order=created_at", "abcde"),
        ("order=-subject", "edcba"),
        ("order=priority,-subject", "eabcd"),
        ("order=-updated_at", "edcba"),
        ("status=waiting&order=subject", "bc"),
        ("status__in=open,solved&order=subject", "ade"),
        ("status__in=open&status__in=waiting&order=subject", "abcde"),
        ("priority=1&order=subject", "ae"),
        ("priority__gte=3&order=subject", "cd"),
        ("tag=vowel&order=subject", "ae"),
        ("tag__in=vowel,first&order=subject", "ae"),
        ("assignee={agent}&order=subject", "bc"),
        ("assignee__isnull=true&order=subject", "ade"),
        ("due_on__lte=2026-01-02&order=subject", "ab"),
        ("due_on__isnull=true&order=subject", "de"),
        ("created__gte=2020-01-01T00:00:00Z&order=subject", "abcde"),
        ("created__lt=2020-01-01T00:00:00Z", ""),
        ("subject__icontains=B%20TICK", "b"),
    ],
)
def test_a_list_is_filtered_and_ordered(desk: Desk, listed: str, query: str, expected: str) -> None:
    address = f"{listed}&{query.format(**desk.ids)}"
    found = desk.get("agent", address)["items"]
    assert "".join(each["subject"][0] for each in found) == expected
    walked, pages = "", 0
    after = ""
    while after is not None:
        page = desk.get("agent", f"{address}&limit=2{after and '&after='}{after}")
        walked, pages = walked + "".join(each["subject"][0] for each in page["items"]), pages + 1
        after = page["next"]
    assert (walked, pages) == (expected, max(1, -(-len(expected) // 2)))
    assert desk.get("customer", address)["items"] == []


@pytest.mark.parametrize(
    "query",
    ["statuss=open", "status=lost", "priority=9", "order=text", "limit=101", "after=WzFd.abc"],
)
def test_a_list_refuses_what_it_does_not_know(desk: Desk, listed: str, query: str) -> None:
    status, answer = desk.ask("agent", "GET", f"{listed}&{query}")
    assert (status, answer["errors"][0]["loc"][:2]) == (422, ["query", query.partition("=")[0]])


def test_other_lists_have_their_filters(desk: Desk) -> None:
    this = f"/tickets/{desk.ids['ticket']}"
    names = {
        "/organisations?name=oak": ["oak"],
        "/organisations?name__istartswith=OA": ["oak"],
        "/organisations?plan=premium": [],
        "/agents?email=al@desk.example": ["Al"],
        f"/organisations/{desk.ids['oak']}/people?active=true&email=cy@oak.example": ["Cy oak"],
    }
    for address, expected in names.items():
        assert [each["name"] for each in desk.get("agent", address)["items"]] == expected, address
    assert desk.get("agent", "/organisations?name=oak&limit=1")["total"] == 1
    desk.make("customer", f"{this}/comments", {"text": "from the customer"})
    desk.make("agent", f"{this}/notes", {"text": "between agents"})
    by_customer = desk.get(
        "agent", f"{this}/comments?author={desk.ids['cy oak']}&order=-created_at"
    )
    assert by_customer["items"][0]["text"] == "from the customer"
    assert "between agents" not in json.dumps(desk.get("customer", f"{this}/comments"))
    assert "between agents" in json.dumps(desk.get("agent", f"{this}/notes"))
    actor = f"bearer:{desk.ids['cy oak']}"
    for query in (f"actor={actor}", "action=opened", "action__in=opened,noted"):
        found = desk.get("agent", f"{this}/audit?{query}&created_at__gte=2020-01-01T00:00:00Z")
        assert (found["items"][0]["actor"], found["items"][0]["action"]) == (actor, "opened")


# -- changes --------------------------------------------------------------------------------------


def test_a_patch_tells_absent_null_and_a_value_apart(desk: Desk) -> None:
    made = desk.make("customer", "/tickets", TICKET)["id"]
    agent = {"id": desk.ids["agent"], "name": "Al"}
    new: dict[str, Any] = {"status": "open", "priority": 2, "due_on": None, "assignee": None}
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"due_on": "2026-01-02"}, {"due_on": "2026-01-02"}),
        ({"assignee_id": agent["id"]}, {"assignee": agent}),
        ({}, {}),
        ({"status": "solved", "due_on": None}, {"status": "solved", "due_on": None}),
        ({"assignee_id": None, "priority": 4}, {"assignee": None, "priority": 4}),
    ]
    for sent, changed in steps:
        new |= changed
        status, answer = desk.ask("agent", "PATCH", f"/tickets/{made}/triage", sent)
        assert (status, {name: answer[name] for name in new}) == (200, new)
        assert desk.get("customer", f"/tickets/{made}") == answer
    audit = desk.get("agent", f"/tickets/{made}/audit?action=triaged")["items"]
    assert [each["changed"] for each in audit] == [list(sent) for sent, _ in steps]


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"status": None}, 422),
        ({"priority": 0}, 422),
        ({"prioriti": 1}, 422),
        ({"subject": "not by triage"}, 422),
        ({"due_on": "soon"}, 422),
        ({"assignee_id": 10**9}, 409),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(
    desk: Desk, sent: dict[str, Any], status: int
) -> None:
    this = f"/tickets/{desk.ids['ticket']}"
    before = desk.get("agent", this)
    assert desk.ask("agent", "PATCH", f"{this}/triage", {"due_on": None} | sent)[0] == status
    assert desk.get("agent", this) == before


# -- jobs -----------------------------------------------------------------------------------------


def test_an_export_is_written_where_the_settings_say(desk: Desk, listed: str) -> None:
    query = listed.partition("?")[2] + "&status__in=waiting,solved&order=-subject&limit=1"
    made = desk.make("agent", f"/exports?{query}", None)["id"]
    desk.work()
    file = desk.folder / "exports" / f"tickets-{made}.csv"
    lines = file.read_text().splitlines()
    assert lines[0] == "id,subject,status,priority,organisation,created"
    assert [line.split(",")[1:5] for line in lines[1:]] == [
        ["c ticket", "waiting", "3", "listed"],
        ["b ticket", "waiting", "2", "listed"],
    ]
    sent = desk.get("agent", f"/exports/{made}")
    assert sent.splitlines() == lines
    assert desk.get("agent", f"/tickets/csv?{query}") == sent


def test_the_desk_is_reminded_and_the_customer_gets_answers(desk: Desk) -> None:
    late, answered = (
        desk.make("customer", "/tickets", {"subject": subject, "text": "x"})["id"]
        for subject in ("late", "answered")
    )
    desk.work()
    desk.make("agent", f"/tickets/{answered}/answers", {"text": "Yes."})
    desk.work()
    sent = [message for message in desk.read_mail() if message[1].endswith(("late", "answered"))]
    assert sent == [
        ("cy@oak.example", "Re: answered"),
        ("desk@desk.example", "Not answered: answered"),
        ("desk@desk.example", "Not answered: late"),
    ]
    assert desk.get("customer", f"/tickets/{answered}")["status"] == "waiting"
    assert desk.get("customer", f"/tickets/{late}")["answered_at"] is None


def test_what_is_solved_is_closed_on_schedule(desk: Desk) -> None:
    made = desk.make("customer", "/tickets", TICKET)["id"]
    assert desk.ask("agent", "PATCH", f"/tickets/{made}/triage", {"status": "solved"})[0] == 200
    (scheduled,) = runpy.run_path(str(desk.app.root / "schedules.py"))["schedules"]
    assert scheduled.call.function == "Services.tickets:close_solved"
    enqueue(sys.modules["Services.tickets"].close_solved)
    desk.work()
    assert desk.get("customer", f"/tickets/{made}")["status"] == "closed"
