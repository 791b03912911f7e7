"""The README's code, run as it stands, with nothing but the package installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def test_the_first_example_is_about_ten_lines() -> None:
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(lines) <= 11


def test_the_examples_run_as_they_stand(tmp_path: Path) -> None:
    script = tmp_path / "readme.py"
    script.write_text("\n".join(BLOCKS))
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "[('Ann', 1)]",
        "Hello again Bob",
        "['Hello again'] True",
        "[('HELLO!', 'short'), ('HELLO AGAIN!', 'long')]",
        "{'names': 'Ann, Bob'}",
        "2",
        "['hello-again']",
        "[('Ann', 1), ('Bob', 1)]",
        "[('Trees', 0), ('Old oak trees', 1)]",
        "['Old oak trees'] 2",
    ]
