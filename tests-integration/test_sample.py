"""The sample application from end to end: a small shop, walked as its customers would."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_messages import Answer
from serving import Served, start

ADA = ("Authorization", "Bearer ada")
DISPOSSESSED = "9780061054884"
FOUNDATION = "9780553293357"


@pytest.fixture(scope="module")
def shop(kind: str, repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A shop of its own for each way of serving: a copy, so that nothing is left in the sample."""
    root = tmp_path_factory.mktemp("shop") / "sample"
    shutil.copytree(repository / "tests-integration" / "sample", root)
    served = start(kind, root)
    yield served
    served.stop()


def post(shop: Served, target: str, document: object, *headers: tuple[str, str]) -> Answer:
    fields = [("Content-Type", "application/json"), *headers]
    return shop.request("POST", target, headers=fields, body=json.dumps(document).encode())


def test_it_boots_without_a_broken_or_skipped_file(shop: Served) -> None:
    (booted,) = shop.wait_for(lambda lines: [line for line in lines if "booted in" in line])
    assert "files with errors 0" in booted
    assert "skipped files 0" in booted
    assert "middleware 2," in booted


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_it_is_alive(shop: Served, version: str) -> None:
    assert shop.get(f"/{version}/health").json() == {"status": "ok"}


@pytest.mark.parametrize("target", ["/v1/health", "/v1/nothing", "/nothing", "/v1/user/abc"])
def test_the_middleware_is_on_every_answer(shop: Served, target: str) -> None:
    assert shop.get(target).value("x-shop") == "open"


def test_versions_answer_side_by_side(shop: Served) -> None:
    first = shop.get("/v1/book?author=Le+Guin&limit=1").json()
    second = shop.get("/v2/book?author=Le+Guin&size=1&page=2").json()
    assert first == [
        {"isbn": "9780441478125", "title": "The Left Hand of Darkness", "price": 12.99}
    ]
    book = {
        "isbn": DISPOSSESSED,
        "title": "The Dispossessed",
        "price": {"amount": 1450, "currency": "EUR"},
    }
    assert second == {"books": [book], "total": 2}


def test_a_book_has_an_address_in_each_version(shop: Served) -> None:
    assert shop.get(f"/v1/book/{FOUNDATION}").json()["price"] == 9.99
    assert shop.get(f"/v2/book/{FOUNDATION}").json()["price"]["amount"] == 999


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/v1/book/0", 404),
        ("GET", "/v2/user", 404),
        ("GET", "/book", 404),
        ("GET", "/v3/book", 404),
        ("DELETE", "/v1/book", 405),
        ("GET", "/v1/book?limit=many", 422),
        ("GET", "/v1/user/abc", 422),
        ("DELETE", "/v1/user/abc", 422),
        ("GET", "/v1/user/99", 404),
        ("DELETE", "/v1/user/99", 404),
        ("GET", "/v1/order", 405),
        ("GET", "/v1/order/1", 401),
        ("POST", "/v1/order", 401),
        ("GET", "/v1/user/me", 401),
        ("GET", "/v1/cover/0", 404),
        ("PUT", "/v1/cover/0", 404),
        ("POST", "/v1/user", 422),
    ],
)
def test_what_is_not_served_says_why(shop: Served, method: str, target: str, status: int) -> None:
    answer = shop.request(method, target)
    assert (answer.status, answer.json()["status"]) == (status, status)


def test_a_missing_login_says_how_to_log_in(shop: Served) -> None:
    assert shop.get("/v1/user/me").value("www-authenticate") == "Bearer"


def test_me_is_the_user_of_the_token_and_not_an_id(shop: Served) -> None:
    me = shop.get("/v1/user/me", ADA).json()
    assert (me["name"], me["email"]) == ("ada", "ada@example.org")


def test_a_user_is_made_found_refused_twice_and_removed(shop: Served) -> None:
    document = {"name": "bob", "email": "bob@example.org", "password": "hunter2-of-bob"}
    made = post(shop, "/v1/user", document)
    assert made.status == 201
    target = made.value("location")
    assert shop.get(target).json() == made.json()
    assert post(shop, "/v1/user", document).status == 409
    assert made.json() in shop.get("/v1/user").json()
    assert shop.request("DELETE", target).status == 204
    assert shop.get(target).status == 404


def test_no_password_reaches_the_log(shop: Served) -> None:
    secret = "hunter2-of-eve"
    made = post(shop, "/v1/user", {"name": "eve", "email": "e@example.org", "password": secret})
    line = shop.line(made)
    assert secret not in line
    assert '"password":"***"' in line


def test_an_order_is_placed_and_shown_to_its_owner_only(shop: Served) -> None:
    post(shop, "/v1/user", {"name": "carol", "email": "c@example.org", "password": "x"})
    placed = post(shop, "/v1/order", {"lines": {DISPOSSESSED: 2}}, ADA)
    assert (placed.status, placed.json()["total"]) == (201, 29.0)
    target = f"/v1/order/{placed.json()['id']}"
    assert shop.get(target, ADA).json()["lines"] == {DISPOSSESSED: 2}
    assert shop.get(target, ("Authorization", "Bearer carol")).status == 404


def test_an_order_above_the_stock_is_refused(shop: Served) -> None:
    assert post(shop, "/v1/order", {"lines": {FOUNDATION: 4}}, ADA).status == 409


@pytest.mark.parametrize("document", [{}, [], None, {"lines": []}, {"lines": {}}])
def test_an_order_of_nothing_is_422(shop: Served, document: object) -> None:
    assert post(shop, "/v1/order", document, ADA).status == 422


def test_a_body_that_is_no_json_is_400(shop: Served) -> None:
    assert shop.request("POST", "/v1/order", headers=[ADA], body=b"{").status == 400


def test_a_cover_comes_back_byte_for_byte(shop: Served) -> None:
    cover = bytes(range(256)) * 8192  # 2 MiB, above the default limit and below that of the module
    assert shop.request("PUT", f"/v1/cover/{FOUNDATION}", body=cover).status == 204
    answer = shop.get(f"/v1/cover/{FOUNDATION}")
    assert answer.body == cover
    assert answer.value("content-type") == "application/octet-stream"


def test_its_readme_shows_requests_that_work(shop: Served) -> None:
    assert len(shop.get("/v1/book").json()) == 3
    assert shop.get("/v2/book?author=Le+Guin").json()["total"] == 2
    assert shop.get("/v1/user/me", ADA).status == 200
