"""The table of `docs/guides/contract-rules.md` is that of the code."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def load_tool() -> ModuleType:
    path = ROOT / "tools/docs/contract_rules.py"
    spec = importlib.util.spec_from_file_location("contract_rules_page", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_rules_is_current() -> None:
    """`python tools/docs/contract_rules.py --write` writes it."""
    tool = load_tool()
    page = tool.PAGE.read_text(encoding="utf-8")
    assert page.partition(tool.BEGIN)[2].partition(tool.END)[0].strip() == tool.table()
