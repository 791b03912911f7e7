"""The packages say `Any` rarely, and read private attributes of other objects with a reason."""

import subprocess
import sys
from pathlib import Path

import pytest

QUERY = "packages/orm/src/treefold_orm/_building/query_protocol.py"
INSTANCE = "packages/orm/src/treefold_orm/_fields/meta.py"
TOOLS = ("loose_types", "sizes")
FILES = {
    QUERY: "class Query:\n    _alias: str\n    def _clone(self): ...\n",
    INSTANCE: "class Instance:\n    _row: object = None\n",
    "packages/shop/src/shop/a.py": "\n" * 100,
}


@pytest.fixture
def shop(repository: Path, tmp_path: Path) -> Path:
    """A package beside a copy of the tools, and the two interfaces."""
    tools = {f"tools/{n}.py": (repository / f"tools/{n}.py").read_text() for n in TOOLS}
    for name, text in {**FILES, **tools}.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "packages/shop/src/shop"


def run_tool(shop: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, shop.parents[3] / "tools/loose_types.py", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_any_is_counted_on_a_thousand_lines_of_code(shop: Path) -> None:
    (shop / "b.py").write_text(
        '"""Any text, Any comment."""\n'
        "from typing import Any, cast\n"
        "rows: list[Any] = cast('dict[str, Any]', {})  # Any\n" + "\n" * 97
    )
    outcome = run_tool(shop)
    assert outcome.stdout.splitlines()[1] == (
        "shop          15.0 `Any` on 1,000 lines,   0 private reads"
    )
    (shop / "b.py").write_text("from typing import Any\n" * 9)
    outcome = run_tool(shop)
    assert (outcome.returncode, outcome.stderr) == (
        1,
        "shop: at most 40 `Any` may stand on 1,000 lines\n",
    )


@pytest.mark.parametrize(
    "line",
    [
        "self._own, cls._own, super()._own",
        "other._own",
        "query._alias, query._clone(), instance._row",
        "model._meta",
        "other._prefetches",
        "other.__dict__",
        "other._mine = 1",
    ],
)
def test_what_is_declared_or_has_a_reason_may_be_read(shop: Path, line: str) -> None:
    (shop / "b.py").write_text(
        f"class B:\n    _own = 1\n\n    def call(self, *a):\n        {line}\n"
    )
    outcome = run_tool(shop)
    assert (outcome.returncode, outcome.stderr) == (0, "")


@pytest.mark.parametrize("read", ["other._secret", "getattr(other, '_prefetches')"])
def test_a_read_without_a_reason_is_refused_with_its_place(shop: Path, read: str) -> None:
    (shop / "b.py").write_text(f"def call(other):\n    return {read}\n")
    outcome = run_tool(shop)
    expected = f"shop/b.py:2: {read} reads a private attribute without a reason\n"
    assert (outcome.returncode, outcome.stderr) == (1, expected)
    assert run_tool(shop, "--list", "shop").stdout == f"shop/b.py:2 {read}\n"


def test_the_reads_have_a_ceiling(shop: Path) -> None:
    (shop / "b.py").write_text("def call(other):\n" + "    other._prefetches\n" * 61)
    assert run_tool(shop).stderr == "at most 60 and 300 such reads may stand\n"


def test_it_holds_in_this_repository(repository: Path) -> None:
    command = [sys.executable, repository / "tools/loose_types.py"]
    assert subprocess.run(command, capture_output=True, check=False).stderr == b""
