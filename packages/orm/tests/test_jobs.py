"""The former place of jobs, which have a package of their own."""

from __future__ import annotations

import importlib
import sys

import pytest


def test_without_their_package_the_names_of_jobs_say_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "treefold_jobs", None)
    monkeypatch.delitem(sys.modules, "treefold_orm.jobs", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install treefold-jobs") as caught:
        importlib.import_module("treefold_orm.jobs")
    assert caught.value.name == "treefold_jobs"
