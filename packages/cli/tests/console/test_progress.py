"""The word while something takes long: after a second, on a terminal, and gone afterwards."""

import os
import pty
import re
import subprocess
import sys

import pytest

from treefold_cli._console.progress import show_progress

PROGRAM = """\
import threading
from treefold_cli._console import progress
progress.STEP_SECONDS = {patience}
with progress.show_progress("Comparing"):
    threading.Event().wait({seconds})
"""


def on_a_terminal(program: str) -> str:
    leader, follower = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", program], stderr=follower) as child:
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 1000):
                shown += chunk
        except OSError:  # Linux says so at the end of a terminal
            pass
        assert child.wait() == 0
    os.close(leader)
    return shown.decode()


def test_a_long_block_is_told_and_wiped_away():
    shown = on_a_terminal(PROGRAM.format(patience=0.02, seconds=0.5))
    assert shown.startswith("Comparing ... 1 s\rComparing ... 2 s\r")
    assert shown.endswith(" s\r\x1b[K")


def test_what_the_block_prints_takes_the_place_of_the_word():
    program = PROGRAM.format(patience=0.02, seconds=0.5) + "    sys.stderr.write('fine\\n')\n"
    shown = on_a_terminal(f"import sys\n{program}")
    assert re.search(r"\rComparing \.\.\. \d+ s\rfine\r\n", shown)


def test_a_short_block_says_nothing():
    assert on_a_terminal(PROGRAM.format(patience=60, seconds=0)) == ""


def test_no_terminal_sees_anything(capsys: pytest.CaptureFixture[str]):
    with show_progress("Comparing"):
        pass
    assert capsys.readouterr() == ("", "")
