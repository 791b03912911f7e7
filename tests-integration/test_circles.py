"""No more than three files of a package import each other in a circle, types counted."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def package(repository: Path, tmp_path: Path) -> Path:
    """A package of four files that import the next one, beside a copy of the tool."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/circles.py").write_text((repository / "tools/circles.py").read_text())
    package = tmp_path / "packages/shop/src/shop"
    (package / "_stock").mkdir(parents=True)
    for path, text in {
        "__init__.py": "",
        "a.py": "import shop._stock.b\n",
        "_stock/__init__.py": "",
        "_stock/b.py": "from shop._stock import c\n",
        "_stock/c.py": "def later():\n    from shop.d import count\n",
        "d.py": "",
    }.items():
        (package / path).write_text(text)
    return package


def run_circles(package: Path, *options: str) -> subprocess.CompletedProcess[str]:
    tool = package.parents[3] / "tools/circles.py"
    command = [sys.executable, tool, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_chain_of_imports_is_no_circle(package: Path) -> None:
    outcome = run_circles(package, "--all")
    assert (outcome.returncode, outcome.stderr) == (0, "")


@pytest.mark.parametrize(
    "closing",
    [
        "from shop.a import count",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import shop.a",
        "def later():\n    from shop import a",
    ],
)
def test_four_files_in_a_circle_are_refused_and_named(package: Path, closing: str) -> None:
    (package / "d.py").write_text(closing)
    outcome = run_circles(package)
    assert outcome.returncode == 1
    assert outcome.stderr.splitlines() == [
        "4 files import each other, and at most 3 may:",
        "  shop._stock.b imports shop._stock.c",
        "  shop._stock.c imports shop.d",
        "  shop.a imports shop._stock.b",
        "  shop.d imports shop.a",
    ]


def test_three_files_may_and_are_shown_when_asked_for(package: Path) -> None:
    (package / "d.py").write_text("import shop._stock.b")
    assert run_circles(package).returncode == 0
    shown = run_circles(package, "--all")
    assert (shown.returncode, shown.stderr.splitlines()[0]) == (0, "3 files import each other:")


def test_it_holds_in_this_repository(repository: Path) -> None:
    command = [sys.executable, repository / "tools/circles.py"]
    assert subprocess.run(command, capture_output=True, check=False).stderr == b""
