"""Every public name stands on a page that a reader comes to before the reference."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
MODULES = (
    *("treefold", "treefold.asgi", "treefold.auth", "treefold.cache", "treefold.logging"),
    *("treefold.middleware", "treefold.migrations", "treefold.orm", "treefold.jobs"),
    *("treefold.testing", "treefold_orm.connections"),
    *("treefold_http", "treefold_http.openapi", "treefold_http.reload"),
)
_CODE = re.compile(r"^```.*?^```|`(?:[^`\n]|\n(?!\n))+`", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def words() -> set[str]:
    """The words of all code on the pages: blocks, and what stands between backticks."""
    pages = [page for part in ("start", "guides", "project") for page in (DOCS / part).glob("*.md")]
    code = (found for page in pages for found in _CODE.findall(page.read_text(encoding="utf-8")))
    return {word for text in code for word in re.findall(r"\w+", text)}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_of_a_module_is_on_a_page(module: str, words: set[str]) -> None:
    names = {name for name in importlib.import_module(module).__all__ if name != "__version__"}
    assert sorted(names - words) == []
