"""The sample application from end to end: a small shop, walked as its customers would.

On SQLite and on PostgreSQL, in process and over a socket: the same answers everywhere.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from http_messages import Answer, Call
from serving import NewDatabase, Served, migrate, start

ADA = ("Authorization", "Bearer ada")
DISPOSSESSED = "9780061054884"
FOUNDATION = "9780553293357"
HAND = "9780441478125"


@pytest.fixture(scope="module")
def shop(kind: str, sample: Path, new_database: NewDatabase) -> Iterator[Served]:
    """A shop of its own for each way of serving, on each database."""
    with new_database() as database:
        migrate(sample, database)
        served = start(kind, sample, database=database)
        yield served
        served.stop()


def post(shop: Served, target: str, document: object, *headers: tuple[str, str]) -> Answer:
    fields = [("Content-Type", "application/json"), *headers]
    return shop.request("POST", target, headers=fields, body=json.dumps(document).encode())


def test_it_boots_without_a_broken_or_skipped_file(shop: Served) -> None:
    (booted,) = shop.wait_for(lambda lines: [line for line in lines if "booted in" in line])
    assert "files with errors 0" in booted
    assert "skipped files 0" in booted
    assert "middleware 6," in booted


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_it_is_alive(shop: Served, version: str) -> None:
    assert shop.get(f"/{version}/health").json() == {"status": "ok"}


@pytest.mark.parametrize("target", ["/v1/health", "/v1/nothing", "/nothing", "/v1/user/abc"])
def test_the_middleware_is_on_every_answer(shop: Served, target: str) -> None:
    assert shop.get(target).value("x-shop") == "open"


@pytest.mark.parametrize("target", ["/v1/health", "/v1/nothing", "/v1/user/abc", "/v2/book"])
def test_every_answer_tells_browsers_to_take_it_as_data(shop: Served, target: str) -> None:
    answer = shop.get(target)
    assert answer.value("content-security-policy") == "default-src 'none'; frame-ancestors 'none'"
    assert answer.value("x-frame-options") == "DENY"


def test_pages_of_any_origin_read_the_catalogue_and_nothing_else(shop: Served) -> None:
    origin = ("Origin", "https://reader.example")
    asked = ("Access-Control-Request-Method", "GET")
    assert shop.get("/v2/book", origin).value("access-control-allow-origin") == "*"
    granted = shop.request("OPTIONS", "/v2/book", headers=[origin, asked])
    assert granted.value("access-control-allow-methods") == "GET"
    for target in ("/v1/book", "/v1/session", "/v2/health"):
        assert shop.get(target, origin).values("access-control-allow-origin") == []


def test_the_export_is_compressed_for_who_takes_it(shop: Served) -> None:
    plain = shop.get("/v1/book/export")
    packed = shop.get("/v1/book/export", ("Accept-Encoding", "gzip"))
    assert packed.value("content-encoding") == "gzip"
    assert gzip.decompress(packed.body) == plain.body
    assert plain.values("content-encoding") == []


def test_it_is_alive_and_ready_with_its_database(shop: Served) -> None:
    assert shop.get("/livez").status == 200
    assert shop.get("/readyz").status == 200


def test_versions_answer_side_by_side(shop: Served) -> None:
    first = shop.get("/v1/book?author=Le+Guin&limit=1").json()
    page = shop.get("/v2/book?author=Le+Guin&limit=1").json()
    second = shop.get(f"/v2/book?author=Le+Guin&limit=1&after={page['next']}").json()
    assert first == [
        {"isbn": "9780441478125", "title": "The Left Hand of Darkness", "price": 12.99}
    ]
    book = {
        "isbn": DISPOSSESSED,
        "title": "The Dispossessed",
        "author": {"name": "Le Guin"},
        "genres": [{"name": "science fiction"}, {"name": "utopia"}],
        "cents": 1450,
    }
    assert second == {"items": [book], "next": None, "previous": second["previous"], "total": 2}
    before = shop.get(f"/v2/book?author=Le+Guin&limit=1&before={second['previous']}").json()
    assert before == page


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
        ("GET", "/v2/book?author__name__startswith=L", 422),
        ("GET", "/v2/book?cents__gte=many", 422),
        ("GET", "/v2/book?order=stock", 422),
        ("GET", "/v2/book?page=1", 422),
        ("GET", "/v2/book?limit=0", 422),
        ("GET", "/v2/book?limit=1000", 422),
        ("GET", "/v2/book?after=WyJhIl0", 422),
        ("GET", "/v2/book?title=%00", 422),
        ("GET", "/v1/user/99999999999999999999", 422),
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


def test_logins_are_limited_and_a_client_is_told(shop: Served) -> None:
    given = {"name": "nobody", "password": "guess"}
    answer = post(shop, "/v1/session", given, SAME)
    assert answer.value("ratelimit-policy") == '"default";q=60;w=60'
    left = int(answer.value("ratelimit").split("r=")[1].split(";")[0])
    assert 50 < left < 60


def cookie_of(answer: Answer) -> tuple[str, str]:
    return "Cookie", answer.value("set-cookie").partition(";")[0]


SAME = ("Sec-Fetch-Site", "same-origin")
"""What a browser says of a page of the shop."""


def test_a_user_logs_in_and_out(shop: Served) -> None:
    given = {"name": "heidi", "password": "hunter2-of-heidi"}
    post(shop, "/v1/user", {**given, "email": "h@example.org"})
    for wrong in (
        {**given, "password": "x"},
        {**given, "name": "nobody"},
        {**given, "name": "ada"},
    ):
        assert post(shop, "/v1/session", given | wrong, SAME).status == 401
    made = post(shop, "/v1/session", given, SAME)
    assert (made.status, made.json()["name"]) == (200, "heidi")
    cookie = cookie_of(made)
    assert cookie[1].startswith("__Host-session=")
    assert shop.get("/v1/session", cookie).json() == made.json()
    assert shop.get("/v1/session").status == 401

    foreign = ("Sec-Fetch-Site", "cross-site")
    assert shop.request("DELETE", "/v1/session", headers=[cookie, foreign]).status == 403
    assert shop.get("/v1/session", cookie).status == 200
    assert shop.request("DELETE", "/v1/session", headers=[cookie, SAME]).status == 204
    assert shop.get("/v1/session", cookie).status == 401


def test_reviews_are_cached_until_another_is_written(shop: Served) -> None:
    target = f"/v1/book/{FOUNDATION}/review"
    before = shop.get(target)
    again = shop.get(target, ("If-None-Match", before.value("etag")))
    assert (again.status, again.body) == (304, b"")
    made = shop.post(target, b"text=Slow&stars=4", "application/x-www-form-urlencoded")
    assert made.status == 201
    after = shop.get(target, ("If-None-Match", before.value("etag")))
    assert after.json() == [{"stars": 4, "text": "Slow"}, *before.json()]


def test_the_shelf_is_filtered_ordered_and_paged(shop: Served) -> None:
    def titles(query: str) -> list[str]:
        return [book["title"] for book in shop.get(f"/v2/book?{query}").json()["items"]]

    assert titles("order=-cents") == [
        "The Dispossessed",
        "The Left Hand of Darkness",
        "Foundation",
    ]
    assert titles("genre=utopia") == ["The Dispossessed"]
    assert titles("title__icontains=DIS&cents__lte=2000") == ["The Dispossessed"]
    assert titles("order=-title&limit=1") == ["The Left Hand of Darkness"]
    link = shop.get("/v2/book?order=title&limit=2").value("link")
    assert titles(link.partition("?")[2].partition(">")[0]) == ["The Left Hand of Darkness"]
    assert titles("author=Nobody") == []


def test_a_filter_that_is_not_declared_is_refused(shop: Served) -> None:
    (error,) = shop.get("/v2/book?author__password=x").json()["errors"]
    assert error["loc"] == ["query", "author__password"]
    assert error["msg"] == "author__password is not known here"


def test_a_member_that_nobody_asked_for_changes_nothing(shop: Served) -> None:
    document = {"name": "mallory", "email": "m@example.org", "password": "x", "id": 1}
    made = post(shop, "/v1/user", document)
    assert made.status == 201
    assert made.json()["id"] != 1


@pytest.mark.parametrize("member", [{"name": 5}, {"email": "nowhere"}, {"name": "x" * 81}])
def test_a_user_that_does_not_fit_is_422(shop: Served, member: dict[str, object]) -> None:
    document = {"name": "dan", "email": "d@example.org", "password": "x", **member}
    answer = post(shop, "/v1/user", document)
    (name,) = member
    assert (answer.status, answer.json()["errors"][0]["loc"][-1]) == (422, name)


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


def test_an_order_above_the_stock_is_refused_as_a_whole(shop: Served) -> None:
    lines = {HAND: 1, FOUNDATION: 4}
    refused = post(shop, "/v1/order", {"lines": lines}, ADA)
    assert (refused.status, refused.json()) == (409, {"sold_out": FOUNDATION, "left": 3})
    whole = post(shop, "/v1/order", {"lines": {HAND: 4}}, ADA)
    assert (whole.status, whole.json()["left"]) == (409, 3)


def test_the_last_copies_are_sold_once(shop: Served) -> None:
    body = json.dumps({"lines": {HAND: 1}}).encode()
    fields = [("Content-Type", "application/json"), ADA]
    call = Call(method="POST", target="/v1/order", headers=fields, body=body, host="localhost")
    statuses = sorted(answer.status for answer in shop.send([call] * 12))
    assert statuses == [201] * 3 + [409] * 9


def test_my_orders_are_listed_with_their_books(shop: Served) -> None:
    post(shop, "/v1/user", {"name": "grace", "email": "g@example.org", "password": "x"})
    grace = ("Authorization", "Bearer grace")
    assert shop.get("/v1/user/me/order", grace).json() == []
    placed = post(shop, "/v1/order", {"lines": {DISPOSSESSED: 1}}, grace)
    (order,) = shop.get("/v1/user/me/order", grace).json()
    assert (order["id"], order["titles"]) == (placed.json()["id"], ["The Dispossessed"])
    assert order["placed_at"].endswith("Z")


def test_a_user_with_orders_stays(shop: Served) -> None:
    me = shop.get("/v1/user/me", ADA).json()["id"]
    assert shop.request("DELETE", f"/v1/user/{me}").status == 409
    assert shop.get(f"/v1/user/{me}").status == 200


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
    assert shop.get("/v2/book?author=Le+Guin&order=-cents").json()["total"] == 2
    assert shop.get("/v1/user/me", ADA).status == 200
