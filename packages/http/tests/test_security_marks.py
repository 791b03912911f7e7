"""`secured`: credentials in the document, and nothing else of the function changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import secured

Document = Callable[..., dict[str, Any]]

KEY = {"type": "apiKey", "in": "header", "name": "X-Key"}


def test_the_function_stays_what_it_is() -> None:
    async def user() -> None: ...

    assert secured("bearer")(user) is user


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scheme": "token"}, r"^Security scheme 'token' is unknown; use one of basic, bearer, di"),
        ({"scheme": {}}, r"^Security scheme type None is unknown; use one of apiKey, http"),
        ({"scheme": {"type": ["http"]}}, r"type \['http'\] is unknown"),
        (
            {"scheme": {"type": "apiKey", "in": "header"}},
            r"^A security scheme of type 'apiKey' has",
        ),
        ({"scheme": "basic", "name": "a b"}, r"^Security name 'a b' is not made of letters"),
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
