"""`secured`: credentials in the document, and nothing else of the function changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application, secured
from treefold_http.openapi import scheme_clashes

Document = Callable[..., dict[str, Any]]

KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}


def test_the_function_stays_what_it_is() -> None:
    async def user() -> None: ...

    assert secured("bearer")(user) is user


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"scheme": "token"},
            r"^A security scheme must be one of basic, bearer, di.*, got 'token'$",
        ),
        (
            {"scheme": {}},
            r"^The type of a security scheme must be one of apiKey, http.*, got None$",
        ),
        ({"scheme": {"type": ["http"]}}, r"type of a security scheme .*, got \['http'\]$"),
        (
            {"scheme": {"type": "apiKey", "in": "header"}},
            r"^A security scheme of type 'apiKey' has",
        ),
        (
            {"scheme": "basic", "name": "a b"},
            r"^A security name must consist of letters, .*, got 'a b'$",
        ),
    ],
)
def test_what_is_no_scheme_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        secured(arguments.pop("scheme"), **arguments)


def test_demands_of_dependencies_handlers_and_middleware_are_joined(document: Document) -> None:
    made = document(
        {
            "Middleware/__init__.py": f"""
                from treefold_http import secured, under

                @secured({KEY!r}, name="key")
                async def gate(request, call_next):
                    return await call_next(request)

                middlewares = [under("/v1/a", gate)]
                """,
            "Api/v1/A/Get.py": """
                from treefold_http import Depends, secured

                @secured("bearer")
                def token(): ...

                def user(token=Depends(token)): ...

                async def handler(user=Depends(user)): ...
                """,
            "Api/v1/B/Get.py": """
                from treefold_http import secured

                FLOWS = {"clientCredentials": {"tokenUrl": "/token", "scopes": {"read": "Read"}}}

                @secured({"type": "oauth2", "flows": FLOWS}, name="shop", scopes=["read"])
                async def handler(request): ...
                """,
            "Api/v1/C/Get.py": """
                from treefold_http import secured

                @secured("basic", optional=True)
                async def handler(request): ...
                """,
        }
    )
    security = {path: item["get"].get("security") for path, item in made["paths"].items()}

    assert security == {
        "/v1/a": [{"key": [], "bearer": []}],
        "/v1/b": [{"shop": ["read"]}],
        "/v1/c": [{"basic": []}, {}],
    }
    assert made["components"]["securitySchemes"]["key"] == KEY
    assert made["components"]["securitySchemes"]["bearer"] == {"type": "http", "scheme": "bearer"}
    assert "401" in made["paths"]["/v1/a"]["get"]["responses"]
    assert "401" not in made["paths"]["/v1/c"]["get"]["responses"]


def test_the_demands_of_one_scheme_on_one_route_are_joined(operation: Document) -> None:
    flows = {"clientCredentials": {"tokenUrl": "/token", "scopes": {"read": "", "write": ""}}}
    found = operation(
        f"""
        SHOP = {{"type": "oauth2", "flows": {flows!r}}}
        @secured(SHOP, name="shop", scopes=["read"])
        def reader(): ...
        @secured(SHOP, name="shop", scopes=["write", "read"], optional=True)
        def writer(): ...
        async def handler(a=Depends(reader), b=Depends(writer)): ...
        """
    )

    assert found["security"] == [{"shop": ["read", "write"]}]


CLASHING = {
    "Api/v1/A/Get.py": f"""
        from treefold_http import secured

        @secured({KEY!r}, name="key")
        async def handler(request): ...
        """,
    "Api/v1/B/Get.py": f"""
        from treefold_http import secured

        @secured({dict(reversed(KEY.items()))!r}, name="key")
        async def handler(request): ...
        """,
    "Api/v2/A/Get.py": f"""
        from treefold_http import secured

        @secured({KEY | {"name": "X-Other"}!r}, name="key")
        async def handler(request): ...
        """,
    "Api/v2/B/Get.py": """
        from treefold_http import secured

        @secured("basic", name="key")
        @secured("bearer", name="key")
        async def handler(request): ...
        """,
}


def test_schemes_of_one_name_that_differ_have_names_of_their_own(
    document: Document, project: Callable[..., Application], lines: Any
) -> None:
    made = document(CLASHING)
    security = {path: item["get"]["security"] for path, item in made["paths"].items()}

    assert security == {
        "/v1/a": [{"key": []}],
        "/v1/b": [{"key": []}],
        "/v2/a": [{"key_v2": []}],
        "/v2/b": [{"key_2": [], "key_3": []}],
    }
    assert made["components"]["securitySchemes"] == {
        "key": KEY,
        "key_2": {"type": "http", "scheme": "bearer"},
        "key_3": {"type": "http", "scheme": "basic"},
        "key_v2": KEY | {"name": "X-Other"},
    }
    said = [text for text in lines.texts() if text.startswith("Security scheme")]
    assert said == scheme_clashes(project({}))
    assert len(said) == 3
    assert said[0] == (
        "Security scheme 'key' is not the same at Api/v1/A/Get.py:4 and at Api/v2/A/Get.py:4; the"
        " documents call the later 'key_v2'; give it a `name` of its own"
    )


def test_the_document_of_one_version_has_the_same_names(document: Document) -> None:
    made = document(CLASHING, "v2")

    assert made["paths"]["/v2/a"]["get"]["security"] == [{"key_v2": []}]
    assert "key" not in made["components"]["securitySchemes"]


def test_where_all_is_well_nothing_is_said(project: Callable[..., Application]) -> None:
    assert scheme_clashes(project({"Api/v1/A/Get.py": CLASHING["Api/v1/A/Get.py"]})) == []
