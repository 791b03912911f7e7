"""What a hostile name can do to a terminal: nothing."""

import io
import subprocess
import sys

import pytest
from hypothesis import given, strategies as st

from treefold_cli._console.output import escape_controls, print_error, print_line, print_marked_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Api/v1/User/[id]/Get.py", "Api/v1/User/[id]/Get.py"),
        ("größe", "größe"),
        ("a\x1b[2Jb", r"a\x1b[2Jb"),
        ("a\nb\r", r"a\nb\r"),
        ("\udcff", r"\udcff"),
        ("\u202e", r"\u202e"),
        ("\x7f\x00", r"\x7f\x00"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str):
    assert escape_controls(text) == shown


@given(st.text())
def test_every_text_becomes_one_printable_line(text: str):
    assert escape_controls(text).isprintable()


def test_lines_go_to_their_stream_escaped(capsys: pytest.CaptureFixture[str]):
    print_line("out\x1b")
    print_line()
    print_error("err\x1b")
    assert capsys.readouterr() == ("out\\x1b\n\n", "err\\x1b\n")


def test_a_terminal_that_lacks_a_letter_shows_its_escape():
    program = (
        "from treefold_cli._console.output import escape_unencodable_output, print_line\n"
        "escape_unencodable_output()\n"
        "print_line('größe')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
    )
    assert done.stdout.split() == [rb"gr\xf6\xdfe"]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, "\x1b[31mfail\x1b[0m it\\x1b\n"),
        ({"NO_COLOR": "1"}, "fail it\\x1b\n"),
        ({"NO_COLOR": ""}, "\x1b[31mfail\x1b[0m it\\x1b\n"),
        ({"TERM": "dumb"}, "fail it\\x1b\n"),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], expected: str
):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    screen = _Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    print_marked_line("fail", "it\x1b", colour="red")
    assert screen.getvalue() == expected


def test_no_terminal_gets_no_colour(capsys: pytest.CaptureFixture[str]):
    print_marked_line("ok", "it", colour="green")
    assert capsys.readouterr().out == "ok it\n"
