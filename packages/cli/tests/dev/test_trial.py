"""The boot in another process, of a project of which a file does not load here."""

import asyncio
import time
from pathlib import Path

import pytest

from treefold_cli._dev.trial import find_retryable_files, loads_in_new_process
from treefold_http import BrokenFile

X = "Api/v1/X/Get.py"


@pytest.mark.parametrize(
    ("source", "known", "loads"),
    [
        ("def handler(): return 1\n", [], True),
        ("1 / 0\n", [], False),
        ("1 / 0\n", [X], True),
        ("import os\nos._exit(0)\n", [], False),
        ("import time\ntime.sleep(60)\n", [], False),
    ],
    ids=["loads", "raises", "raises as before", "ends the process", "hangs"],
)
def test_a_project_is_booted_in_another_process(
    tmp_path: Path, source: str, known: list[str], loads: bool
):
    (tmp_path / X).parent.mkdir(parents=True)
    (tmp_path / X).write_text(source)
    limit = 2.0 if "sleep" in source else 60.0
    started = time.monotonic()
    assert asyncio.run(loads_in_new_process(tmp_path, known, timeout=limit)) is loads
    assert time.monotonic() - started < 50


def test_an_error_of_the_file_itself_is_not_tried():
    def broken(error: str, *, kept: bool = True) -> BrokenFile:
        return BrokenFile("v1/X/Get.py", error, "", cause=X, kept=kept)

    assert find_retryable_files([broken("ValueError: Duplicated timeseries")]) == [X]
    never_good = [broken("ValueError: never good", kept=False)]
    assert find_retryable_files(never_good) == []
    assert find_retryable_files(never_good, healed_files=[X]) == [X]
    for error in ("SyntaxError: '(' was never closed", "NameError: name 'a' is not defined"):
        assert find_retryable_files([broken("ValueError: x"), broken(error)]) == []
