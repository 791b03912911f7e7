"""`tools/mutations.toml`: the code that each mutation takes out is still there."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_every_mutation_finds_its_code() -> None:
    source = ROOT / "packages/orm/src/treefold_orm"
    mutations = tomllib.loads((ROOT / "tools/mutations.toml").read_text("utf-8"))
    lost = [
        name
        for name, mutation in mutations.items()
        if mutation["old"] not in (source / mutation["file"]).read_text("utf-8")
    ]
    assert lost == []
