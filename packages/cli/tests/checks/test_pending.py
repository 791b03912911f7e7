"""What extensions call missing: said by `dev`, `check --strict`, `doctor` and `serve`."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Executable = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., Any]

ONE_LINE = (
    "pending: step one is missing; step two is missing"
    " (run 'treefold step', or start with 'treefold dev --migrate')"
)


def test_dev_says_it_in_one_line_before_it_serves(start: Start, behind: Path):
    server = start("dev", cwd=behind).started()
    assert server.stop() == 0
    assert server.output.count("pending:") == 1
    assert server.output.index(ONE_LINE) < server.output.index("serving on")
    assert not (behind / "done").exists()


def test_dev_is_silent_where_nothing_is_missing(start: Start, behind: Path):
    (behind / "wanted").unlink()
    server = start("dev", cwd=behind).started()
    assert server.stop() == 0
    assert "pending" not in server.output


def test_dev_applies_it_on_request(start: Start, behind: Path):
    server = start("dev", "--migrate", cwd=behind).started()
    assert server.stop() == 0
    assert "made step one" in server.output
    assert "pending" not in server.output
    assert (behind / "done").read_text().split() == ["one", "two"]
    assert (behind / "released").read_text() == "xx"  # after the look, and at the end


def test_dev_that_cannot_apply_does_not_start(forked: Executable, behind: Path):
    (behind / "wanted").write_text("bad")
    done = forked("dev", "--migrate", "--port", "0", cwd=behind, PYTHONPATH=path(behind))
    assert done.returncode == 1
    assert "Error: step bad cannot be made" in done.stderr


def test_a_store_that_is_away_keeps_nothing_from_serving(start: Start, behind: Path):
    (behind / "away").touch()
    server = start("dev", cwd=behind).started()
    assert server.stop() == 0
    assert "pending: pending steps cannot be read: the store is away\n" in server.output


def path(behind: Path) -> str:
    return str(behind.parent / "site")


def test_check_says_it_with_strict_only(forked: Executable, behind: Path):
    plain = forked("check", cwd=behind, PYTHONPATH=path(behind))
    assert (plain.returncode, "missing" in plain.stdout) == (0, False)
    strict = forked("check", "--strict", cwd=behind, PYTHONPATH=path(behind))
    assert strict.returncode == 1
    assert "[lint] step one is missing (treefold step)" in strict.stdout.splitlines()
    report = forked("check", "--strict", "--format", "json", cwd=behind, PYTHONPATH=path(behind))
    codes = [problem["code"] for problem in json.loads(report.stdout)["problems"]]
    assert codes == ["pending", "pending"]


def test_doctor_warns_of_it(forked: Executable, behind: Path):
    done = forked("doctor", cwd=behind, PYTHONPATH=path(behind))
    assert "warn pending   step one is missing  (treefold step)" in done.stdout.splitlines()
    (behind / "Models").mkdir()
    (behind / "Models" / "shop.py").write_text("1 / 0\n")
    done = forked("doctor", cwd=behind, PYTHONPATH=path(behind))
    assert re.search(r"fail models    Models/shop\.py cannot be used: ZeroDivision", done.stdout)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_serve_refuses_to_start_behind_on_request(start: Start, behind: Path, workers: str):
    words = ["serve", "--workers", workers]
    refused = start(*words, "--require-migrated", cwd=behind)
    output, _ = refused.process.communicate(timeout=60)
    assert refused.process.returncode == 1
    assert output.splitlines()[-3:] == [
        "pending: step one is missing (treefold step)",
        "pending: step two is missing (treefold step)",
        "Error: Not started: 2 pending, listed above; apply them first",
    ]
    (behind / "done").write_text("one two")
    current = start(*words, "--require-migrated", cwd=behind).started()
    for _ in range(int(workers) if workers != "1" else 0):
        current.wait_for("booted in")
    assert current.stop() == 0


def test_serve_never_applies_anything(start: Start, behind: Path):
    server = start("serve", cwd=behind).started()
    assert server.stop() == 0
    assert not (behind / "done").exists()
