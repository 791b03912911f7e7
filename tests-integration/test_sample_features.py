"""The features of the sample that need more than one answer, through the public test client."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import NewDatabase, migrate

from treefold import Application, Settings
from treefold.testing import TestClient, WebSocketRefused

ADA = {"Authorization": "Bearer ada"}
FOUNDATION = "9780553293357"


@pytest.fixture(scope="module")
def client(sample: Path, new_database: NewDatabase) -> Iterator[TestClient]:
    with new_database() as database:
        migrate(sample, database)
        settings = Settings.load(sample, databases={"default": database})
        with TestClient(Application(sample, settings=settings), contract="strict") as shop:
            yield shop


def test_a_room_hears_what_one_of_it_says_and_another_room_does_not(client: TestClient) -> None:
    with (
        client.websocket_connect("/v1/chat/poetry") as one,
        client.websocket_connect("/v1/chat/poetry") as two,
        client.websocket_connect("/v1/chat/prose") as other,
    ):
        one.send_text("words")
        assert (one.receive_text(), two.receive_text()) == ("words", "words")
        other.send_text("alone")
        assert other.receive_text() == "alone"


def test_a_page_of_another_site_may_not_chat(client: TestClient) -> None:
    with (
        pytest.raises(WebSocketRefused) as refused,
        client.websocket_connect("/v1/chat/poetry", headers={"Origin": "https://evil.example"}),
    ):
        pass
    assert refused.value.status == 403


def test_the_catalogue_is_exported_as_a_stream(client: TestClient) -> None:
    answer = client.get("/v1/book/export")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.text.splitlines()[0] == "isbn,title,author"
    assert len(answer.text.splitlines()) == 4


def test_a_review_is_a_form_whose_numbers_are_numbers(client: TestClient) -> None:
    target = f"/v1/book/{FOUNDATION}/review"
    assert client.post(target, data={"text": "good"}).json() == {"stars": 5, "reviews": 1}
    refused = client.post(target, data={"text": "good", "stars": "many"})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["loc"] == ["form", "stars"]
    assert client.post(target, data={"text": "good", "stars": 6}).status_code == 422
    rated = client.get(f"/v2/book/{FOUNDATION}").json()["reviews"]
    assert rated == {"count": 1, "stars": 5.0}


def test_a_cover_is_uploaded_as_a_file(client: TestClient) -> None:
    image = b"\x89PNG" + bytes(2000)
    target = f"/v1/cover/{FOUNDATION}"
    made = client.post(target, files={"image": ("cover.png", image, "image/png")})
    assert made.json() == {"type": "image/png", "size": len(image)}
    assert client.get(target).content == image


def test_the_shop_window_is_static(client: TestClient) -> None:
    page = client.get("/web/index.html")
    assert (page.status_code, page.headers["cache-control"]) == (200, "max-age=60")
    assert client.get("/web/../hooks.py").status_code == 404
    again = client.get("/web/index.html", headers={"If-None-Match": page.headers["etag"]})
    assert again.status_code == 304


def test_an_order_is_news_and_its_answer_is_kept_by_no_cache(client: TestClient) -> None:
    with client.stream("GET", "/v1/order/news") as news:
        lines = news.iter_lines()
        assert next(line for line in lines if line.startswith("event:")) == "event: hello"
        placed = client.post("/v1/order", json={"lines": {FOUNDATION: 1}}, headers=ADA)
        assert (placed.status_code, placed.headers["cache-control"]) == (201, "no-store")
        assert next(line for line in lines if line.startswith("event:")) == "event: order"
        assert '"total":9.99' in next(lines)


def test_the_shop_says_in_its_own_words_that_a_book_is_sold_out(client: TestClient) -> None:
    answer = client.post("/v1/order", json={"lines": {FOUNDATION: 50}}, headers=ADA)
    assert answer.status_code == 409
    assert answer.json()["sold_out"] == FOUNDATION


def test_a_user_is_sent_without_what_the_model_of_the_answer_does_not_name(
    client: TestClient,
) -> None:
    new = {"name": "grace", "email": "grace@example.org", "password": "correct horse"}
    place = client.post("/v1/user", json=new).headers["location"]
    answer = client.get(place)

    assert sorted(answer.json()) == ["id", "name"]
    assert answer.json()["name"] == "grace"
