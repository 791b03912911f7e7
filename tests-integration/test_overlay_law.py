"""A version that inherits answers as the full copy with the same changes would.

Random projects, each beside its copies on the disk: every place and method gives the same bytes.
`hatch run overlays` runs 300 of them.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from overlay_trees.copies import copy_project
from overlay_trees.random_tree import RandomTree, draw_tree

from treefold import Application, TestClient
from treefold_http import BootError
from treefold_http.openapi import openapi_document
from treefold_router import METHODS, RouterError, RouteTable

TREES = int(os.environ.get("TREEFOLD_OVERLAY_TREES", "30"))
VALUES = ("x1", "me")


@pytest.fixture(params=range(TREES))
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> RandomTree:
    return draw_tree(tmp_path / "layers" / "shop", request.param)


def test_a_version_that_inherits_answers_as_its_copy(tree: RandomTree, tmp_path: Path) -> None:
    if not tree.is_valid:
        with pytest.raises(RouterError, match=r"v77|inherit from each other"):
            RouteTable.scan(tree.root / "Api")
        with pytest.raises(BootError, match=r"v77|inherit from each other"):
            Application(tree.root).boot()
        return
    copies, plain = tmp_path / "copies" / "shop", tmp_path / "plain" / "shop"
    copy_project(tree.root, copies, tree.bases, tree.unserved)
    for root in (copies, plain):  # where no version is served
        (root / "Api").mkdir(parents=True, exist_ok=True)
    copy_project(tree.root, plain, {}, tree.unserved | tree.bases.keys())
    layers = RouteTable.scan(tree.root / "Api")
    flat = RouteTable.scan(copies / "Api")

    assert describe(layers) == describe(flat)
    assert [find_layers(layers, route.effective_file) for route in layers.routes] == [
        (copies / "Api" / route.file).read_text() for route in flat.routes
    ]

    paths = sorted({path for table in (layers, flat) for path in yield_paths(table)})
    answers = ask(tree.root, paths)
    assert answers == ask(copies, paths)
    alone = ask(plain, paths)
    own = {version for version in tree.versions if version not in tree.bases}
    assert pick(answers, own) == pick(alone, own)


def describe(table: RouteTable) -> list[object]:
    routes = [(r.method, r.version, r.template, r.parameters) for r in table.routes]
    return [routes, table.versions, table.latest]


def find_layers(table: RouteTable, file: str) -> str:
    real = table.layers.files.get(file, file)
    return (table.root / real).read_text()


def yield_paths(table: RouteTable) -> Iterator[str]:
    """Yield every place of a table, the places above it and one below it."""
    for version in ("v1", "v2", "v3", "v4", "v77"):
        yield f"/{version}"
    for route in table.routes:
        for value in VALUES:
            path = ""
            for segment in route.template.split("/")[1:]:
                path += "/" + (value if segment.startswith("{") else segment)
                yield path
            yield f"{path}/deeper"


def ask(root: Path, paths: Iterable[str]) -> dict[tuple[str, str], object]:
    """Return status, fields and body of every method at every path."""
    answers: dict[tuple[str, str], object] = {}
    app = Application(root, default_version="latest")
    with TestClient(app) as client:
        for version in app.table.versions:
            answers["OPENAPI", f"/{version}"] = json.dumps(openapi_document(app, version))
        for path in paths:
            for method in METHODS:
                answer = client.request(method, path, headers={"x-request-id": "one"})
                fields = sorted(answer.headers.items())
                answers[method, path] = (answer.status_code, fields, answer.content)
    return answers


def pick(
    answers: dict[tuple[str, str], object], versions: set[str]
) -> dict[tuple[str, str], object]:
    return {key: one for key, one in answers.items() if key[1].split("/")[1] in versions}


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_counters_in_services_of_three_versions_stay_apart(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "Api/v1/Book/Services/shelf.py": (
                "n = [0]\ndef hit():\n    n[0] += 1\n    return n[0]\n"
            ),
            "Api/v1/Book/Get.py": (
                "from .Services.shelf import hit\ndef handler():\n    return [hit()]\n"
            ),
            "Api/v2/version.toml": 'inherits = "v1"',
            "Api/v3/version.toml": 'inherits = "v2"',
        },
    )
    with TestClient(Application(tmp_path)) as client:
        counts = [
            client.get(f"/{version}/book").json()
            for version in ("v1", "v1", "v1", "v2", "v3", "v3", "v2", "v1")
        ]
    assert counts == [[1], [2], [3], [1], [1], [2], [2], [4]]
