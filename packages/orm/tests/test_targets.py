"""Targets of relations that are given as text: which model they mean, and when nobody can know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOP = "class Tag(Model):\n    shop = fields.TextField()\n"
BLOG = (
    "class Tag(Model):\n    blog = fields.TextField()\n    class Meta:\n        table = 'blogtag'\n"
)


def post(target: str) -> str:
    return f"class Post(Model):\n    tag = fields.ForeignKey({target!r}, related_name='posts')\n"


def told(folder: Path, modules: dict[str, str], *order: str) -> str:
    """Import modules in an order, in a process of their own; return the target or the error."""
    for name, source in modules.items():
        text = f"from treefold_orm import Model, fields\n{source}"
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    script = (
        "from treefold_orm import ModelError\n"
        "try:\n"
        f"    import {', '.join(order)}\n"
        "    from writing import Post\n"
        "    print(Post._meta.relations['tag'].target.model.__module__)\n"
        "except ModelError as error:\n"
        "    print(error)\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


AMBIGUOUS = (
    "Post points to 'Tag', which could be blog.Tag or shop.Tag: write the whole name, or give the "
    "class"
)

TOLD: list[tuple[dict[str, str], tuple[str, ...], str]] = [
    # the one there is, wherever it is defined
    ({"shop": SHOP, "writing": post("Tag")}, ("shop", "writing"), "shop"),
    ({"shop": SHOP, "writing": post("Tag")}, ("writing", "shop"), "shop"),
    # several: the order of definition never decides
    ({"shop": SHOP, "blog": BLOG, "writing": post("Tag")}, ("shop", "blog", "writing"), AMBIGUOUS),
    ({"shop": SHOP, "blog": BLOG, "writing": post("Tag")}, ("shop", "writing", "blog"), AMBIGUOUS),
    ({"shop": SHOP, "blog": BLOG, "writing": post("Tag")}, ("writing", "shop", "blog"), AMBIGUOUS),
    # the module's own comes first
    ({"shop": SHOP, "writing": BLOG + post("Tag")}, ("shop", "writing"), "writing"),
    ({"shop": SHOP, "writing": post("Tag") + BLOG}, ("writing", "shop"), "writing"),
    (
        {"shop": SHOP, "writing": post("Tag") + BLOG},
        ("shop", "writing"),
        "Post points to 'Tag', which could be shop.Tag or writing.Tag: write the whole name, or "
        "give the class",
    ),
    # the whole name is the way out
    (
        {"shop": SHOP, "blog": BLOG, "writing": post("blog.Tag")},
        ("shop", "writing", "blog"),
        "blog",
    ),
    (
        {"shop": SHOP, "blog": BLOG, "writing": post("shop.Tag")},
        ("blog", "writing", "shop"),
        "shop",
    ),
    ({"shop": SHOP, "writing": post("writing.Tag") + BLOG}, ("shop", "writing"), "writing"),
]


@pytest.mark.parametrize(("modules", "order", "wanted"), TOLD, ids=range(len(TOLD)))
def test_a_text_means_one_model_or_is_refused(
    tmp_path: Path, modules: dict[str, str], order: tuple[str, ...], wanted: str
) -> None:
    assert told(tmp_path, modules, *order) == wanted
