"""The README's code, run as it stands, writes the file that the README shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"
CODE, FILE = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_example_writes_the_file_that_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "readme.py"
    script.write_text(CODE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert done.stderr == ""
    path = Path("migrations", "0001_initial.py")
    assert done.stdout == f"{path}\n"
    assert (tmp_path / path).read_text(encoding="utf-8") == FILE
