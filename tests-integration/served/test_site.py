"""The site of the documentation: navigation, links, what programs read, and every public name."""

import importlib
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from docs_site import PREFIX, load_tool, publish_site

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "docs/zensical.toml"
GENERATED = ("reference/index.md", "reference/changelog.md")
PACKAGES = sorted(
    path.name for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").exists()
)
ADDRESS = "https://treefold.github.io/treefold/latest/"


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return load_tool("reference")


class Tags(HTMLParser):
    """The addresses and names of an HTML page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = {"__skip", "__toc"}
        self.canonical: list[str] = []
        self.markdown: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: value or "" for name, value in attrs}
        self.names |= {told[name] for name in ("id", "name") if name in told}
        if tag == "a" and "href" in told:
            self.links.append(told["href"])
        if tag == "link" and told["rel"] == "canonical":
            self.canonical.append(told["href"])
        elif tag == "link" and told.get("type") == "text/markdown":
            self.markdown.append(told["href"])
        elif tag in {"script", "img", "iframe", "link"}:
            self.loaded += [told[name] for name in ("src", "href") if name in told]


@pytest.fixture(scope="module")
def tags(site: Path) -> dict[str, Tags]:
    """The tags of each HTML page."""
    return {
        page.relative_to(site).as_posix(): Tags(page.read_text(encoding="utf-8"))
        for page in site.glob("**/*.html")
    }


def placed(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values():
                yield from placed([inner] if isinstance(inner, str) else inner)


def written_pages() -> list[str]:
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).as_posix() for page in docs.glob("**/*.md")}
    return sorted(page for page in pages if not page.startswith("reference/"))


def test_every_page_has_one_place_in_the_navigation() -> None:
    configured = tomllib.loads((ROOT / SETTINGS).read_text(encoding="utf-8"))
    assert sorted(placed(configured["project"]["nav"])) == sorted({*written_pages(), *GENERATED})


def test_every_page_is_built_and_nothing_is_loaded_from_elsewhere(tags: dict[str, Tags]) -> None:
    assert {page.replace(".md", ".html") for page in written_pages()} <= set(tags)
    for page, found in tags.items():
        assert [each for each in found.loaded if each.startswith(("http", "//"))] == [], page


def test_every_link_has_a_target(site: Path, tags: dict[str, Tags]) -> None:
    followed = 0
    for page, found in tags.items():
        for link in found.links + found.loaded + found.markdown:
            path = urlsplit(urljoin(f"{urlsplit(ADDRESS).path}{page}", link))
            if path.netloc:
                continue
            assert path.path.startswith(f"{PREFIX}latest/"), (page, link)
            file = unquote(path.path.removeprefix(f"{PREFIX}latest/")) or "index.html"
            assert (site / file).is_file(), (page, link)
            if path.fragment and file in tags:
                assert unquote(path.fragment) in tags[file].names, (page, link)
            followed += 1
    assert followed > 5000


def test_every_page_names_its_address_in_the_newest_release(
    site: Path, tags: dict[str, Tags]
) -> None:
    pages = {page: found for page, found in tags.items() if page != "404.html"}
    canonical = {page: found.canonical for page, found in pages.items()}
    home = {"index.html": [ADDRESS]} if canonical["index.html"] == [ADDRESS] else {}
    assert canonical == {page: [f"{ADDRESS}{page}"] for page in pages} | home
    listed = re.findall("<loc>(.*)</loc>", (site / "sitemap.xml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(address for (address,) in canonical.values())


def test_the_page_for_errors_works_at_any_depth_below_the_prefix(tags: dict[str, Tags]) -> None:
    found = tags["404.html"]
    assert [each for each in found.loaded if not each.startswith(f"{PREFIX}latest/")] == []
    links = [each for each in found.links if not each.startswith((f"{PREFIX}latest/", "#"))]
    assert [each for each in links if not each.startswith("https://")] == []


def test_every_page_is_there_as_markdown(site: Path, tags: dict[str, Tags]) -> None:
    for page, found in tags.items():
        if page == "404.html":
            continue
        (link,) = found.markdown
        file = site / page.replace(".html", ".md")
        assert (site / Path(page).parent / link).resolve() == file
        text = file.read_text(encoding="utf-8")
        assert text.startswith("# ")
        assert "<!-- not run:" not in text.replace("`<!-- not run: reason -->`", "")


def test_the_list_for_programs_names_every_page(site: Path, tags: dict[str, Tags]) -> None:
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# treefold\n\n> The folder tree is the API")
    lines = re.findall(r"^- \[(.+)\]\((\S+)\): (.+)$", text, re.MULTILINE)
    files = {address.removeprefix(ADDRESS) for _, address, _ in lines}
    assert files == {page.replace(".html", ".md") for page in tags if page != "404.html"}
    whole = (site / "llms-full.txt").read_text(encoding="utf-8")
    assert [title for title, _, _ in lines if f"# {title}" not in whole.replace("`", "")] == []
    assert re.findall(r"\]\((?!https?:|#)[^)\s]+\.md", whole) == []


def test_releases_stand_side_by_side(site: Path, tmp_path: Path) -> None:
    public = publish_site(site, tmp_path, "0.9.0", "0.10.0")
    assert {path.name for path in public.iterdir() if path.is_dir()} == {
        "0.9.0",
        "0.10.0",
        "latest",
    }
    versions = (public / "versions.json").read_text(encoding="utf-8")
    assert versions.index('"0.10.0"') < versions.index('"latest"') < versions.index('"0.9.0"')
    assert "url=latest/index.html" in (public / "index.html").read_text(encoding="utf-8")
    for name in ("404.html", "llms.txt", "llms-full.txt", "sitemap.xml"):
        assert (public / name).read_bytes() == (public / "latest" / name).read_bytes()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_a_package_is_in_the_reference(
    package: str, reference: ModuleType, site: Path
) -> None:
    page = (site / "reference" / f"{package}.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert headings >= set(reference.public_names(importlib.import_module(package)))
    links = re.findall(r"^See \[(\w+)\]\(([\w.]+)\.md#", page, re.MULTILINE)
    for name, module in links:
        target = (site / f"reference/{module}.md").read_text(encoding="utf-8")
        assert f"\n## {name}\n" in target
