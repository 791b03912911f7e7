"""Articles of both versions."""

from typing import Any

import pytest

from treefold import TestClient
from treefold.orm import record_queries

Fields = dict[str, str]


def write(client: TestClient, fields: Fields, title: str, *tags: str) -> dict[str, Any]:
    new = {"title": title, "description": "d", "body": "b", "tagList": tags}
    answer = client.post("/articles", json={"article": new}, headers=fields)
    assert answer.status_code == 201
    return answer.json()["article"]


def test_an_article_is_found_by_tag_and_author(client: TestClient, ann: Fields) -> None:
    write(client, ann, "Trees", "oak", "elm")
    write(client, ann, "Stones")

    found = client.get("/articles", params={"tag": "elm", "author": "ann"}).json()

    assert [(each["title"], each["tagList"]) for each in found["articles"]] == [
        ("Trees", ["elm", "oak"])
    ]
    assert found["articlesCount"] == 1


def test_a_new_title_gives_a_new_slug(client: TestClient, ann: Fields) -> None:
    slug = write(client, ann, "Trees")["slug"]

    changed = client.put(
        f"/articles/{slug}", json={"article": {"title": "Old trees"}}, headers=ann
    ).json()

    assert changed["article"]["slug"].startswith("old-trees-")
    assert client.get(f"/articles/{slug}").status_code == 404


def test_others_cannot_change_an_article(client: TestClient, ann: Fields, sign_up: Any) -> None:
    slug = write(client, ann, "Trees")["slug"]

    refused = client.delete(f"/articles/{slug}", headers=sign_up("bob"))

    assert refused.status_code == 403
    assert refused.json() == {"errors": {"body": ["Only its author may change an article"]}}


def test_the_feed_has_articles_of_followed_users(
    client: TestClient, ann: Fields, sign_up: Any
) -> None:
    write(client, ann, "Trees")
    bob = sign_up("bob")
    assert client.get("/articles/feed", headers=bob).json()["articles"] == []

    client.post("/profiles/ann/follow", headers=bob)

    (article,) = client.get("/articles/feed", headers=bob).json()["articles"]
    assert article["author"]["following"] is True


def test_the_second_version_pages_by_a_cursor(client: TestClient, ann: Fields) -> None:
    for title in ("one", "two", "three"):
        write(client, ann, title, "count")
    titles: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = client.get("/v2/articles", params={"limit": "2", "tag": "count", **after}).json()
        titles += [each["title"] for each in page["articles"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert titles == ["three", "two", "one"]


@pytest.mark.parametrize("many", [1, 5])
def test_a_list_costs_as_many_queries_as_one_article(
    client: TestClient, ann: Fields, many: int
) -> None:
    for number in range(many):
        write(client, ann, f"Trees {number}", "oak")

    with record_queries() as queries:
        found = client.get("/articles").json()

    assert len(found["articles"]) == many
    assert len(queries) == 4  # articles, their tags and authors, and the count
