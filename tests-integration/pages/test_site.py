"""The site of the documentation: navigation, links, and the reference of every public name."""

import importlib
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = "docs/zensical.toml"
GENERATED = ("reference/index.md", "reference/changelog.md")
PACKAGES = sorted(
    path.name for path in ROOT.glob("packages/*/src/*") if (path / "__init__.py").exists()
)


def tool(name: str) -> ModuleType:
    """Import a program of `tools/docs`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/docs/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return tool("reference")


@pytest.fixture(scope="module")
def site(reference: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the site is built from, with the generated pages."""
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", root / "docs", ignore=shutil.ignore_patterns("site"))
    reference.write_reference(root / "docs/reference")
    tool("changelogs").write_changelogs(root / "docs/reference")
    return root


def placed(entries: list[Any]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values():
                yield from placed([inner] if isinstance(inner, str) else inner)


def test_every_page_has_one_place_in_the_navigation() -> None:
    configured = tomllib.loads((ROOT / SETTINGS).read_text(encoding="utf-8"))
    docs = ROOT / "docs"
    pages = {str(page.relative_to(docs)) for page in docs.glob("**/*.md")}
    written = {page for page in pages if not page.startswith("reference/")}
    assert sorted(placed(configured["project"]["nav"])) == sorted({*written, *GENERATED})


def test_the_site_builds_offline_and_every_link_has_a_target(site: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "-f", SETTINGS, "--strict", "--clean"],
        cwd=site,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]+(?:src|href)=\"?(https?://[^\" >]+)")
    for page in (site / "docs/site").glob("**/*.html"):
        assert loaded.findall(page.read_text(encoding="utf-8")) == [], page


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_of_a_package_is_in_the_reference(
    package: str, reference: ModuleType, site: Path
) -> None:
    page = (site / "docs/reference" / f"{package}.md").read_text(encoding="utf-8")
    headings = set(re.findall(r"^## (\w+)$", page, re.MULTILINE))
    assert headings >= set(reference.public_names(importlib.import_module(package)))
    links = re.findall(r"^See \[(\w+)\]\(([\w.]+)\.md#", page, re.MULTILINE)
    for name, module in links:
        target = (site / f"docs/reference/{module}.md").read_text(encoding="utf-8")
        assert f"\n## {name}\n" in target
