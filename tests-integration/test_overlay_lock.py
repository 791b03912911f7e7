"""The lock of an API knows what a version answers, not which folder its files are in."""

from pathlib import Path

from treefold import Application
from treefold_contract import write_lock
from treefold_http.contract import build_project_lock
from treefold_scaffold import (
    create_handler,
    flatten_version,
    plan_flatten,
    plan_overlay,
    write_version,
)

SHAPES = """
from dataclasses import dataclass

@dataclass
class Book:
    id: int
    title: str
"""
FILES = {
    "Api/v1/Book/Services/shapes.py": SHAPES,
    "Api/v1/Book/[id]/Get.py": (
        "from ..Services.shapes import Book\n\nasync def handler(id: int) -> Book: ...\n"
    ),
    "Api/v1/Book/[id]/Delete.py": "async def handler(id: int) -> None: ...\n",
    "Api/v1/Book/Post.py": (
        "from .Services.shapes import Book\n\nasync def handler(book: Book) -> list[Book]: ...\n"
    ),
}


def lock(root: Path, copy: Path) -> list[str]:
    """Return the lines of the lock of a project, which is booted under a path of its own."""
    for file in (root / "Api").rglob("*"):
        if file.is_file() and file.suffix != ".pyc":
            place = copy / file.relative_to(root)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(file.read_bytes())
    return write_lock(build_project_lock(Application(copy)).lock).splitlines()


def test_the_lock_of_v1_stays_and_flattening_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    first = lock(root, tmp_path / "1")

    write_version(root, plan_overlay(root, "2"))
    (root / "Api/v2/Book/[id]").mkdir(parents=True)
    (root / "Api/v2/Book/[id]/Delete.gone").touch()
    create_handler(root, "v2/book", method="get")
    (root / "Api/v2/Book/Services").mkdir()
    (root / "Api/v2/Book/Services/shapes.py").write_text(SHAPES.replace("str", "str | None"))
    layered = lock(root, tmp_path / "2")
    added = [line for line in layered if line not in first]
    assert [line for line in first if line not in layered] == []
    assert "  gone    v2" in added
    assert any(line.startswith("GET /v2/book") for line in added)

    flatten_version(root, plan_flatten(root, "2"))
    assert not (root / "Api/v2/version.toml").exists()
    assert lock(root, tmp_path / "3") == layered
