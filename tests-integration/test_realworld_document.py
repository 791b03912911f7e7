"""The documents of the RealWorld application: its errors, and that it does what they say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from document_checks import discrepancies
from serving import NewDatabase, migrate

from treefold import Application, Settings
from treefold.testing import TestClient

RULES = {
    *(f"POST /v{version}/users" for version in (1, 2)),
    *(f"PUT /v{version}/user" for version in (1, 2)),
    *("GET /v2/articles", "GET /v2/articles/feed"),
}
"""Operations with a rule that no schema says: names and addresses are those of one user, and a
cursor is one of an answer before."""


@pytest.fixture(scope="module", params=["sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    """Documents are the same on each database."""
    return request.param


@pytest.fixture(scope="module")
def app(realworld: Path, new_database: NewDatabase) -> Iterator[Application]:
    with new_database() as database:
        migrate(realworld, database)
        own = Settings.load(realworld, databases={"default": database}, docs=True)
        app = Application(realworld, settings=own)
        yield app
        app.threads.shutdown()


@pytest.mark.parametrize("document", ["openapi", "openapi/v1", "openapi/v2", "openapi/default"])
def test_documents_promise_no_error_but_the_own_format(app: Application, document: str) -> None:
    with TestClient(app, contract="strict") as client:
        answer = client.get(f"/{document}.json")
    assert "problem" not in answer.text
    content = answer.json()
    errors: list[Any] = [
        response["content"]
        for item in content["paths"].values()
        for operation in item.values()
        for status, response in operation["responses"].items()
        if int(status) >= 400
    ]
    assert len(errors) > 60
    own = {"application/json": {"schema": {"$ref": "#/components/schemas/Errors"}}}
    assert [each for each in errors if each != own] == []
    assert content["components"]["schemas"]["Errors"]["required"] == ["errors"]


def test_components_of_versions_are_told_apart(app: Application) -> None:
    with TestClient(app, contract="strict") as client:
        schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert "tagList" in schemas["FullArticle"]["properties"]
    assert "tags" in schemas["FullArticle_v2"]["properties"]
    assert {"Profile", "UserAnswer"} <= schemas.keys()
    assert not {"Profile_v2", "UserAnswer_v2"} & schemas.keys()


@pytest.mark.parametrize(("version", "examples"), [(1, 2), (2, 1)])
def test_it_does_what_its_document_says(app: Application, version: int, examples: int) -> None:
    fields = sign_in(app, f"ann{version}")
    document = f"/openapi/v{version}.json"
    found = discrepancies(app, document=document, rules=RULES, examples=examples, **fields)
    assert found == {}


def sign_in(app: Application, name: str) -> dict[str, str]:
    """Register a user who writes an article; return the header fields of further requests."""
    user = {"username": name, "email": f"{name}@example.org", "password": "correct horse"}
    article = {"title": "Oaks", "description": "d", "body": "b", "tagList": ["trees"]}
    with TestClient(app, contract="strict") as client:
        token = client.post("/users", json={"user": user}).json()["user"]["token"]
        fields = {"Authorization": f"Token {token}"}
        made = client.post("/articles", json={"article": article}, headers=fields)
        assert made.status_code == 201
    return fields
