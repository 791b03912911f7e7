"""Complete the site of the documentation, and put the versions of releases side by side.

`python tools/docs/site.py finish BUILT SITE` moves a built site to its place, outside of `docs/`,
and adds what programs read: each page as Markdown beside its HTML, `llms.txt` with a line for each
page, and `llms-full.txt` with all of them.

`python tools/docs/site.py join ARCHIVES PUBLIC` unpacks `ARCHIVES/treefold-vX.Y.Z/site.tar.gz`, one
for each release, into `PUBLIC/X.Y.Z`, and the newest into `PUBLIC/latest` too; with the list of
versions that each page reads, and a first page and a page for errors that lead to the newest.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent))

from archives import unpack
from packaging.version import Version
from pages import DOCS, Page, make_page, read_pages

USAGE = "usage: python tools/docs/site.py finish BUILT SITE | join ARCHIVES PUBLIC"
LATEST = "latest"
AT_THE_ROOT = ("404.html", "llms.txt", "llms-full.txt", "sitemap.xml")
"""Files that programs look for at the root of an address; their addresses are absolute."""
_RELEASE = re.compile(r"treefold-v(\d+\.\d+\.\d+)")
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+\.md)(?P<anchor>#[^)\s]*)?\)")
_REDIRECT = """\
<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <title>treefold</title>
    <link rel="canonical" href="{address}">
    <meta http-equiv="refresh" content="0; url=latest/index.html">
  </head>
  <body><p><a href="latest/index.html">The documentation of treefold</a></p></body>
</html>
"""


def main(words: Sequence[str]) -> None:
    match words:
        case ["finish", built, site]:
            finish_site(DOCS, Path(built), Path(site))
        case ["join", archives, public]:
            join_releases(Path(archives), Path(public))
        case _:
            sys.exit(USAGE)


def read_settings(docs: Path = DOCS) -> dict[str, Any]:
    """Return the settings of the site."""
    return tomllib.loads((docs / "zensical.toml").read_text(encoding="utf-8"))["project"]


def finish_site(docs: Path, built: Path, site: Path) -> None:
    """Move a built site to its place, and write there what programs read."""
    shutil.rmtree(site, ignore_errors=True)
    site.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(built, site)
    settings = read_settings(docs)
    address = settings["site_url"]
    pages = [*read_pages(docs), *read_reference(docs)]
    for page in pages:
        if not (site / page.path).with_suffix(".html").exists():
            sys.exit(f"{page.path} is not in {site}; build the site first")
        (site / page.path).write_text(page.text, encoding="utf-8")
    listed = "\n".join(list_pages(pages, settings))
    (site / "llms.txt").write_text(listed + "\n", encoding="utf-8")
    whole = "\n".join(resolve_links(page, address) for page in pages)
    (site / "llms-full.txt").write_text(whole, encoding="utf-8")


def read_reference(docs: Path) -> list[Page]:
    """Return the generated pages, the index first."""
    files = sorted(docs.glob("reference/*.md"), key=lambda file: (file.stem != "index", file.stem))
    return [make_page(docs, file.relative_to(docs).as_posix(), "Reference") for file in files]


def list_pages(pages: Sequence[Page], settings: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of `llms.txt` (https://llmstxt.org): the address of each page as Markdown."""
    yield f"# {settings['site_name']}"
    yield f"\n> {settings['site_description']}"
    yield (
        "\nEvery block of code of these pages is run by the tests of the release. The same pages"
        " are in the installed package: `treefold docs`."
    )
    section = None
    for page in pages:
        if page.section != section:
            section = page.section
            yield f"\n## {section or 'treefold'}\n"
        yield f"- [{page.title}]({settings['site_url']}{page.path}): {find_summary(page)}"


def find_summary(page: Page) -> str:
    """Return the first sentence of a page."""
    for block in page.text.split("\n\n"):
        if not block.startswith(("#", "```", "|", "-", ">")):
            text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(block.split()))
            return re.split(r"(?<=[.:]) ", text)[0].rstrip(":")
    return page.title


def resolve_links(page: Page, address: str) -> str:
    """Return the text of a page with absolute links to others."""

    def make_absolute(found: re.Match[str]) -> str:
        target = posixpath.join(posixpath.dirname(page.path), found["target"])
        return f"]({address}{posixpath.normpath(target)}{found['anchor'] or ''})"

    return _LINK.sub(make_absolute, page.text)


def join_releases(archives: Path, public: Path) -> None:
    """Unpack the site of each release; exit where there is none."""
    found = {
        Version(named[1]): folder / "site.tar.gz"
        for folder in archives.iterdir()
        if (named := _RELEASE.fullmatch(folder.name)) and (folder / "site.tar.gz").exists()
    }
    if not found:
        sys.exit(f"{archives} has no treefold-vX.Y.Z/site.tar.gz")
    versions = sorted(found, reverse=True)
    for version in versions:
        with tarfile.open(found[version]) as archive:
            unpack(archive, public / str(version))
    shutil.copytree(public / str(versions[0]), public / LATEST)
    for name in AT_THE_ROOT:
        shutil.copy(public / LATEST / name, public / name)
    listed = [
        {"version": str(each), "title": str(each), "aliases": [LATEST] if not place else []}
        for place, each in enumerate(versions)
    ]
    (public / "versions.json").write_text(json.dumps(listed), encoding="utf-8")
    address = read_settings()["site_url"]
    (public / "index.html").write_text(_REDIRECT.format(address=address), encoding="utf-8")
    (public / ".nojekyll").touch()


if __name__ == "__main__":
    main(sys.argv[1:])
