"""What the sample's extensions import: a change of it restarts the process."""

from __future__ import annotations

from pathlib import Path

from treefold_http._reload.import_graph import parse_imports

SAMPLE = Path(__file__).with_name("sample")


def test_the_extensions_of_the_sample_reach_no_model() -> None:
    pending, reached = ["extensions"], set[str]()
    while pending:
        name = pending.pop()
        file = SAMPLE / f"{name.replace('.', '/')}.py"
        if name not in reached and file.is_file():
            pending += parse_imports(file.read_bytes(), name.rpartition(".")[0])
        reached.add(name)
    assert "Services.refusals" in reached
    assert not [name for name in reached if name.startswith("Models")]
