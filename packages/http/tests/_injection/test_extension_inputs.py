"""Types of parameters and results that an extension knows, and the names of the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from treefold_http import Application
from treefold_http.openapi import openapi_document

if TYPE_CHECKING:
    from conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

EXTENSION = """
import dataclasses, datetime, decimal, typing, uuid
from collections.abc import Sequence

class Shelf:
    made = 0

    def __init__(self, values):
        self.values = values
        Shelf.made += 1

@dataclasses.dataclass
class Words:
    documentation: str

Kinds = typing.Literal["new", "used"]

def make(*, title: typing.Annotated[str | None, Words("the title")] = None,
         year__in: list[int] | None = None, kind: Kinds | None = None, flag: bool | None = None,
         since: datetime.date | None = None, request: str | None = None,
         background: int | None = None, id: int | None = None, clock: str | None = None,
         limit: int = 50):
    return Shelf({k: v for k, v in locals().items() if v is not None})

def broken(*, shelf: Shelf | None = None): ...

T = typing.TypeVar("T")

class Box(typing.Generic[T]):
    def __init__(self, items):
        self.items = items

class Wrong: ...

@dataclasses.dataclass
class Boxed(typing.Generic[T]):
    items: list[T]

class Form:
    headers = {"X-Sent": "the names that were sent"}

    def __init__(self, item):
        self.type = Boxed[item]

    def build_fields(self, result, query):
        return {"X-Sent": ",".join(f"{k}={v}" for k, v in query)} if query else {}

class Extension:
    def parameters(self, kind):
        return {Shelf: make, Wrong: broken}.get(kind)

    def result(self, annotation):
        if typing.get_origin(annotation) is Box:
            return Form(*typing.get_args(annotation))

extensions = [Extension()]
"""
LIST = "from extensions import Shelf\nasync def handler(shelf: Shelf):\n    return shelf.values\n"


def listed(project: Project, handler: str = LIST, **files: str) -> Application:
    return project({"extensions.py": EXTENSION, "Api/v1/Book/Get.py": handler, **files})


@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", {}),
        ("title=Ants", {"title": "Ants"}),
        ("title=", {"title": ""}),
        ("year__in=1,2", {"year__in": [1, 2]}),
        ("year__in=1&year__in=2", {"year__in": [1, 2]}),
        ("year__in=1%2C2&year__in=3", {"year__in": [1, 2, 3]}),
        ("kind=new&since=2026-01-02", {"kind": "new", "since": "2026-01-02"}),
        # names that mean something else where a function takes them
        ("request=a&background=1", {"request": "a", "background": 1}),
        ("id=2&clock=x&flag=true", {"id": 2, "clock": "x", "flag": True}),
        ("limit=2", {"limit": 2}),
    ],
)
def test_a_function_of_an_extension_is_given_the_query(
    project: Project, ask: Ask, query: str, values: dict[str, Any]
) -> None:
    providers = "providers = {'clock': lambda: 'provided'}\n"
    files = {"extensions.py": EXTENSION, "providers.py": providers}
    app = project({**files, "Api/v1/Book/[id]/Get.py": LIST})
    answer = ask(app, "GET", f"/v1/book/7?{query}")
    assert (answer.status, answer.json()) == (200, {"limit": 50} | values)


@pytest.mark.parametrize(
    ("query", "place", "message"),
    [
        ("year__in=1,x", ["query", "year__in", 1], "year__in should be an integer"),
        ("year__in=", ["query", "year__in", 0], "should be an integer"),
        ("kind=old", ["query", "kind"], "should be one of new, used"),
        ("flag=perhaps", ["query", "flag"], "should be true or false"),
        ("limit=1&limit=2", ["query", "limit"], "is given more than once"),
        ("titel=x", ["query", "titel"], "titel is not known here; did you mean 'title'?"),
        ("zzz=x", ["query", "zzz"], "zzz is not known here"),
        (f"{'title' * 40}=x", ["query", "title" * 40], "is not known here"),
        ("Title=x", ["query", "Title"], "did you mean 'title'?"),
    ],
)
def test_what_the_query_may_not_say_is_422(
    project: Project, ask: Ask, query: str, place: list[Any], message: str
) -> None:
    answer = ask(listed(project), "GET", f"/v1/book?{query}")
    assert answer.status == 422
    (entry,) = answer.json()["errors"]
    assert entry["loc"] == place
    assert message in entry["msg"]


def test_thousands_of_unknown_names_are_answered_with_a_few(project: Project, ask: Ask) -> None:
    query = urlencode([(f"title{n}", "x") for n in range(500)])
    answer = ask(listed(project), "GET", f"/v1/book?{query}")
    assert (answer.status, len(answer.json()["errors"])) == (422, 10)


GUARDED = """
from extensions import Shelf
from treefold_http import Depends, secured

@secured({"type": "apiKey", "in": "query", "name": "api_key"}, name="key")
async def check_key(request): return request.query.get("api_key")

async def read_locale(locale: str = "en"): return locale

async def handler(shelf: Shelf, page_color: str = "", locale: str = Depends(read_locale),
                  key: str = Depends(check_key)):
    return [shelf.values, page_color, locale, key]
"""
KEY_ENTRY = """
from treefold_http import secured

@secured({"type": "apiKey", "in": "query", "name": "site_key"}, name="site")
async def check_site(request, call_next): return await call_next(request)

middlewares = [check_site]
"""


def test_names_of_other_inputs_dependencies_and_credentials_are_known(
    project: Project, ask: Ask
) -> None:
    app = listed(project, GUARDED, **{"Middleware/__init__.py": KEY_ENTRY})
    answer = ask(app, "GET", "/v1/book?title=a&page_color=b&locale=c&api_key=d&site_key=e")
    assert (answer.status, answer.json()) == (200, [{"title": "a", "limit": 50}, "b", "c", "d"])
    answer = ask(app, "GET", "/v1/book?page_colour=b&api_keys=d")
    assert [entry["msg"] for entry in answer.json()["errors"]] == [
        "page_colour is not known here; did you mean 'page_color'?",
        "api_keys is not known here; did you mean 'api_key'?",
    ]


TWICE = """
from extensions import Shelf
from treefold_http import Depends

async def count(shelf: Shelf): return len(shelf.values)

def handler(shelf: Shelf, number: int = Depends(count)):
    return [shelf.values, number, Shelf.made]
"""


def test_a_request_has_one_value_however_many_take_it(project: Project, ask: Ask) -> None:
    app = listed(project, TWICE)
    assert ask(app, "GET", "/v1/book?title=a").json() == [{"title": "a", "limit": 50}, 2, 1]
    answer = ask(app, "GET", "/v1/book?limit=x")
    assert (answer.status, len(answer.json()["errors"])) == (422, 1)


BOX = """
import dataclasses
from extensions import Box, Shelf

@dataclasses.dataclass
class Out:
    id: int

async def handler(shelf: Shelf) -> Box[Out]:
    wanted = shelf.values.get("title")
    if wanted == "wrong":
        return Box([{"id": "x"}])
    if wanted == "tuple":
        return Box([{"id": 2, "secret": 1}]), 203, {"X-Own": "1"}
    if wanted == "response":
        from treefold_http import Response
        return Response.json({"any": 1})
    return Box([{"id": 1, "secret": 1}])
"""


@pytest.mark.parametrize("model", ["", "\nresponse_model = Box[Out]\n"])
def test_a_result_is_held_to_its_type_and_has_the_fields_of_the_extension(
    project: Project, ask: Ask, model: str
) -> None:
    app = listed(project, BOX + model)
    answer = ask(app, "GET", "/v1/book?title=a&year__in=1,2")
    assert (answer.status, answer.json()) == (200, {"items": [{"id": 1}]})
    assert dict(answer.headers)["x-sent"] == "title=a,year__in=1,2"
    assert "x-sent" not in dict(ask(app, "GET", "/v1/book").headers)
    answer = ask(app, "GET", "/v1/book?title=tuple")
    assert (answer.status, answer.json()) == (203, {"items": [{"id": 2}]})
    assert dict(answer.headers).items() >= {("x-own", "1"), ("x-sent", "title=tuple")}
    assert ask(app, "GET", "/v1/book?title=response").json() == {"any": 1}
    assert ask(app, "GET", "/v1/book?title=wrong").status == 500


def test_credentials_of_the_query_are_not_among_the_sent_names(project: Project, ask: Ask) -> None:
    handler = BOX.replace("shelf: Shelf", "shelf: Shelf, token: str, api_key: str")
    answer = ask(listed(project, handler), "GET", "/v1/book?token=a&title=b&api_key=c")
    assert dict(answer.headers)["x-sent"] == "title=b"


def test_documents_list_names_types_descriptions_and_fields(project: Project) -> None:
    document = openapi_document(listed(project, BOX))
    operation = document["paths"]["/v1/book"]["get"]
    found = {each["name"]: each for each in operation["parameters"]}
    assert {each["in"] for each in found.values()} == {"query"}
    assert not any(each["required"] for each in found.values())
    assert found["title"]["description"] == "the title"
    assert found["year__in"]["schema"] == {"type": "array", "items": {"type": "integer"}}
    assert found["kind"]["schema"]["enum"] == ["new", "used"]
    assert found["since"]["schema"] == {"type": "string", "format": "date"}
    assert found["limit"]["schema"] == {"type": "integer", "default": 50}
    answer = operation["responses"]["200"]
    schema = answer["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Boxed_Out"}
    assert answer["headers"]["X-Sent"]["description"] == "the names that were sent"
    assert "422" in operation["responses"]
    assert "headers" not in operation["responses"]["422"]


def test_a_parameter_that_no_text_can_provide_breaks_its_file(project: Project) -> None:
    app = listed(project, LIST.replace("Shelf", "Wrong"))
    assert app.table.routes
    assert "'shelf' of broken() must be a scalar or a list" in app.report.broken[0].error


def test_a_socket_takes_the_query_as_well(project: Project) -> None:
    handler = LIST.replace("shelf: Shelf", "websocket, shelf: Shelf")
    app = project({"extensions.py": EXTENSION, "Api/v1/Book/Ws.py": handler})
    assert app.table.routes[0].method == "WEBSOCKET"
    assert not app.report.broken
