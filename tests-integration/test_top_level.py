"""What a visitor of the repository sees first is short, and stays so."""

import subprocess
from pathlib import Path

TOP_LEVEL = {
    *(".ci", ".git-blame-ignore-revs", ".github", ".gitignore", ".importlinter"),
    *(".pytest.toml", ".ruff.toml"),
    *("LICENSE", "README.md", "docs", "hatch.toml", "packages", "tests-integration", "tools"),
}


def test_the_top_level_holds_these_names(repository: Path) -> None:
    assert {path.name for path in repository.iterdir()} >= TOP_LEVEL
    if (repository / ".git").exists():  # beside them, a folder has caches and a user's own files
        command = ["git", "ls-tree", "--name-only", "HEAD"]
        listed = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
        assert set(listed.stdout.split()) == TOP_LEVEL
