"""The sample against its own document: schemathesis sends what it allows and what it does not.

Statuses, media types, bodies and credentials of every answer are held to the document. That this
can fail is tested first, over an application that does not keep its word.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from document_checks import discrepancies
from serving import migrate, write_tree

from treefold_http import Application

RULES = (
    "POST /v1/order",
    "POST /v1/user",
    "GET /v1/order/{id}",
    "GET /v1/user/{id}",
    "DELETE /v1/user/{id}",
    "GET /v2/book",
)
"""Operations with a rule that no schema says, and a 422 for it: a basket must not be empty, a user
has what the model takes as a name and an address, an id has 64 bits, and a cursor is one of a page.
The sample keeps to the standard library, whose types have no word for any of them; pydantic's would
have."""


@pytest.fixture
def serve_in_process() -> Iterator[Callable[[Path], Application]]:
    """An application with its documents on; its threads end after the test."""
    made: list[Application] = []

    def make(root: Path) -> Application:
        made.append(Application(root, dev=True))
        return made[-1]

    yield make
    for app in made:
        app.threads.shutdown()


LIES = {
    "Type": "async def handler(request) -> dict[str, int]:\n    return {'count': 'many'}\n",
    "Status": "async def handler(request) -> dict[str, int]:\n    return {}, 201\n",
    "Media": "async def handler(request) -> dict[str, int]:\n    return 'text'\n",
    "Crash": "async def handler(request) -> None:\n    raise ValueError('no')\n",
    "Hidden": "async def handler(q: int) -> None:\n    if q > 3: raise OverflowError\n",
    "Open": "from treefold import secured\n@secured('bearer')\n"
    "async def handler(request) -> None: ...\n",
    "Honest": "async def handler(q: int = 0) -> dict[str, int]:\n    return {'q': q}\n",
}


def test_an_application_that_does_not_keep_its_word_is_caught(
    tmp_path: Path, serve_in_process: Callable[[Path], Application]
) -> None:
    root = write_tree(tmp_path, {f"Api/v1/{name}/Get.py": text for name, text in LIES.items()})
    found = discrepancies(serve_in_process(root), Authorization="Bearer x")

    assert sorted(found) == sorted(f"GET /v1/{name.lower()}" for name in LIES if name != "Honest")


def test_the_sample_does_what_its_document_says(
    tmp_path: Path,
    repository: Path,
    serve_in_process: Callable[[Path], Application],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = tmp_path / "sample"
    shutil.copytree(repository / "tests-integration" / "sample", root)
    database = f"sqlite:///{tmp_path}/shop.sqlite3"
    migrate(root, database)
    monkeypatch.setenv("TREEFOLD_DATABASE_URL", database)

    assert (
        discrepancies(serve_in_process(root), rules=RULES, examples=8, Authorization="Bearer ada")
        == {}
    )
