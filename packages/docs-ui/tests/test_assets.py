"""The files: all there, compressed, cached for ever under what they hold, and ours to serve."""

import gzip
import re
from pathlib import Path

import pytest
from docs_exchange import Elements, ask

import treefold_docs_ui
from treefold_docs_ui import AssetsMissingError, DocsApp, Document
from treefold_docs_ui._assets import load_assets

PACKAGE = Path(treefold_docs_ui.__file__).parent
UI = PACKAGE / "ui"
MODULES = sorted(UI.glob("*.js"))


@pytest.fixture
def docs() -> DocsApp:
    """An application with one document."""
    return DocsApp([Document("v1", "/v1.json")])


def asset(name: str) -> str:
    return f"/assets/{load_assets().digest}/{name}"


def test_everything_the_page_names_is_there(docs: DocsApp) -> None:
    elements = Elements(ask(docs).text)
    names = [each.get("src") or each.get("href") or "" for _, each in elements.found]
    assets = [name.removeprefix(".") for name in names if "assets" in name]

    assert len(assets) >= len(MODULES)
    assert [ask(docs, name).status for name in assets] == [200] * len(assets)


@pytest.mark.parametrize("name", ["LICENSE", "LICENSE.bundle.txt", "NOTICE"])
def test_a_licence_in_the_repository_is_that_of_the_part_in_the_wheel(name: str) -> None:
    """A fresh clone has no assets when the metadata of its wheel is read."""
    kept = Path(__file__).parents[1] / "licenses" / "swagger-ui" / name

    assert kept.read_bytes() == (PACKAGE / "assets" / "swagger-ui" / name).read_bytes()


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.name)
def test_everything_a_module_names_is_there(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    imported = re.findall(r'from "\./([\w.-]+)"', text)
    fetched = re.findall(r"\$\{(?:config\.)?assets\}/([\w./-]+)", text)

    assert [name for name in [*imported, *fetched] if name not in load_assets().files] == []


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("gzip, deflate, br", "br"),
        ("*", "br"),
        ("br;q=0, gzip;q=0.5", "gzip"),
        ("br;q=0.0, *", "gzip"),
        ("identity", None),
        ("", None),
        ("gzip;q=0", None),
    ],
)
def test_the_best_coding_that_is_accepted_is_sent(
    docs: DocsApp, accepted: str, coding: str | None
) -> None:
    name = "swagger-ui/swagger-ui.css"
    found = load_assets().files[name]
    if b"br" not in found.encoded and coding == "br":
        coding = "gzip"  # built without isolation, where brotli was not
    answer = ask(docs, asset(name), headers={"Accept-Encoding": accepted})

    assert answer.headers.get("content-encoding") == coding
    assert answer.body == (found.encoded[coding.encode()] if coding else found.body)
    assert answer.headers["vary"] == "accept-encoding"
    assert int(answer.headers["content-length"]) == len(answer.body)


def test_the_compressed_form_is_that_of_the_file(docs: DocsApp) -> None:
    for name, found in load_assets().files.items():
        answer = ask(docs, asset(name), headers={"Accept-Encoding": "gzip"})
        assert gzip.decompress(answer.body) == found.body


def test_an_asset_is_cached_for_ever(docs: DocsApp) -> None:
    first = ask(docs, asset("main.js"))
    again = ask(docs, asset("main.js"), headers={"If-None-Match": first.headers["etag"]})

    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert first.headers["content-type"] == "text/javascript; charset=utf-8"
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/0123456789abcdef0123/main.js",
        "/assets/main.js",
        "/assets//main.js",
        "/assets/{digest}/",
        "/assets/{digest}/../_app.py",
        "/assets/{digest}/swagger-ui/LICENSE",
        "/assets/{digest}/nothing.js",
    ],
)
def test_nothing_else_is_served(docs: DocsApp, path: str) -> None:
    assert ask(docs, path.replace("{digest}", load_assets().digest)).status == 404


def test_the_licences_of_third_parties_travel_along() -> None:
    vendor = PACKAGE / "assets" / "swagger-ui"

    assert "Apache License" in (vendor / "LICENSE").read_text(encoding="utf-8")
    assert "SmartBear" in (vendor / "NOTICE").read_text(encoding="utf-8")
    assert "React" in (vendor / "LICENSE.bundle.txt").read_text(encoding="utf-8")


def test_s115_no_module_makes_markup_of_text() -> None:
    sinks = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\(|Function\("
    words = {path.name: re.sub(r"//.*", "", path.read_text(encoding="utf-8")) for path in MODULES}

    assert [name for name, text in words.items() if re.search(sinks, text)] == []


def test_no_module_names_another_host() -> None:
    named = {
        path.name: re.findall(r"https?://[\w.-]+", path.read_text(encoding="utf-8"))
        for path in UI.iterdir()
    }

    assert {host for hosts in named.values() for host in hosts} == {"http://www.w3.org"}


def test_a_copy_without_assets_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ui").mkdir()
    monkeypatch.setattr("treefold_docs_ui._assets._HERE", tmp_path)
    load_assets.cache_clear()
    try:
        with pytest.raises(AssetsMissingError, match="install treefold-docs-ui with pip"):
            DocsApp([Document("v1", "/v1.json")])
    finally:
        load_assets.cache_clear()
