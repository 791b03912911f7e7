"""`help(Recorder)` names what it records."""

from __future__ import annotations

import pydoc

import pytest

from treefold_orm._runtime.recorder import Recorder


@pytest.mark.parametrize("name", ["events", "duration", "repeats", "on_repeat"])
def test_help_of_a_recorder_names_its_attributes(name: str) -> None:
    text = pydoc.plain(pydoc.render_doc(Recorder))

    assert f"{name}: " in text
