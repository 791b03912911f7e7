"""`hatch run docs-configurations` finds the configurations of the pages, and what is wrong."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    path = ROOT / "tools/docs/configurations.py"
    spec = importlib.util.spec_from_file_location("configurations", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_configurations_of_the_deployment_page_are_found(
    tool: ModuleType, tmp_path: Path
) -> None:
    found = {
        block.name: (tmp_path / block.page / block.name).read_text(encoding="utf-8")
        for block in tool.configurations(ROOT / "docs", tmp_path)
        if block.page == "guides/deployment.md"
    }
    assert set(found) == {
        "nginx.conf",
        "shop.socket",
        "shop.service",
        "shop-worker.service",
        "Dockerfile",
    }
    assert "\nExecStart=/srv/shop/.venv/bin/treefold serve" in found["shop.service"]


def test_a_missing_program_is_named_and_is_no_success(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "page.md").write_text("```ini\n# one.service\n[Service]\n```\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool.check(tmp_path) == 2
    said = capsys.readouterr().out
    assert said == "not checked  page.md: one.service (systemd-analyze is not installed)\n"


@pytest.mark.parametrize(("says", "code"), [("", 0), ("Unknown key", 1)])
def test_a_complaint_of_a_program_is_a_failure(
    tool: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: str,
    code: int,
) -> None:
    """systemd-analyze ends with 0 for a key that it does not know, and says so."""
    program = tmp_path / "hadolint"
    program.write_text(f"#!/bin/sh\nprintf %s '{says}'\n")
    program.chmod(0o755)
    (tmp_path / "page.md").write_text("```dockerfile\n# Dockerfile\nFROM scratch\n```\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert tool.check(tmp_path) == code
