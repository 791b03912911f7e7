"""Signed in users. All writes of a test are undone."""

from collections.abc import Callable

import pytest

from treefold import TestClient

SignUp = Callable[[str], dict[str, str]]


@pytest.fixture
def sign_up(db: None, client: TestClient) -> SignUp:
    """Register a user; the value are the header fields of its requests."""

    def register(name: str) -> dict[str, str]:
        new = {"username": name, "email": f"{name}@example.org", "password": "correct horse"}
        answer = client.post("/users", json={"user": new})
        assert answer.status_code == 201
        return {"Authorization": f"Token {answer.json()['user']['token']}"}

    return register


@pytest.fixture
def ann(sign_up: SignUp) -> dict[str, str]:
    return sign_up("ann")
