"""Names and words in the document: paths, ids, tags, summaries, and what hostile ones may do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application
from treefold_http.openapi import asyncapi_document, openapi_document

Document = Callable[..., dict[str, Any]]
Operation = Callable[..., dict[str, Any]]
Project = Callable[..., Application]

HANDLER = "async def handler(request): ...\n"


def ids(document: dict[str, Any]) -> list[str]:
    return [
        operation["operationId"]
        for item in document["paths"].values()
        for operation in item.values()
    ]


@pytest.mark.parametrize(
    ("file", "path", "operation_id", "tags"),
    [
        ("Api/v1/Get.py", "/v1", "get_v1", None),
        ("Api/v1/User/Get.py", "/v1/user", "get_v1_user", ["User"]),
        ("Api/v1/User/Role/POST.py", "/v1/user/role", "post_v1_user_role", ["User"]),
        ("Api/v1/User/[id]/Get.py", "/v1/user/{id}", "get_v1_user_by_id", ["User"]),
        ("Api/v1/[tenant]/User/Get.py", "/v1/{tenant}/user", "get_v1_by_tenant_user", ["User"]),
        ("Api/v1/User/[user id]/Get.py", "/v1/user/{user_id}", "get_v1_user_by_user_id", ["User"]),
        ("Api/v1/[a}{b]/Get.py", "/v1/{a_b}", "get_v1_by_a_b", None),
        ("Api/v1/[...path]/Get.py", "/v1/{path}", "get_v1_by_path", None),
        ("Api/v1/[user-id]/Get.py", "/v1/{user-id}", "get_v1_by_user_id", None),
        ("Api/v1/[user.id]/Get.py", "/v1/{user_id}", "get_v1_by_user_id", None),
        ("Api/v1/[1]/[2nd]/Get.py", "/v1/{_1}/{_2nd}", "get_v1_by_1_by_2nd", None),
        ("Api/v1/[ß]/Get.py", "/v1/{u00df}", "get_v1_by_u00df", None),
        (
            "Api/v1/[userId]/[user_id]/[user-id]/Get.py",
            "/v1/{userId}/{user_id_2}/{user-id_3}",
            "get_v1_by_userId_by_user_id_2_by_user_id_3",
            None,
        ),
        ("Api/v1/[id]/X/[id]/Get.py", "/v1/{id}/x/{id_2}", "get_v1_by_id_x_by_id_2", ["X"]),
        ("Api/v1/My Files/Get.py", "/v1/my%20files", "get_v1_my_files", ["My Files"]),
        ("Api/v1/{id}/Get.py", "/v1/%7Bid%7D", "get_v1_id", ["{id}"]),
        ("Api/v1/Ü/Get.py", "/v1/%C3%BC", "get_v1_u00fc", ["Ü"]),
        ("Api/v1/Maß-Band/Get.py", "/v1/ma%C3%9F-band", "get_v1_ma_u00df_band", ["Maß-Band"]),
        ("Api/v1/Api/User/Get.py", "/v1/api/user", "get_v1_api_user", ["User"]),
        (
            "Api/v1/api/[id]/v2/Book/Get.py",
            "/v1/api/{id}/v2/book",
            "get_v1_api_by_id_v2_book",
            ["Book"],
        ),
        ("Api/v1/Api/Get.py", "/v1/api", "get_v1_api", ["Api"]),
        ("Api/v1/Apiary/Get.py", "/v1/apiary", "get_v1_apiary", ["Apiary"]),
        ("Api/v1/!/Get.py", "/v1/!", "get_v1_x", ["!"]),
        ("Api/v1/100%25/Get.py", "/v1/100%2525", "get_v1_100_25", ["100%25"]),
    ],
)
def test_a_folder_becomes_path_id_and_tag(
    document: Document, file: str, path: str, operation_id: str, tags: list[str] | None
) -> None:
    made = document({file: HANDLER})
    ((found, item),) = made["paths"].items()
    (operation,) = item.values()

    assert found == path
    assert operation["operationId"] == operation_id
    assert operation.get("tags") == tags
    assert made.get("tags", []) == [{"name": tag} for tag in tags or []]
    assert [p["name"] for p in operation.get("parameters", ())] == re.findall(r"{([^}]*)}", path)


def test_a_parameter_that_is_renamed_says_the_name_of_its_folder(operation: Operation) -> None:
    found = operation(
        "async def handler(size: int, größe: int, request): ...",
        file="Api/v1/[size]/[größe]/[...path]/Get.py",
    )

    assert [(p["name"], p.get("description")) for p in found["parameters"]] == [
        ("size", None),
        ("gr_u00f6u00df_e", "größe"),
        ("path", "...path"),
    ]
    assert found["parameters"][1]["schema"] == {"type": "integer"}


def test_ids_that_would_be_one_are_told_apart(document: Document) -> None:
    made = document(
        {
            "Api/v1/Book/By Id/Get.py": HANDLER,
            "Api/v1/Book/[id]/Get.py": HANDLER,
            "Api/v1/Book/by_id/Get.py": HANDLER,
        }
    )

    assert sorted(ids(made)) == ["get_v1_book_by_id", "get_v1_book_by_id_2", "get_v1_book_by_id_3"]


def test_ids_of_other_scripts_stay_when_a_folder_comes(document: Document) -> None:
    before = {"Api/v1/Книга/Get.py": HANDLER, "Api/v1/本/Get.py": HANDLER}
    after = {"Api/v1/Автор/Get.py": HANDLER, **before}

    assert len(set(ids(document(before)))) == 2
    assert set(ids(document(before))) < set(ids(document(after, root="again")))


def test_an_id_of_the_author_is_kept_and_copies_of_a_version_get_their_own(
    project: Project, document: Document
) -> None:
    text = f"operation_id = 'listUsers'\n{HANDLER}"
    files = {"Api/v1/User/Get.py": text, "Api/v2/User/Get.py": text, "Api/v1/X/Get.py": HANDLER}

    assert ids(document(files)) == ["listUsers", "get_v1_x", "listUsers_v2"]
    assert ids(document(files, "v2", root="again")) == ["listUsers_v2"]


def test_an_id_of_the_author_wins_over_a_made_one(document: Document) -> None:
    made = document(
        {"Api/v1/A/Get.py": HANDLER, "Api/v1/B/Get.py": f"operation_id = 'get_v1_a'\n{HANDLER}"}
    )

    assert ids(made) == ["get_v1_a_2", "get_v1_a"]


@pytest.mark.parametrize(
    ("text", "summary", "description"),
    [
        ("async def handler(request): ...", "GET /v1/x", None),
        ("async def handler(request):\n    '''   '''", "GET /v1/x", None),
        ("async def handler(request):\n    'One line.'", "One line.", None),
        (
            "async def handler(request):\n    '''First.\n\n    More\n      indented.\n    '''",
            "First.",
            "More\n  indented.",
        ),
        ("summary = 'S'\nasync def handler(request):\n    'D.'", "S", None),
        ("summary = 'S'\nasync def handler(request):\n    '''D.\n\n    E.'''", "S", "E."),
        ("description = 'X'\nasync def handler(request):\n    '''D.\n\n    E.'''", "D.", "X"),
        ("summary = ''\ndescription = ''\nasync def handler(request):\n    'D.'", None, None),
        (
            "class H:\n    'Not this.'\n    async def __call__(self, request):\n        'This.'\n"
            "handler = H()",
            "This.",
            None,
        ),
        (
            "import functools\ndef f(request, x):\n    'P.'\nhandler = functools.partial(f, x=1)",
            "P.",
            None,
        ),
    ],
)
def test_words_come_from_the_module_else_from_the_docstring(
    operation: Operation, text: str, summary: str | None, description: str | None
) -> None:
    found = operation(text)

    assert (found.get("summary"), found.get("description")) == (summary, description)


def test_tags_and_deprecation_are_the_modules(document: Document) -> None:
    made = document(f"tags = ('b', 'a', 'b')\ndeprecated = True\n{HANDLER}")
    operation = made["paths"]["/v1/x"]["get"]

    assert operation["tags"] == ["b", "a"]
    assert operation["deprecated"] is True
    assert made["tags"] == [{"name": "a"}, {"name": "b"}]


def test_tags_of_sockets_alone_are_no_empty_tags(document: Document) -> None:
    made = document(
        {
            "Api/v1/Chat/Socket.py": "async def handler(websocket): ...\n",
            "Api/v1/User/Get.py": HANDLER,
        }
    )

    assert made["tags"] == [{"name": "User"}]
    assert made["paths"]["/v1/chat"]["x-websocket"]["tags"] == ["Chat"]


def test_an_operation_without_credentials_says_so(document: Document) -> None:
    secured = "from treefold_http import secured\n@secured('bearer')\n" + HANDLER
    made = document({"Api/v1/Open/Get.py": HANDLER, "Api/v1/Closed/Get.py": secured})

    assert made["paths"]["/v1/open"]["get"]["security"] == []
    assert made["paths"]["/v1/closed"]["get"]["security"] == [{"bearer": []}]


def test_no_tags_at_all_are_none(operation: Operation) -> None:
    assert "tags" not in operation(f"tags = []\n{HANDLER}")


HOSTILE = '</script><script>alert(1)</script>\u2028\x00\x1b[31m\\" ${x} {{y}} \U0001f600'


def test_hostile_words_are_data(document: Document) -> None:
    made = document(
        f"""
        summary = description = {HOSTILE!r}
        tags = [{HOSTILE!r}]
        responses = {{404: {HOSTILE!r}, 200: {{"model": str, "example": {HOSTILE!r}}}}}
        async def handler(q: str = {HOSTILE!r}):
            ...
        """
    )
    again = json.loads(json.dumps(made))
    operation = again["paths"]["/v1/x"]["get"]

    assert operation["summary"] == operation["description"] == HOSTILE
    assert operation["tags"] == [HOSTILE]
    assert operation["responses"]["404"]["description"] == HOSTILE
    assert operation["responses"]["200"]["content"]["text/plain"]["example"] == HOSTILE
    assert operation["parameters"][0]["schema"]["default"] == HOSTILE


@pytest.mark.parametrize(
    ("pyproject", "info"),
    [
        (None, {"title": "project", "version": "v2"}),
        ("[tool.x]\n", {"title": "project", "version": "v2"}),
        ("[project]\nname = 'shop'\n", {"title": "shop", "version": "v2"}),
        (
            "[project]\nname = 'shop'\nversion = '1.2'\ndescription = 'Books'\n",
            {"title": "shop", "version": "1.2", "description": "Books"},
        ),
        ("[project]\nname = 5\nversion = []\n", {"title": "project", "version": "v2"}),
        ("project = 5\n", {"title": "project", "version": "v2"}),
    ],
)
def test_title_and_version_are_the_projects(
    document: Document, pyproject: str | None, info: dict[str, str]
) -> None:
    files = {"Api/v1/Get.py": HANDLER, "Api/v2/Get.py": HANDLER}
    if pyproject is not None:
        files["pyproject.toml"] = pyproject

    assert document(files)["info"] == info
    assert document(files, "v1", root="one")["info"]["version"] == "v1"


def test_an_unknown_version_is_refused(project: Project) -> None:
    app = project({"Api/v1/Get.py": HANDLER})

    with pytest.raises(ValueError, match=r"^There is no version 'v2'; known versions: v1$"):
        openapi_document(app, "v2")
    with pytest.raises(ValueError, match="There is no version"):
        asyncapi_document(app, "V1")


def test_no_route_is_a_document_too(document: Document) -> None:
    assert document({})["paths"] == {}


@pytest.mark.parametrize(
    "text",
    ["def handler(", "x = 1", "async def handler(thing: object): ...", "tags = 5\n" + HANDLER],
)
def test_a_file_that_is_not_served_is_not_described(document: Document, text: str) -> None:
    made = document({"Api/v1/A/Get.py": text, "Api/v1/B/Get.py": HANDLER})

    assert list(made["paths"]) == ["/v1/b"]


def test_one_that_cannot_be_described_does_not_hurt_the_rest(
    document: Document, lines: Any
) -> None:
    hostile = """
        class Wild:
            def __getattr__(self, name):
                raise RuntimeError("no " + name)

        class Names(dict):
            pass

        tags = ["x"]

        async def handler(request):
            ...

        async def pass_on(request, call_next):
            return await call_next(request)

        pass_on.__treefold_security__ = 5
        middlewares = [pass_on]
        """
    made = document({"Api/v1/A/Get.py": hostile, "Api/v1/B/Get.py": HANDLER})

    assert list(made["paths"]) == ["/v1/b"]
    assert any("v1/A/Get.py is not in the OpenAPI document" in text for text in lines.texts())


VERSION = """
deprecated = 2026-11-01
sunset = 2027-06-30
link = "/why"
successor = "v2"
"""


def test_a_deprecated_version_marks_its_operations_and_its_document(document: Document) -> None:
    files = {
        "Api/v1/version.toml": VERSION,
        "Api/v1/User/Get.py": HANDLER,
        "Api/v1/Pen/Get.py": f"deprecated = '2026-12-01'\n{HANDLER}",
        "Api/v1/Chat/Socket.py": "async def handler(websocket): ...\n",
        "Api/v2/User/Get.py": HANDLER,
    }
    made = document(files, "v1")
    rest = {"since": "2026-11-01", "link": "/why", "successor": "v2"}
    marks = {"x-sunset": "2027-06-30", "x-deprecation": rest}
    assert made["info"] == {
        "title": made["info"]["title"],
        "version": "v1",
        "x-deprecated": True,
        **marks,
    }
    user = made["paths"]["/v1/user"]["get"]
    pen = made["paths"]["/v1/pen"]["get"]
    chat = made["paths"]["/v1/chat"]["x-websocket"]
    assert {key: user[key] for key in user if key.startswith("x-")} == marks
    assert user["deprecated"] is pen["deprecated"] is chat["deprecated"] is True
    assert pen["x-deprecation"] == rest | {"since": "2026-12-01"}
    others = document(files, "v2")
    assert "x-deprecated" not in others["info"]
    assert "deprecated" not in others["paths"]["/v2/user"]["get"]


def test_the_document_of_all_versions_is_not_deprecated(document: Document) -> None:
    made = document({"Api/v1/version.toml": VERSION, "Api/v1/User/Get.py": HANDLER})
    assert "x-deprecated" not in made["info"]
    assert made["paths"]["/v1/user"]["get"]["x-sunset"] == "2027-06-30"
