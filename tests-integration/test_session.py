"""The terminal session of `docs/guides/cli.md` runs, command by command, as printed there."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

LIVE = ("treefold dev", "treefold check")
"""Their logs change with what is installed; the commands must run all the same."""


def recorder(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "record_session", repository / "tools/record_session.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["record_session"] = module
    spec.loader.exec_module(module)
    return module


def test_every_recorded_command_still_works(repository: Path) -> None:
    tool = recorder(repository)
    page = (repository / "docs/guides/cli.md").read_text(encoding="utf-8")
    recorded = page.partition(tool.BEGIN)[2].partition(tool.END)[0]
    steps = list(tool.record())
    assert [step.typed for step in steps] == list(tool.STEPS)
    for step in steps:
        assert step.code == (1 if " why " in step.typed else 0), step
        text = tool.page(iter([step])).removeprefix("```console\n").removesuffix("```\n")
        assert (text.splitlines()[0] if step.typed in LIVE else text) in recorded
