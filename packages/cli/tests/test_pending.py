"""What extensions call missing: said by `dev`, `check --strict`, `doctor` and `serve`."""

import json
import re
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Executable = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., Any]

STEPS = """
from pathlib import Path
from types import SimpleNamespace

class Steps:
    '''What the file `wanted` lists and the file `done` does not is missing.'''

    def setup(self, app):
        self.root = Path(app.root)

    def read(self, name):
        file = self.root / name
        return file.read_text().split() if file.exists() else []

    def pending(self):
        if (self.root / "away").exists():
            raise RuntimeError("the store is away")
        return [
            SimpleNamespace(text=f"step {name} is missing", advice="treefold step")
            for name in self.read("wanted")
            if name not in self.read("done")
        ]

    def apply(self):
        made = [one.text.split()[1] for one in self.pending()]
        if "bad" in made:
            raise RuntimeError("step bad cannot be made")
        with open(self.root / "done", "a") as file:
            file.write("".join(f"{name}\\n" for name in made))
        return [f"made step {name}" for name in made]

    async def shutdown(self):
        with open(self.root / "released", "a") as file:
            file.write("x")
"""


@pytest.fixture
def root(project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that two steps are missing in, beside an installed extension that knows them."""
    site = tmp_path / "site"
    info = site / "steps-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steps\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[treefold.extensions]\nsteps = steps_of_mine:Steps\n")
    (site / "steps_of_mine.py").write_text(STEPS)
    monkeypatch.setenv("PYTHONPATH", str(site))
    root = project("v1/Health/Get.py")
    (root / "treefold.toml").write_text("installed_extensions = true\n")
    (root / "wanted").write_text("one\ntwo\n")
    return root


ONE_LINE = (
    "pending: step one is missing; step two is missing"
    " (run 'treefold step', or start with 'treefold dev --migrate')"
)


def test_dev_says_it_in_one_line_before_it_serves(start: Start, root: Path):
    server = start("dev", cwd=root).started()
    assert server.stop() == 0
    assert server.output.count("pending:") == 1
    assert server.output.index(ONE_LINE) < server.output.index("serving on")
    assert not (root / "done").exists()


def test_dev_is_silent_where_nothing_is_missing(start: Start, root: Path):
    (root / "wanted").unlink()
    server = start("dev", cwd=root).started()
    assert server.stop() == 0
    assert "pending" not in server.output


def test_dev_applies_it_on_request(start: Start, root: Path):
    server = start("dev", "--migrate", cwd=root).started()
    assert server.stop() == 0
    assert "made step one" in server.output
    assert "pending" not in server.output
    assert (root / "done").read_text().split() == ["one", "two"]
    assert (root / "released").read_text() == "xx"  # after the look, and at the end


def test_dev_says_it_again_after_a_change_that_matters(start: Start, root: Path):
    pytest.importorskip("watchfiles")
    server = start("dev", cwd=root).started()
    server.wait_for("watching ")
    (root / "wanted").write_text("one\ntwo\nthree\n")
    (root / "Models").mkdir()
    (root / "Models" / "shop.py").write_text("")
    server.wait_for("pending: step one is missing; step two is missing; step three is missing ")
    (root / "done").write_text("one two three")
    (root / "Models" / "shop.py").write_text("x = 1\n")
    server.wait_for("nothing is pending any more")
    assert server.stop() == 0


def test_dev_applies_what_a_change_brings(start: Start, root: Path):
    pytest.importorskip("watchfiles")
    server = start("dev", "--migrate", cwd=root).started()
    server.wait_for("watching ")
    (root / "wanted").write_text("one two three")
    (root / "migrations").mkdir()
    (root / "migrations" / "0003_three.py").write_text("")
    server.wait_for("made step three")
    (root / "wanted").write_text("one two three bad")
    (root / "migrations" / "0004_bad.py").write_text("")
    server.wait_for("not applied: step bad cannot be made")
    with urllib.request.urlopen(f"{server.url}/v1/health", timeout=20) as answer:
        assert "Health" in json.load(answer)["file"]
    assert server.stop() == 0


def test_dev_that_cannot_apply_does_not_start(executable: Executable, root: Path):
    (root / "wanted").write_text("bad")
    done = executable("dev", "--migrate", "--port", "0", cwd=root, PYTHONPATH=path(root))
    assert done.returncode == 1
    assert "Error: step bad cannot be made" in done.stderr


def test_a_store_that_is_away_keeps_nothing_from_serving(start: Start, root: Path):
    (root / "away").touch()
    server = start("dev", cwd=root).started()
    assert server.stop() == 0
    assert "pending: what is pending cannot be told: the store is away\n" in server.output


def path(root: Path) -> str:
    return str(root.parent / "site")


def test_check_says_it_with_strict_only(executable: Executable, root: Path):
    plain = executable("check", cwd=root, PYTHONPATH=path(root))
    assert (plain.returncode, "missing" in plain.stdout) == (0, False)
    strict = executable("check", "--strict", cwd=root, PYTHONPATH=path(root))
    assert strict.returncode == 1
    assert "[lint] step one is missing (treefold step)" in strict.stdout.splitlines()
    report = executable("check", "--strict", "--format", "json", cwd=root, PYTHONPATH=path(root))
    codes = [problem["code"] for problem in json.loads(report.stdout)["problems"]]
    assert codes == ["pending", "pending"]


def test_doctor_warns_of_it(executable: Executable, root: Path):
    done = executable("doctor", cwd=root, PYTHONPATH=path(root))
    assert "warn pending   step one is missing  (treefold step)" in done.stdout.splitlines()
    (root / "Models").mkdir()
    (root / "Models" / "shop.py").write_text("1 / 0\n")
    done = executable("doctor", cwd=root, PYTHONPATH=path(root))
    assert re.search(r"fail models    Models/shop\.py cannot be used: ZeroDivision", done.stdout)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_serve_refuses_to_start_behind_on_request(start: Start, root: Path, workers: str):
    words = ["serve", "--workers", workers]
    refused = start(*words, "--require-migrated", cwd=root)
    output, _ = refused.process.communicate(timeout=60)
    assert refused.process.returncode == 1
    assert output.splitlines()[-3:] == [
        "pending: step one is missing (treefold step)",
        "pending: step two is missing (treefold step)",
        "Error: Not started: 2 pending, listed above; apply them first",
    ]
    (root / "done").write_text("one two")
    current = start(*words, "--require-migrated", cwd=root).started()
    for _ in range(int(workers) if workers != "1" else 0):
        current.wait_for("booted in")
    assert current.stop() == 0


def test_serve_never_applies_anything(start: Start, root: Path):
    server = start("serve", cwd=root).started()
    assert server.stop() == 0
    assert not (root / "done").exists()
