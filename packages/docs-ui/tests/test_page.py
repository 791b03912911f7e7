"""The page: what it may load, where it looks for it, and that none of it is markup of others."""

import json
import re
from html import unescape
from typing import Any

import pytest
from docs_exchange import Elements, ask

from treefold_docs_ui import DocsApp, Document

HOSTILE = """</script><img src=x onerror=alert(1)>"><svg onload=alert(2)>'{{7*7}}"""


def config_of(text: str) -> dict[str, Any]:
    (body,) = Elements(text).all("body")
    return json.loads(body["data-config"] or "")


@pytest.fixture
def docs() -> DocsApp:
    """An application with two documents."""
    return DocsApp([Document("v1", "../v1.json"), Document("v2", "/v2.json")], title="Shop")


def test_the_page_names_documents_and_title(docs: DocsApp) -> None:
    answer = ask(docs, "/docs/", root_path="/docs")
    config = config_of(answer.text)

    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert config["documents"] == [
        {"name": "v1", "url": "../v1.json", "asyncapi": None},
        {"name": "v2", "url": "/v2.json", "asyncapi": None},
    ]
    assert (config["title"], config["site"], config["log"]) == ("Shop", False, False)


@pytest.mark.parametrize(
    ("path", "root_path", "base"),
    [
        ("/", "", "./"),
        ("/docs/", "/docs", "./"),
        ("/docs", "/docs", "./docs/"),
        ("/a/b/docs", "/a/b/docs", "./docs/"),
        ("/a/b/docs", "/a/b/docs/", "./docs/"),
        ("", "/docs", "./docs/"),  # frameworks that take the prefix off the path
        ("/", "/docs", "./"),
        ("/my docs", "/my docs", "./my%20docs/"),
        ('/"><svg', '/"><svg', "./%22%3E%3Csvg/"),
    ],
)
def test_every_address_is_relative_to_where_the_page_is(
    docs: DocsApp, path: str, root_path: str, base: str
) -> None:
    answer = ask(docs, path, root_path=root_path)
    elements = Elements(answer.text)

    assert config_of(answer.text)["base"] == base
    addresses = [each.get("src") or each.get("href") or "" for _, each in elements.found]
    shown = [address for address in addresses if address and "json" not in address]
    assert shown
    assert all(address.startswith(f"{base}assets/") for address in shown)


def test_s115_the_page_runs_no_script_of_its_own_text(docs: DocsApp) -> None:
    answer = ask(docs)
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert policy["base-uri"] == policy["form-action"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", answer.text, re.DOTALL)
    assert scripts
    assert set(scripts) == {""}
    assert not re.search(r"\son\w+=", answer.text)


def test_s115_hostile_titles_and_names_are_text() -> None:
    docs = DocsApp([Document(HOSTILE, "/v1.json")], title=HOSTILE)
    answer = ask(docs)
    elements = Elements(answer.text)

    assert elements.all("img") == elements.all("svg") == []
    assert len(elements.all("script")) == 2
    assert config_of(answer.text)["documents"][0]["name"] == HOSTILE
    assert f"<title>{HOSTILE}</title>" == unescape(
        answer.text[answer.text.index("<title>") : answer.text.index("</title>") + 8]
    )


def test_s115_the_query_changes_nothing(docs: DocsApp) -> None:
    query = b"url=//evil.example/x.json&configUrl=//evil.example"
    assert ask(docs, query=query).body == ask(docs).body


def test_the_page_is_asked_for_again_and_answered_304(docs: DocsApp) -> None:
    first = ask(docs)
    second = ask(docs, headers={"If-None-Match": f"W/{first.headers['etag']}"})

    assert first.headers["cache-control"] == "no-cache"
    assert (second.status, second.body) == (304, b"")
    assert second.headers["etag"] == first.headers["etag"]


def test_another_site_may_neither_frame_nor_embed_it(docs: DocsApp) -> None:
    headers = ask(docs).headers

    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
