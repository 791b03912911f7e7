"""Facts of handlers that a test writes, as the text of a lock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import Any

import pytest

from treefold_contract import read_lock, write_lock
from treefold_http import Application
from treefold_http.contract import build_project_lock


@pytest.fixture
def lock(project: Callable[..., Application]) -> Callable[..., str]:
    """The lock of files, or of one handler, which reads back as it was written."""

    def make(given: str | Mapping[str, str], file: str = "Api/v1/X/Get.py", **options: Any) -> str:
        if isinstance(given, str):
            given = {file: f"from treefold_http import *\n{dedent(given)}"}
        text = write_lock(build_project_lock(project(given, **options)).lock)
        assert write_lock(read_lock(text)) == text
        return text

    return make


@pytest.fixture
def facts(lock: Callable[..., str]) -> Callable[..., list[str]]:
    """The lines of the only route of one handler, without blanks at their ends."""

    def make(text: str, **options: Any) -> list[str]:
        blocks = lock(text, **options).split("\n\n")
        (block,) = [block for block in blocks if " /v1/" in block.split("\n")[0]]
        return [" ".join(line.split()) for line in block.strip().split("\n")[1:]]

    return make
