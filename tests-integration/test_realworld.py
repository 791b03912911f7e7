"""The RealWorld application, as its users meet it: the requests of the public collection in their
order with what they promise of each answer, and one format in every error.

On SQLite and on PostgreSQL, in process and over a socket.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jwt
import pytest
from serving import NewDatabase, migrate, start

from treefold import Application, Settings
from treefold.testing import TestClient

PASSWORD = "a password of nine words that is long enough"
JAKE = {"username": "jake", "email": "jake@jake.example", "password": PASSWORD}
CELEB = {"username": "celeb_jake", "email": "celeb_jake@jake.example", "password": PASSWORD}
DRAGON = {
    "title": "How to train your dragon",
    "description": "Ever wonder how?",
    "body": "Very carefully.",
    "tagList": ["training", "dragons"],
}


@dataclass
class Reply:
    """An answer: its status, header fields and JSON, None for no body."""

    status: int
    fields: Mapping[str, str]
    json: Any


Ask = Callable[..., Reply]
"""Send `(method, target, body=None, token="")`."""


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Token {token}"} if token else {}


def ask_in_process(client: TestClient) -> Ask:
    def ask(method: str, target: str, body: Any = None, token: str = "") -> Reply:
        sent = {} if body is None else {"json": body}
        answer = client.request(method, target, headers=headers(token), **sent)
        return Reply(answer.status_code, answer.headers, answer.json() if answer.content else None)

    return ask


@contextmanager
def in_process(root: Path, database: str) -> Generator[Ask]:
    own = Settings.load(root, databases={"default": database})
    with TestClient(
        Application(root, settings=own), raise_app_errors=False, contract="strict"
    ) as client:
        yield ask_in_process(client)


@contextmanager
def over_a_socket(root: Path, database: str) -> Generator[Ask]:
    served = start("httptools", root, database=database)

    def ask(method: str, target: str, body: Any = None, token: str = "") -> Reply:
        fields = [("Content-Type", "application/json"), *headers(token).items()]
        sent = b"" if body is None else json.dumps(body).encode()
        answer = served.request(method, target, headers=fields, body=sent)
        return Reply(
            answer.status, dict(answer.headers), json.loads(answer.body) if answer.body else None
        )

    yield ask
    served.stop()


USER = {"email", "username", "bio", "image", "token"}
PROFILE = {"username", "bio", "image", "following"}
COMMENT = {"id", "body", "createdAt", "updatedAt", "author"}
SUMMARY = {
    *("title", "slug", "createdAt", "updatedAt", "description", "tagList", "author"),
    *("favorited", "favoritesCount"),
}
MOMENT = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d+(Z|[+-][0-2]\d:[0-5]\d)")


def is_user(content: Any) -> None:
    assert content.keys() == {"user"}
    assert content["user"].keys() == USER


def is_profile(content: Any, **values: Any) -> None:
    assert content.keys() == {"profile"}
    assert content["profile"].keys() == PROFILE
    assert content["profile"].items() >= values.items()


def has_moments(record: Any) -> None:
    for name in ("createdAt", "updatedAt"):
        assert MOMENT.fullmatch(record[name]), record[name]


def is_article(article: Any, names: set[str], **values: Any) -> None:
    assert article.keys() == names
    has_moments(article)
    assert type(article["favoritesCount"]) is int
    assert article["author"].keys() == PROFILE
    assert article["title"] == DRAGON["title"]
    assert article["tagList"] == ["dragons", "training"]
    assert article.items() >= values.items()


def is_single(content: Any, **values: Any) -> None:
    assert content.keys() == {"article"}
    is_article(content["article"], SUMMARY | {"body"}, **values)


def is_list(content: Any, count: int, **values: Any) -> None:
    assert content.keys() == {"articles", "articlesCount"}
    assert content["articlesCount"] == len(content["articles"]) == count
    for article in content["articles"]:
        is_article(article, SUMMARY, **values)


def is_comment(comment: Any) -> None:
    assert comment.keys() == COMMENT
    has_moments(comment)
    assert comment["author"].keys() == PROFILE


def are_comments(content: Any) -> None:
    (comment,) = content["comments"]
    is_comment(comment)


Check = Callable[[Any], None]


@dataclass
class Step:
    """A request of the collection: `{slug}` and `{comment}` in a target are those made before."""

    name: str
    method: str
    target: str
    check: Check
    body: Any = None
    signed_in: bool = True
    status: int = 200


def listed(count: int, **values: Any) -> Check:
    return lambda content: is_list(content, count, **values)


def single(**values: Any) -> Check:
    return lambda content: is_single(content, **values)


def profile(**values: Any) -> Check:
    return lambda content: is_profile(content, username="celeb_jake", **values)


def nothing(content: Any) -> None:
    assert content is None


def commented(content: Any) -> None:
    assert content.keys() == {"comment"}
    is_comment(content["comment"])


def has_tags(content: Any) -> None:
    assert content == {"tags": []}  # the only article with tags is deleted


LOGIN = {"user": {name: JAKE[name] for name in ("email", "password")}}
BY_JAKE = "/articles?author=jake"
STEPS = [
    Step("register", "POST", "/users", is_user, {"user": JAKE}, False, 201),
    Step("log in", "POST", "/users/login", is_user, LOGIN, False),
    Step("remember the token", "POST", "/users/login", is_user, LOGIN, False),
    Step("current user", "GET", "/user", is_user),
    Step("update user", "PUT", "/user", is_user, {"user": {"email": JAKE["email"]}}),
    Step("no articles", "GET", "/articles", listed(0), None, False),
    Step("none by an author", "GET", "/articles?author=johnjacob", listed(0), None, False),
    Step("none favorited", "GET", "/articles?favorited=jake", listed(0), None, False),
    Step("none by tag", "GET", "/articles?tag=dragons", listed(0), None, False),
    Step(
        "create", "POST", "/articles", single(title=DRAGON["title"]), {"article": DRAGON}, True, 201
    ),
    Step("feed", "GET", "/articles/feed", listed(0)),
    Step("all", "GET", "/articles", listed(1), None, False),
    Step("all, signed in", "GET", "/articles", listed(1)),
    Step("by author", "GET", BY_JAKE, listed(1), None, False),
    Step("by author, signed in", "GET", BY_JAKE, listed(1)),
    Step("by slug", "GET", "/articles/{slug}", single(body="Very carefully.")),
    Step("by tag", "GET", "/articles?tag=dragons", listed(1)),
    Step(
        "update",
        "PUT",
        "/articles/{slug}",
        single(body="With two hands"),
        {"article": {"body": "With two hands"}},
    ),
    Step("favorite", "POST", "/articles/{slug}/favorite", single(favorited=True, favoritesCount=1)),
    Step(
        "favorited",
        "GET",
        "/articles?favorited=jake",
        listed(1, favoritesCount=1, favorited=False),
        None,
        False,
    ),
    Step(
        "favorited, signed in",
        "GET",
        "/articles?favorited=jake",
        listed(1, favoritesCount=1, favorited=True),
    ),
    Step(
        "unfavorite",
        "DELETE",
        "/articles/{slug}/favorite",
        single(favorited=False, favoritesCount=0),
    ),
    Step(
        "comment",
        "POST",
        "/articles/{slug}/comments",
        commented,
        {"comment": {"body": "Thank you so much!"}},
        status=201,
    ),
    Step("comments", "GET", "/articles/{slug}/comments", are_comments),
    Step("comments without login", "GET", "/articles/{slug}/comments", are_comments, None, False),
    Step(
        "delete the comment",
        "DELETE",
        "/articles/{slug}/comments/{comment}",
        nothing,
        status=204,
    ),
    Step("delete the article", "DELETE", "/articles/{slug}", nothing, status=204),
    Step("register a celeb", "POST", "/users", is_user, {"user": CELEB}, False, 201),
    Step("profile", "GET", "/profiles/celeb_jake", profile(following=False)),
    Step("follow", "POST", "/profiles/celeb_jake/follow", profile(following=True), LOGIN),
    Step("unfollow", "DELETE", "/profiles/celeb_jake/follow", profile(following=False)),
    Step("tags", "GET", "/tags", has_tags, None, False),
]


@pytest.fixture(
    scope="module",
    params=[(in_process, ""), (over_a_socket, "/v1")],
    ids=["in process", "over a socket"],
)
def walk(
    request: pytest.FixtureRequest, realworld: Path, new_database: NewDatabase
) -> Iterator[Mapping[str, Reply]]:
    """The answers to all requests of the collection, by the names of their steps."""
    serving, base = request.param
    replies: dict[str, Reply] = {}
    made: dict[str, Any] = {}
    with new_database() as database:
        migrate(realworld, database)
        with serving(realworld, database) as ask:
            for step in STEPS:
                token = made["token"] if step.signed_in else ""
                target = base + step.target.format_map(made)
                reply = replies[step.name] = ask(step.method, target, step.body, token)
                made |= remembered(step.name, reply.json)
            yield replies


def remembered(name: str, content: Any) -> dict[str, Any]:
    match name:
        case "remember the token":
            return {"token": content["user"]["token"]}
        case "create":
            return {"slug": content["article"]["slug"]}
        case "comment":
            return {"comment": content["comment"]["id"]}
        case _:
            return {}


@pytest.mark.parametrize("step", STEPS, ids=[step.name for step in STEPS])
def test_the_collection_is_answered_as_it_promises(walk: Mapping[str, Reply], step: Step) -> None:
    reply = walk[step.name]
    assert reply.status == step.status
    if reply.json is not None:
        assert reply.fields["content-type"] == "application/json"
    step.check(reply.json)


@dataclass
class Conduit:
    """A running application with two users, and an article of the first."""

    client: TestClient
    ask: Ask
    tokens: Sequence[str]
    slug: str


@pytest.fixture(scope="module")
def conduit(realworld: Path, new_database: NewDatabase) -> Iterator[Conduit]:
    with new_database() as database:
        migrate(realworld, database)
        own = Settings.load(realworld, databases={"default": database}, max_body=5000)
        app = Application(realworld, settings=own)
        with TestClient(app, raise_app_errors=False, contract="strict") as client:
            ask = ask_in_process(client)
            tokens = [
                ask("POST", "/users", {"user": user}).json["user"]["token"]
                for user in (JAKE, CELEB)
            ]
            article = ask("POST", "/articles", {"article": DRAGON}, tokens[0]).json["article"]
            yield Conduit(client, ask, tokens, article["slug"])


def is_error(reply: Reply, status: int, *fields: str) -> None:
    assert reply.status == status
    assert reply.fields["content-type"] == "application/json"
    assert reply.json.keys() == {"errors"}
    messages = reply.json["errors"]
    assert messages.keys() == set(fields or ("body",))
    assert all(isinstance(each, str) and each for entry in messages.values() for each in entry)


UNKNOWN = jwt.encode(
    {"sub": "999999", "exp": time.time() + 600},
    "this key is public and signs the tokens of an example",
    "HS256",
)
WITHOUT_TITLE = {"article": {"description": "d", "body": "b"}}


@pytest.mark.parametrize(
    ("method", "target", "body", "token", "status", "fields"),
    [
        pytest.param("GET", "/user", None, "", 401, (), id="without a token"),
        pytest.param("GET", "/articles", None, "x.y.z", 401, (), id="a wrong token"),
        pytest.param("GET", "/user", None, UNKNOWN, 401, (), id="of an unknown user"),
        pytest.param("DELETE", "/articles/{slug}", None, "celeb", 403, (), id="of another"),
        pytest.param("GET", "/nothing", None, "", 404, (), id="no route"),
        pytest.param("GET", "/v7/articles", None, "", 404, (), id="no version"),
        pytest.param("GET", "/articles/none", None, "", 404, (), id="no row"),
        pytest.param("PATCH", "/articles", None, "", 405, (), id="no method"),
        pytest.param("POST", "/articles", "x" * 6000, "jake", 413, (), id="too large"),
        pytest.param("POST", "/articles", None, "jake", 422, (), id="no body"),
        pytest.param("POST", "/articles", WITHOUT_TITLE, "jake", 422, ("title",), id="no title"),
        pytest.param("GET", "/articles?limit=x", None, "", 422, ("limit",), id="query"),
        pytest.param(
            "DELETE", "/articles/{slug}/comments/x", None, "jake", 422, ("id",), id="path"
        ),
        pytest.param(
            "PUT",
            "/user",
            {"user": {"email": CELEB["email"]}},
            "jake",
            422,
            ("email",),
            id="a unique value",
        ),
        pytest.param("GET", "/v2/articles?after=x", None, "", 422, ("cursor",), id="of the ORM"),
    ],
)
def test_an_error_is_in_the_format_of_the_application(
    conduit: Conduit,
    method: str,
    target: str,
    body: Any,
    token: str,
    status: int,
    fields: Sequence[str],
) -> None:
    token = {"jake": conduit.tokens[0], "celeb": conduit.tokens[1]}.get(token, token)
    reply = conduit.ask(method, target.format(slug=conduit.slug), body, token)
    is_error(reply, status, *fields)
    if status == 405:
        assert reply.fields["allow"] == "GET, POST"


@pytest.mark.parametrize(
    ("content", "kind", "status"), [(b"{", "application/json", 400), (b"x", "text/plain", 415)]
)
def test_a_body_that_is_not_read_is_an_error_of_that_format(
    conduit: Conduit, content: bytes, kind: str, status: int
) -> None:
    answer = conduit.client.post("/users", content=content, headers={"Content-Type": kind})
    is_error(Reply(answer.status_code, answer.headers, answer.json()), status)


def test_too_many_logins_are_an_error_of_that_format(conduit: Conduit) -> None:
    replies = [conduit.ask("POST", "/v2/users/login", {}) for _ in range(61)]
    is_error(replies[-1], 429)
    assert int(replies[-1].fields["retry-after"]) > 0
    is_error(replies[0], 422, "user")


def test_the_second_version_names_tags_and_pages_by_a_cursor(conduit: Conduit) -> None:
    article = conduit.ask("GET", f"/v2/articles/{conduit.slug}").json["article"]
    assert article["tags"] == ["dragons", "training"]
    assert "tagList" not in article
    page = conduit.ask("GET", "/v2/articles?limit=1").json
    assert [each["slug"] for each in page["articles"]] == [conduit.slug]
    assert page["next"] is None


@pytest.mark.parametrize(
    ("database", "status", "message"),
    [
        ("postgresql://127.0.0.1:1/conduit", 503, "The database cannot answer now"),
        ("sqlite:///{folder}/empty.sqlite3", 500, "The server failed to answer this request"),
    ],
    ids=["a database that is away", "a crash for want of tables"],
)
def test_a_failure_shows_nothing_but_the_format(
    realworld: Path, tmp_path: Path, database: str, status: int, message: str
) -> None:
    with over_a_socket(realworld, database.format(folder=tmp_path)) as ask:
        reply = ask("GET", "/articles")
    is_error(reply, status)
    assert reply.json["errors"]["body"] == [message]
