"""Documents are on the origin of the page, or they are refused where they are named."""

import pytest

from treefold_docs_ui import DocsApp, Document


@pytest.mark.parametrize(
    "url", ["/openapi.json", "../openapi/v1.json", "openapi.json", "/a?b=c", "/a:b"]
)
def test_a_path_is_an_address(url: str) -> None:
    assert Document("v1", url, asyncapi=url).url == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://evil.example/openapi.json",
        "//evil.example/openapi.json",
        "javascript:alert(1)",
        "data:application/json,{}",
        "\\\\evil.example\\x",
        "/\\evil.example",
        " /openapi.json",
        "/open\napi.json",
    ],
)
def test_an_address_elsewhere_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="must be a path on this origin"):
        Document("v1", url)
    with pytest.raises(ValueError, match="must be a path on this origin"):
        Document("v1", "/openapi.json", asyncapi=url)


@pytest.mark.parametrize(
    "documents", [[], [Document("v1", "/a"), Document("v1", "/b")]], ids=["none", "one name twice"]
)
def test_documents_need_a_name_each(documents: list[Document]) -> None:
    with pytest.raises(ValueError, match="Document names must be unique"):
        DocsApp(documents)
