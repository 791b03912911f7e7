"""The file `.env`: which lines are read, what they mean, and what a hostile one gets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from treefold_http import Settings, SettingsError
from treefold_http._runtime.dotenv import MAX_BYTES, read_dotenv


def written(folder: Path, content: bytes | str) -> dict[str, str]:
    data = content if isinstance(content, bytes) else content.encode()
    (folder / ".env").write_bytes(data)
    return read_dotenv(folder)


def test_settings_are_read_from_dotenv_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "treefold.toml").write_text("grace = 1\nmax_body = 1\nstartup_timeout = 1\n")
    (tmp_path / ".env").write_text(
        "TREEFOLD_GRACE=2\nTREEFOLD_MAX_BODY=2\nTREEFOLD_DATABASE_URL=sqlite:///x\n"
    )
    monkeypatch.setenv("TREEFOLD_GRACE", "3")
    settings = Settings.load(tmp_path)

    assert (settings.startup_timeout, settings.max_body, settings.grace) == (1.0, 2, 3.0)
    assert dict(settings.databases) == {"default": "sqlite:///x"}
    assert "TREEFOLD_MAX_BODY" not in os.environ


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("TREEFOLD_A=b c", "b c"),
        ("  export TREEFOLD_A = b ", "b"),
        ("TREEFOLD_A=", ""),
        ("TREEFOLD_A=b # note", "b"),
        ("TREEFOLD_A=# note", ""),
        ("TREEFOLD_A=b#c", "b#c"),
        ("TREEFOLD_A=b=c", "b=c"),
        ('TREEFOLD_A="b # c" # note', "b # c"),
        (r'TREEFOLD_A="b\"c\\d\ne\q"', 'b"c\\d\neq'),
        (r"TREEFOLD_A='b\n$c' ", r"b\n$c"),
        ("TREEFOLD_A=it's", "it's"),
        ("TREEFOLD_A=$HOME ${X} `id`", "$HOME ${X} `id`"),
        ("\ufeffTREEFOLD_A=ä", "ä"),
        ("TREEFOLD_A=old\rTREEFOLD_A=new\r\n", "new"),
    ],
)
def test_a_line_is_read(tmp_path: Path, line: str, value: str) -> None:
    assert written(tmp_path, line) == {"TREEFOLD_A": value}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "# TREEFOLD_A=1\n",
        "SECRET=\nFOO\n=\nA='\n",
        b"OTHER=\xff\xfe\x00\n",
        "treefold_a=1\nXTREEFOLD_A=1\nset TREEFOLD_A=1\n",
    ],
)
def test_lines_of_other_programs_are_left_alone(tmp_path: Path, content: bytes | str) -> None:
    assert written(tmp_path, content) == {}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A=1\nTREEFOLD_DOCS", "TREEFOLD_DOCS in line 2 of .env must have a value; write"),
        ("TREEFOLD_DOCS true", "TREEFOLD_DOCS in line 1 of .env must have a value; write"),
        ("TREEFOLD_A-B=1", "A name in line 1 of .env must have letters, digits and '_' only, got"),
        (b"TREEFOLD_A\xff=1", "A name in line 1 of .env must have letters, digits and '_' only"),
        (b"TREEFOLD_A=s3cret\xff", "TREEFOLD_A in line 1 of .env must be UTF-8; save the file"),
        ("TREEFOLD_A=s3cret\0", "TREEFOLD_A in line 1 of .env must not hold the character NUL"),
        ("TREEFOLD_A='s3cret", "TREEFOLD_A in line 1 of .env must end with the quote that it"),
        ('TREEFOLD_A="s3cret\\"', "TREEFOLD_A in line 1 of .env must end with the quote that it"),
        ('TREEFOLD_A="s3cret" x', "TREEFOLD_A in line 1 of .env must end with the quote that it"),
        (b"#" * (MAX_BYTES + 1), f".env must have at most {MAX_BYTES} bytes; remove"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_without_its_value(
    tmp_path: Path, content: bytes | str, message: str
) -> None:
    with pytest.raises(SettingsError) as refused:
        written(tmp_path, content)
    assert str(refused.value).startswith(message)
    assert "s3cret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_long_hostile_line_is_read_in_linear_time(tmp_path: Path) -> None:
    name = "TREEFOLD_A="
    size = MAX_BYTES - len(name)
    assert written(tmp_path, name + " #" * (size // 2)) == {"TREEFOLD_A": ""}
    assert written(tmp_path, name + "x ".ljust(size)) == {"TREEFOLD_A": "x"}
    with pytest.raises(SettingsError, match="must end with the quote"):
        written(tmp_path, name + '"' + "\\\\" * (size // 2 - 1))


def test_a_folder_of_that_name_is_no_file_of_settings(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()

    assert read_dotenv(tmp_path) == {}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_of_that_name_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".env")

    assert read_dotenv(tmp_path) == {}


def test_a_wrong_value_names_its_variable(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TREEFOLD_GRACE=soon\n")
    expected = r"^Setting grace in TREEFOLD_GRACE must be a number, got 'soon'$"
    with pytest.raises(SettingsError, match=expected):
        Settings.load(tmp_path)
