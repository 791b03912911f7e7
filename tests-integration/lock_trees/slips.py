"""Pairs of small trees: an API, and the same after a change that was meant to be harmless.

Half of them are harmless; the others hold the slips that one large user of versions has made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Tree = Mapping[str, str]

SHAPES = """
from dataclasses import dataclass
from typing import Literal


@dataclass
class {record}:
    id: int
    state: Literal["open", "paid"]
    note: str | None = None
"""
GET = """
from treefold import NotFound
from Services.shapes_{version} import {record}


async def handler(id: int, full: bool = False) -> {record}:
    raise NotFound("There is none")
"""
LIST = """
from treefold import Depends
from Services.access import read_tenant
from Services.shapes_{version} import {record}


async def handler(limit: int = 20, tenant: str = Depends(read_tenant)) -> list[{record}]:
    return []
"""
POST = """
from typing import Literal

from Services.shapes_{version} import {record}


async def handler(new: {record}) -> tuple[{record}, Literal[201]]:
    return new, 201
"""
ACCESS = """
from typing import Annotated

from treefold import Header


async def read_tenant(x_trace: Annotated[str, Header()] = "") -> str:
    return x_trace
"""
NAMES = ("order", "invoice", "ticket", "parcel", "booking")


@dataclass(frozen=True, slots=True)
class Pair:
    """Two trees.

    Attributes:
        name: what was changed.
        place: where the finding must be; empty for a harmless change.
        rule, verdict: the finding.
    """

    name: str
    old: Tree
    new: Tree
    place: str = ""
    rule: str = ""
    verdict: str = ""


def write_tree(name: str) -> dict[str, str]:
    """Return an API of two versions with a list, an item and a way to add one."""
    record, folder = name.capitalize(), f"Api/{{version}}/{name.capitalize()}"
    files = {"treefold.toml": "response_model = true\n", "Services/access.py": ACCESS}
    for version in ("v1", "v2"):
        words = {"version": version, "record": record}
        here = folder.format(version=version)
        files[f"Services/shapes_{version}.py"] = SHAPES.format(**words)
        files[f"{here}/Get.py"] = LIST.format(**words)
        files[f"{here}/Post.py"] = POST.format(**words)
        files[f"{here}/[id]/Get.py"] = GET.format(**words)
    return files


def replace(tree: Tree, file: str, old: str, new: str) -> dict[str, str]:
    """Return a tree with another text in one file; raises if the text is not there."""
    if old not in tree[file]:
        raise LookupError(f"{file} has no {old!r}")
    return {**tree, file: tree[file].replace(old, new)}


def list_slips() -> list[Pair]:
    """Return the six slips, each in five trees."""
    return [pair for name in NAMES for pair in _write_slips(name)]


def _write_slips(name: str) -> list[Pair]:
    tree, folder = write_tree(name), f"Api/v1/{name.capitalize()}"
    shapes, item = "Services/shapes_v1.py", f"GET /v1/{name}/{{id}}"
    listed = f"GET /v1/{name}"
    renamed = {
        path.replace(f"{folder}/[id]", f"{folder}/Item/[id]"): text for path, text in tree.items()
    }
    return [
        Pair(
            "member added to an answer of an old version",
            tree,
            replace(tree, shapes, "    note:", "    currency: str = 'EUR'\n    note:"),
            f"{listed} 200 json [].currency",
            "old-version-changed",
            "warning",
        ),
        Pair(
            "type changed in place in an old version",
            tree,
            replace(tree, shapes, "    id: int", "    id: str"),
            f"{listed} 200 json [].id",
            "scalar-changed",
            "breaking",
        ),
        Pair(
            "default changed",
            tree,
            replace(tree, f"{folder}/Get.py", "limit: int = 20", "limit: int = 50"),
            f"{listed} query limit",
            "param-default-changed",
            "warning",
        ),
        Pair(
            "value of a choice sent to old clients",
            tree,
            replace(tree, shapes, '"paid"]', '"paid", "refunded"]'),
            f"{listed} 200 json [].state",
            "enum-value-added",
            "breaking",
        ),
        Pair("route renamed by a cherry-pick", tree, renamed, item, "route-removed", "breaking"),
        Pair(
            "header required by a dependency",
            tree,
            replace(tree, "Services/access.py", 'Header()] = ""', "Header()]"),
            f"{listed} header x-trace",
            "param-required",
            "breaking",
        ),
    ]


def list_harmless() -> list[Pair]:
    """Return six harmless changes, each in five trees."""
    return [pair for name in NAMES for pair in _write_harmless(name)]


def _write_harmless(name: str) -> list[Pair]:
    tree, record = write_tree(name), name.capitalize()
    folder, shapes = f"Api/v2/{record}", "Services/shapes_v2.py"
    items = f"{folder}/Get.py"
    added = POST.format(version="v2", record=record)
    moved = f"from Services.kinds import {record}\n\n__all__ = [{record!r}]\n"
    return [
        Pair("route added", tree, {**tree, f"{folder}/Archive/Post.py": added}),
        Pair(
            "parameter added that may be left out",
            tree,
            replace(tree, items, "limit: int = 20", "limit: int = 20, page: int = 1"),
        ),
        Pair(
            "type moved to another module",
            tree,
            {**tree, "Services/kinds.py": tree[shapes], shapes: moved},
        ),
        Pair(
            "error added",
            tree,
            replace(
                replace(
                    tree, f"{folder}/[id]/Get.py", "import NotFound", "import Conflict, NotFound"
                ),
                f"{folder}/[id]/Get.py",
                "    raise",
                '    if full:\n        raise Conflict("It is in use")\n    raise',
            ),
        ),
        Pair(
            "member of a body may be left out",
            tree,
            replace(
                tree,
                shapes,
                "    note: str | None",
                "    tags: tuple[str, ...] = ()\n    note: str | None",
            ),
        ),
        Pair(
            "texts and names inside of functions",
            tree,
            replace(tree, f"{folder}/[id]/Get.py", "There is none", "Nothing has this number"),
        ),
    ]
