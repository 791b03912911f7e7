"""The sample against its own document: schemathesis sends what it allows and what it does not.

Statuses, media types, bodies and credentials of every answer are held to the document. That this
can fail is tested first, over an application that does not keep its word.
"""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from serving import migrate, write_tree

from treefold_http import Application

schemathesis: Any = importlib.import_module("schemathesis")

EXAMPLES = 10

RULES = ("POST /v1/order", "POST /v1/user")
"""Operations with a rule that no schema says, and a 422 for it: a basket must not be empty, and a
user has what the model takes as a name and an address. The sample keeps to the standard library,
whose types have no word for either; pydantic's would have."""

FRAMING = {"host", "content-length", "transfer-encoding"}
"""Fields that no document speaks of: what is wrong with them is no message of HTTP, and a 400. They
are made up at times, of words that stand in the modules that happen to be loaded."""


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


def discrepancies(app: Application, **headers: str) -> dict[str, str]:
    """What each operation did that the document does not say."""
    found: dict[str, str] = {}
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    for result in schema.get_all_operations():
        operation = result.ok()
        try:
            for mode in schemathesis.GenerationMode:
                _check(operation, mode, headers)
        except (Exception, BaseExceptionGroup) as error:
            found[operation.label] = str(error)
    return found


def _check(operation: Any, mode: Any, headers: dict[str, str]) -> None:
    """Send what fits the document, or what does not, and hold the answers to it."""

    accepted = schemathesis.checks.CHECKS.get_one("positive_data_acceptance")
    excluded = [accepted] if operation.label in RULES else []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        phases=[Phase.explicit, Phase.generate],
    )
    @given(operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        assume(not FRAMING & {name.lower() for name in case.headers or ()})
        case.call_and_validate(headers=headers, excluded_checks=excluded)

    with suppress(Unsatisfiable):  # nothing that does not fit: no input at all
        check()


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

    assert discrepancies(serve_in_process(root), Authorization="Bearer ada") == {}
