"""The sessions of docs/guides/differences-from-django.md, run as they stand there."""

import subprocess
import sys
from pathlib import Path

from serving import NewDatabase

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs/guides/differences-from-django.md"


def test_the_sessions_answer_as_the_page_says(new_database: NewDatabase) -> None:
    with new_database() as address:
        command = [sys.executable, HERE / "page_sessions.py", PAGE, address]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 15
