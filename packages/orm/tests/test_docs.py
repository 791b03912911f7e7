"""The code of the pages about models, queries and expressions, run as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs" / "guides"


@pytest.mark.parametrize(
    ("page", "count"), [("models.md", 6), ("queries.md", 9), ("expressions.md", 2)]
)
def test_the_examples_of_a_page_run_as_they_stand(tmp_path: Path, page: str, count: int) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    script = tmp_path / "page.py"
    script.write_text("\n".join(blocks).replace("treefold.orm", "treefold_orm"))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(blocks) == count
