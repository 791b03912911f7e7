"""Accounts, profiles and comments."""

from typing import Any

from treefold import TestClient

Fields = dict[str, str]


def test_a_user_signs_in_by_address_and_password(client: TestClient, ann: Fields) -> None:
    given = {"email": "ann@example.org", "password": "correct horse"}
    assert client.post("/users/login", json={"user": given}).json()["user"]["username"] == "ann"

    refused = client.post("/users/login", json={"user": given | {"password": "wrong"}})
    assert refused.status_code == 401


def test_a_name_is_taken_once(client: TestClient, ann: Fields) -> None:
    new = {"username": "ann", "email": "another@example.org", "password": "correct horse"}

    refused = client.post("/users", json={"user": new})

    assert refused.status_code == 422
    assert refused.json() == {"errors": {"username": ["is taken"]}}


def test_a_new_password_counts(client: TestClient, ann: Fields) -> None:
    client.put("/user", json={"user": {"password": "battery staple"}}, headers=ann)

    given = {"email": "ann@example.org", "password": "battery staple"}
    assert client.post("/users/login", json={"user": given}).status_code == 200


def test_an_image_is_taken_back_by_null(client: TestClient, ann: Fields) -> None:
    for image in ("https://example.org/ann.png", None):
        changed = client.put("/user", json={"user": {"image": image}}, headers=ann).json()
        assert changed["user"]["image"] == image


def test_comments_belong_to_their_authors(client: TestClient, ann: Fields, sign_up: Any) -> None:
    new = {"title": "Trees", "description": "d", "body": "b"}
    slug = client.post("/articles", json={"article": new}, headers=ann).json()["article"]["slug"]
    where = f"/articles/{slug}/comments"
    made = client.post(where, json={"comment": {"body": "Oaks!"}}, headers=ann).json()["comment"]

    assert client.delete(f"{where}/{made['id']}", headers=sign_up("bob")).status_code == 403
    assert client.get(where).json()["comments"] == [made]
    assert client.delete(f"{where}/{made['id']}", headers=ann).status_code == 204
    assert client.delete(f"{where}/{made['id']}", headers=ann).status_code == 404
