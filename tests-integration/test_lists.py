"""Lists over both packages: one class says what the query may ask, the document shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate
from serving import NewDatabase, write_tree

from treefold import Application, Settings
from treefold.testing import TestClient
from treefold_cli.commands._check import check
from treefold_http.openapi import openapi_document

MODELS = """
import enum
from treefold.orm import FilterSet, Model, fields

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

class Author(Model):
    name = fields.CharField(max_length=20)
    password = fields.CharField(max_length=20, default="hidden")

class Book(Model):
    title = fields.CharField(max_length=20)
    year = fields.IntegerField(null=True)
    color = fields.EnumField(Color, default=Color.RED)
    price = fields.DecimalField(max_digits=6, decimal_places=2, null=True)
    seen = fields.DateTimeField(null=True)
    author = fields.ForeignKey(Author, null=True, related_name="books")

    @property
    def shout(self):
        return self.title.upper()

class Shelf(FilterSet):
    model = Book
    fields = {
        "title": ["exact", "icontains"], "year": ["in", "gte"], "color": ["exact"],
        "price": ["lte"], "seen": ["gte"], "author__name": ["exact"], "author": ["isnull"],
    }
    names = {"by": "author__name"}
    ordering = ("title", "year", "author__name")
    page_size = 3
"""
HOOKS = """
from Models.shop import Author, Book, Color
from treefold.orm import acreate_all

async def fill():
    await acreate_all(Author, Book)
    ann = await Author.objects.acreate(name="Ann")
    for n in range(9):
        await Book.objects.acreate(
            title="abc"[n % 3], year=None if n % 4 == 0 else 1960 + n % 2, price=n,
            color=list(Color)[n % 2], author=ann if n % 2 else None,
        )

on_startup = [fill]
"""
SHAPES = {
    "dataclass": """
import dataclasses
@dataclasses.dataclass
class AuthorOut:
    name: str
@dataclasses.dataclass
class BookOut:
    id: int
    title: str
    year: int | None
    color: Color
    author: AuthorOut | None
""",
    "typed_dict": """
import typing
class AuthorOut(typing.TypedDict):
    name: str
class BookOut(typing.TypedDict):
    id: int
    title: str
    year: int | None
    color: Color
    author: AuthorOut | None
""",
    "pydantic": """
import pydantic
class AuthorOut(pydantic.BaseModel):
    name: str
class BookOut(pydantic.BaseModel):
    id: int
    title: str
    year: int | None
    color: Color
    author: AuthorOut | None
""",
    "msgspec": """
import msgspec
class AuthorOut(msgspec.Struct):
    name: str
class BookOut(msgspec.Struct):
    id: int
    title: str
    year: int | None
    color: Color
    author: AuthorOut | None = None
""",
}
HEAD = "from Models.shop import Color, Shelf\nfrom treefold.orm import Page\n"
ASYNC = "async def handler(shelf: Shelf) -> Page[BookOut]:\n    return await shelf.apage(BookOut)\n"
SYNC = "def handler(shelf: Shelf) -> Page[BookOut]:\n    return shelf.page(BookOut)\n"
OPEN = "async def handler(shelf: Shelf"
GUARDED = (
    HEAD
    + SHAPES["typed_dict"]
    + """
from typing import Annotated
from treefold import Cookie, Depends, Header, Request, secured
from treefold.auth import api_key, bearer
from treefold.cache import cached

def find_user(key: str):
    return "ann" if key == "k" * 16 else None

in_field, token = api_key(find_user), bearer(find_user)

@secured({"type": "apiKey", "in": "query", "name": "api_key"})
def in_query(request: Request):
    return request.query["api_key"]

@cached(60)
"""
)
CREDENTIALS: dict[str, tuple[str, str, dict[str, str], list[str]]] = {
    "none": ("", "", {}, []),
    "a name of its own": (", locale: str = ''", "&locale=de", {}, []),
    "a secret name": (", token: str = ''", "&token=t", {}, ["private"]),
    "a plain field": (", x_shop: Annotated[str, Header()]", "", {"x-shop": "a"}, ["private"]),
    "a secret field": (
        ", x_api_key: Annotated[str, Header()]",
        "",
        {"x-api-key": "k"},
        ["private"],
    ),
    "a cookie": (", theme: Annotated[str, Cookie()]", "", {"cookie": "theme=dark"}, ["private"]),
    "a key in a field": (", who=Depends(in_field)", "", {"x-api-key": "k" * 16}, ["private"]),
    "a key in the query": (", who=Depends(in_query)", "&api_key=k", {}, ["private"]),
    "a token": (", who=Depends(token)", "", {"authorization": f"Bearer {'k' * 16}"}, ["private"]),
}
"""More parameters of a cached list, the query and the fields of a request, and `Cache-Control`."""
TREE = {
    "Models/shop.py": MODELS,
    "hooks.py": HOOKS,
    **{
        f"Api/v1/{name}/{kind}/Get.py": HEAD + shape + handler
        for name, shape in SHAPES.items()
        for kind, handler in (("Async", ASYNC), ("Sync", SYNC))
    },
    "Api/v1/Shout/Get.py": HEAD
    + """
import typing
class Loud(typing.TypedDict):
    shout: str
async def handler(shelf: Shelf, locale: str = "en") -> Page[Loud]:
    return await shelf.apage(Loud)
""",
    "Api/v1/Wrong/Get.py": HEAD
    + """
import typing
class Wrong(typing.TypedDict):
    title: int
async def handler(shelf: Shelf) -> Page[Wrong]:
    return await shelf.apage(Wrong)
""",
    "Api/v1/Renamed/Get.py": HEAD
    + """
import pydantic
class Renamed(pydantic.BaseModel):
    title: str = pydantic.Field(alias="heading")
    shout: str = "unknown"
async def handler(shelf: Shelf) -> Page[Renamed]:
    return await shelf.apage(Renamed)
""",
    **{
        f"Api/v1/List{number}/Get.py": GUARDED + ASYNC.replace(OPEN, OPEN + parameters)
        for number, (parameters, *_) in enumerate(CREDENTIALS.values())
    },
    "Api/v1/Kept/Get.py": HEAD
    + SHAPES["typed_dict"]
    + "from treefold.cache import cached\n@cached(60)\n"
    + ASYNC,
}
SECRET = "s" * 40


def make_application(root: Path, address: str, **settings: Any) -> Application:
    given = {"databases": {"default": address}, "secret_key": SECRET, **settings}
    return Application(root, settings=Settings.from_mapping(given))


@pytest.fixture(scope="module")
def client(
    new_database: NewDatabase, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[TestClient]:
    root = write_tree(tmp_path_factory.mktemp("lists"), TREE)
    with new_database() as address, TestClient(make_application(root, address)) as made:
        yield made


@pytest.mark.parametrize("kind", ["async", "sync"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_paged_both_ways(client: TestClient, shape: str, kind: str) -> None:
    url = f"/v1/{shape}/{kind}?order=-author__name,title&year__in=1960,1961&limit=2"
    page = client.get(url).json()
    whole = page["items"]
    while page["next"] is not None:
        page = client.get(f"{url}&after={page['next']}").json()
        whole += page["items"]
    # of n from 0 to 8 with a year, 2 and 6 have no author; titles are "abc"[n % 3]
    assert [item["id"] for item in whole] == [7, 3, 4, 2, 8, 6]
    assert [item["author"] for item in whole] == [None] * 2 + [{"name": "Ann"}] * 4
    assert whole[-1].keys() == {"id", "title", "year", "color", "author"}
    assert {item["color"] for item in whole} == {"red", "blue"}
    back = client.get(f"{url}&before={page['previous']}").json()
    assert back["items"] == whole[2:4]
    assert back["total"] is None


def test_a_link_leads_through_the_list(client: TestClient) -> None:
    query, found = "?limit=4&order=title", list[int]()
    while query:
        answer = client.get(f"/v1/dataclass/async{query}")
        found += [item["id"] for item in answer.json()["items"]]
        links = dict(re.findall(r'<([^>]*)>; rel="(\w+)"', answer.headers["link"]))
        query = next((target for target, relation in links.items() if relation == "next"), "")
    assert found == [1, 4, 7, 2, 5, 8, 3, 6, 9]


@pytest.mark.parametrize(
    ("query", "loc"),
    [
        ("titel=a", ["query", "titel"]),
        ("by=a&by=b", ["query", "by"]),
        ("year__in=1,x", ["query", "year__in", 1]),
        (f"year__gte={2**70}", ["query", "year__gte"]),
        ("year__in=" + ",".join("1" * 101), ["query", "year__in"]),
        ("title=a%00", ["query", "title"]),
        ("price__lte=1e400", ["query", "price__lte"]),
        ("price__lte=NaN", ["query", "price__lte"]),
        ("seen__gte=2026-01-01T00:00", ["query", "seen__gte"]),
        ("color=green", ["query", "color"]),
        ("author__isnull=perhaps", ["query", "author__isnull"]),
        ("order=password", ["query", "order", 0]),
        ("author__password=hidden", ["query", "author__password"]),
        ("limit=0", ["query", "limit"]),
        ("limit=101", ["query", "limit"]),
        ("after=WzFd", ["query", "after"]),
        ("before=WzFd.AAAA", ["query", "before"]),
        ("page=2", ["query", "page"]),
    ],
)
def test_what_a_list_refuses_is_422_at_its_place(
    client: TestClient, query: str, loc: list[Any]
) -> None:
    answer = client.get(f"/v1/shout?{query}")
    assert answer.status_code == 422, answer.text
    assert [entry["loc"] for entry in answer.json()["errors"]] == [loc]
    assert "hidden" not in answer.text.replace("query", "")


def test_a_cursor_of_another_list_is_422_and_a_cached_page_has_its_link(client: TestClient) -> None:
    page = client.get("/v1/typed_dict/async?order=title").json()
    url = "/v1/typed_dict/async?order=title&after="
    assert client.get(url + page["next"]).status_code == 200
    for foreign in ("order=-title", "order=title&by=Ann", ""):
        answer = client.get(f"/v1/typed_dict/async?{foreign}&after={page['next']}")
        assert answer.status_code == 422
    for _ in range(2):
        assert 'rel="next"' in client.get("/v1/kept?order=title").headers["link"]


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_cached_list_is_for_shared_caches_if_its_address_alone_decides(
    client: TestClient, name: str
) -> None:
    _, query, headers, control = CREDENTIALS[name]
    target = f"/v1/list{list(CREDENTIALS).index(name)}?order=title{query}"
    answers = [client.get(target, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
    assert [answer.headers.get_list("cache-control") for answer in answers] == [control] * 2
    other = client.get(target.replace("=title", "=-title"), headers=headers).json()
    assert other["items"] != answers[0].json()["items"]


def test_what_does_not_fit_its_shape_is_not_sent(client: TestClient) -> None:
    with pytest.raises(TypeError, match=r"Wrong/Get.py does not fit .* 'items.0.title'"):
        client.get("/v1/wrong")
    renamed = client.get("/v1/renamed?limit=1").json()["items"]
    assert renamed == [{"heading": "a", "shout": "A"}]
    assert client.get("/v1/shout?limit=1&locale=de").json()["items"] == [{"shout": "A"}]


def test_the_document_lists_filters_order_page_and_link(client: TestClient) -> None:
    document = openapi_document(client.app)
    validate(document)
    operation = document["paths"]["/v1/dataclass/async"]["get"]
    found = {each["name"]: each for each in operation["parameters"]}
    schemas = {name: each["schema"] for name, each in found.items()}
    assert {name: each.get("format", each.get("type")) for name, each in schemas.items()} == {
        **{"title": "string", "title__icontains": "string", "year__in": "array"},
        **{"year__gte": "integer", "color": None, "price__lte": "decimal"},
        **{"seen__gte": "date-time"},
        **{"by": "string", "author__isnull": "boolean", "order": "array", "limit": "integer"},
        **{"after": "string", "before": "string"},
    }
    assert all(each["description"] and each["required"] is False for each in found.values())
    names = ["title", "-title", "year", "-year", "author__name", "-author__name"]
    assert found["order"]["schema"]["items"]["enum"] == names
    size = schemas["limit"]
    assert (size["minimum"], size["maximum"]) == (1, 100)
    answer = operation["responses"]["200"]
    assert "Link" in answer["headers"]
    schema = answer["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    page = document["components"]["schemas"][schema]["properties"]
    assert page.keys() == {"items", "next", "previous", "total"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"serve": {"workers": 2}}, "set TREEFOLD_SECRET_KEY"),
        ({"secret_key": "short"}, "must have at least 32 bytes, got 5"),
        ({}, ""),
        ({"secret_key": SECRET, "serve": {"workers": 2}}, ""),
    ],
)
def test_workers_need_the_secret_that_signs_cursors(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    shown = {"Api/v1/Book/Get.py": HEAD + SHAPES["typed_dict"] + ASYNC}
    root = write_tree(tmp_path, {"Models/shop.py": MODELS, **shown})
    app = Application(root, settings=Settings.from_mapping(settings))
    app.boot()
    assert [message in broken.error for broken in app.report.broken] == ([True] if message else [])


BY_HAND = """
from Models.shop import Shelf

async def handler(request):
    return [book.title for book in await Shelf(request.query).apply()]
"""
APART = """
from Models.shop import Shelf
from treefold import Depends

async def find_books(request):
    return Shelf(request.query)

async def handler(shelf: Shelf, other: Shelf = Depends(find_books)):
    return Shelf({"title": "a"}).order()
"""


def test_check_names_lists_by_hand_and_without_an_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    models = MODELS.replace("page_size = 3", 'page_size = 3\n    unindexed = ("by", "year__in")')
    routes = {"Api/v1/Hand/Get.py": BY_HAND, "Api/v1/Apart/Get.py": APART}
    root = write_tree(tmp_path, {"Models/shop.py": models, **routes})
    assert check(str(root), strict=True, as_json=True) == 1
    problems = json.loads(capsys.readouterr().out)["problems"]
    found = [(each["code"], each["files"], each["message"]) for each in problems]
    hand = [each for each in found if each[0] == "list-by-hand"]
    assert [files for _, files, _ in hand] == [["Api/v1/Apart/Get.py"], ["Api/v1/Hand/Get.py"]]
    assert all("take it as a parameter of the handler, `shelf: Shelf`" in text for *_, text in hand)
    named = [text.split("'")[1] for code, _, text in found if code == "list-index"]
    assert named == [
        *("title", "title__icontains", "year__gte", "color", "price__lte", "seen__gte"),
        *("title", "year", "author__name"),
    ]
