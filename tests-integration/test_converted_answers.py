"""Handlers with `Inherited`: answer, document, lock and client agree with what a request shows.

`converted_answers` has a handler of v1 for each kind of return, input, error, dependency, limit and
credential, and one of v2 that converts it. The oracle is the answer of v1, asked over HTTP, of
which the hand-written `keep` says what may pass.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from converted_answers.cases import CASES, Case, keep, write_project

from treefold import Application, TestClient
from treefold_contract import RouteFacts, write_python_client
from treefold_http.contract import build_project_lock
from treefold_http.openapi import openapi_document

GIVEN = ("given-body", "given-query")
OTHER_FIELDS = ("content-length", "date", "server", "x-request-id", "content-type")
STATUSES = {"status-code": 201}
"""The statuses that a module of v1 names, which are those of v2 as well."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("converted") / "shop"
    write_project(root)
    return root


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[TestClient]:
    # strict: each answer is one that the facts of its route declare
    with TestClient(root, contract="strict") as client:
        assert client.app.report.broken == ()
        yield client


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_answer_is_that_of_the_base_as_far_as_its_type_names_it(
    case: Case, client: TestClient
) -> None:
    for ask in case.asks:
        path = f"{case.name}{ask.path}"
        before = client.request(case.method.upper(), f"/v1/{path}", **ask.options)
        after = client.request(case.method.upper(), f"/v2/{path}", **ask.options)
        assert before.status_code != 405
        if before.status_code < 300:
            assert after.status_code == STATUSES.get(case.name, 200)
            expected = keep(read_body(before), case.content)
            if case.name == "shared":  # of one run in each request
                _, number = expected["title"].split()
                expected["title"] = f"run {int(number) + 1}"
            assert after.json() == {"before": expected}
        else:
            assert after.status_code == before.status_code
            assert strip(read_body(after)) == strip(read_body(before))
            assert pick_fields(after) == pick_fields(before)


def read_body(response: httpx.Response) -> Any:
    if not response.content:
        return None
    is_json = "json" in response.headers.get("content-type", "")
    return response.json() if is_json else response.text


def strip(body: Any) -> Any:
    """Return a body without what names its request."""
    if not isinstance(body, dict):
        return body
    named = cast("dict[str, Any]", body)
    return {name: value for name, value in named.items() if name not in ("instance", "request_id")}


def pick_fields(response: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in response.headers.items() if name not in OTHER_FIELDS}


@pytest.mark.parametrize("name", GIVEN)
def test_a_given_argument_is_not_read_from_the_request(name: str, client: TestClient) -> None:
    if name == "given-body":
        answer = client.post(f"/v2/{name}", json={"title": "own"})
    else:
        answer = client.get(f"/v2/{name}")

    assert answer.status_code == 200
    assert answer.json()["before"]["title"] == ("given" if name == "given-body" else "5")


def test_the_base_runs_with_its_own_services(client: TestClient) -> None:
    assert client.get("/v2/local").json()["before"]["title"] == "the name of v1"


@pytest.fixture(scope="module")
def facts(root: Path) -> dict[str, RouteFacts]:
    lock = build_project_lock(Application(root)).lock
    return {route.title: route for route in lock.routes}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_lock_says_of_the_new_route_what_it_says_of_the_base(
    case: Case, facts: dict[str, RouteFacts]
) -> None:
    old, new = (find_route(facts, version, case) for version in ("v1", "v2"))

    if case.name == "given-body":
        assert [body.type for body in new.bodies] != [body.type for body in old.bodies]
        assert len(new.bodies) == 1
    elif case.name == "given-query":
        assert old.inputs
        assert not new.inputs
    else:
        assert (new.inputs, new.is_opaque) == (old.inputs, old.is_opaque)
        assert [(b.media, b.type, b.is_optional) for b in new.bodies] == [
            (b.media, b.type, b.is_optional) for b in old.bodies
        ]
    assert (new.auth, new.guards, new.limits) == (old.auth, old.guards, old.limits)
    errors = [each for each in old.answers if each.status[0] in "45"]
    assert [each for each in new.answers if each.status[0] in "45"] == errors


def find_route(facts: dict[str, RouteFacts], version: str, case: Case) -> RouteFacts:
    start = f"{case.method.upper()} /{version}/{case.name}"
    return next(each for title, each in facts.items() if title == start or f"{start}/" in title)


def test_the_document_says_what_the_lock_says(root: Path) -> None:
    document = openapi_document(Application(root))
    paths = document["paths"]
    for case in CASES:
        if case.name in GIVEN:
            continue
        old, new = (find_operation(paths, version, case) for version in ("v1", "v2"))
        for member in ("parameters", "requestBody", "security"):
            assert new.get(member) == old.get(member), (case.name, member)
        errors = {status for status in old["responses"] if status[0] in "45"}
        assert errors <= new["responses"].keys(), case.name


def find_operation(paths: dict[str, Any], version: str, case: Case) -> dict[str, Any]:
    start = f"/{version}/{case.name}"
    path = next(each for each in paths if each == start or each.startswith(f"{start}/"))
    return paths[path][case.method]


def test_the_client_asks_for_what_the_base_asks_for(root: Path) -> None:
    lock = build_project_lock(Application(root)).lock
    old, new = (
        write_python_client(lock, name="shop", version=version)["shop/__init__.pyi"]
        for version in ("v1", "v2")
    )
    for case in CASES:
        if case.name not in GIVEN:
            asked = [list_parameters(text, case) for text in (old, new)]
            assert asked[0] == asked[1], case.name


def list_parameters(text: str, case: Case) -> list[str]:
    """Return the parameters of the operations below the place of a case, in a client's stub."""
    name = "".join(part.title() for part in case.name.split("-"))
    methods = re.findall(rf"class V\d{name}[A-Z]?\w*\(.*?(?=\nclass |\Z)", text, re.DOTALL)
    found = [line for each in methods for line in re.findall(r"def \w+\((.*)\) ->", each)]
    assert found, case.name
    return [re.sub(r"\bV\d\w*", "Place", line) for line in found]
