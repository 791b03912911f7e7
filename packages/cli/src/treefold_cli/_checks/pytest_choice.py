"""A pytest plugin that keeps the tests of a choice; `treefold test` loads it into its pytest.

pytest takes a `[` in a path for the parameters of a test, so files below bracket folders cannot be
named to it. The choice comes as JSON in a variable: files from the root, and tests in them. Without
one, all that is left to do is a project that lies below such a folder itself.
"""

import json
import os
from pathlib import Path

import pytest

VARIABLE = "TREEFOLD_TEST_CHOICE"


class _ChosenTests:
    def __init__(self, root: Path, choice: dict[str, list[str]]) -> None:
        self._choice = {root / name: tests for name, tests in choice.items()}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Ignore files without a chosen test."""
        if collection_path.is_dir() or collection_path.name == "__init__.py":
            return None
        return None if self._find_chosen_tests(collection_path) is not None else True

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Deselect the tests of a file that are not of the choice."""
        kept = [item for item in items if self._is_chosen(item)]
        if dropped := [item for item in items if item not in kept]:
            config.hook.pytest_deselected(items=dropped)
            items[:] = kept

    def _find_chosen_tests(self, path: Path) -> list[str] | None:
        for place in (path, *path.parents):
            if place in self._choice:
                return self._choice[place]
        return None

    def _is_chosen(self, item: pytest.Item) -> bool:
        if (tests := self._find_chosen_tests(item.path)) is None:
            return False
        name = _build_node_id_in_file(item)
        plain = name.partition("[")[0]
        return any(test in ("", name, plain) or plain.startswith(f"{test}::") for test in tests)


def _build_node_id_in_file(item: pytest.Item) -> str:
    nodes = item.listchain()
    module = next(index for index, node in enumerate(nodes) if isinstance(node, pytest.File))
    return "::".join(node.name for node in nodes[module + 1 :])


def pytest_configure(config: pytest.Config) -> None:
    """Take the choice, if there is one, and the project where its own path holds a `[`."""
    if config.args == [os.fspath(config.invocation_params.dir)]:  # nothing is named
        config.args[:] = [os.curdir]
    if choice := os.environ.get(VARIABLE):
        chosen = _ChosenTests(config.invocation_params.dir, json.loads(choice))
        config.pluginmanager.register(chosen, "treefold-choice")
