"""The example of docs/guides/extensions.md, installed as a distribution of somebody else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from serving import write_tree

HANDLER = "async def handler(request):\n    return open('spool/letter').read()\n"


@pytest.fixture
def site(repository: Path, tmp_path: Path) -> Path:
    """The example as pip would install it."""
    text = (repository / "docs/guides/extensions.md").read_text()
    files = dict(re.findall(r"```\w+\n# (\S+)\n(.*?)```", text, re.DOTALL))
    project = tomllib.loads(files["pyproject.toml"])["project"]
    (group, points), *_ = project["entry-points"].items()
    folder = tmp_path / "site"
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    header = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(header)
    lines = [f"{name} = {value}" for name, value in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))
    (folder / "spool_extension.py").write_text(files["spool_extension.py"])
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tree = {"Api/v1/Get.py": HANDLER, "treefold.toml": "installed_extensions = true\n"}
    return write_tree(tmp_path / "project", tree)


def run(root: Path, site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
    return subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env=plain | {"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_doctor_says_what_the_page_shows(root: Path, site: Path, repository: Path) -> None:
    page = (repository / "docs/guides/extensions.md").read_text()
    done = run(root, site, "-m", "treefold", "doctor")
    (line,) = [line for line in done.stdout.splitlines() if " spool " in line]
    assert line in page
    assert done.returncode == 1
    (root / "spool").mkdir()
    done = run(root, site, "-m", "treefold", "doctor")
    assert "ok   spool     outgoing: can be written" in done.stdout


def test_an_error_has_its_explanation(root: Path, site: Path) -> None:
    program = (
        "from treefold import Application\n"
        "from treefold.testing import TestClient\n"
        "app = Application('.', dev=True)\n"
        "with TestClient(app, raise_app_errors=False) as client:\n"
        "    print(client.get('/v1').json()['detail'])\n"
    )
    done = run(root, site, "-c", program)
    assert "The spool is missing: make the folder 'spool'" in done.stdout, done.stderr
    assert "| The spool is missing: make the folder 'spool'" in done.stderr
