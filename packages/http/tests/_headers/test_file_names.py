"""S-40: a client's file name reduced to one that is safe inside our directory."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from treefold_http._headers.file_names import MAX_BYTES, sanitize_filename


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("photo.jpg", "photo.jpg"),
        ("Straße ☃.png", "Straße ☃.png"),
        ("cafe\u0301.txt", "café.txt"),
        ("archive.tar.gz", "archive.tar.gz"),
        ("../../x", "x"),
        ("/etc/passwd", "passwd"),
        ("C:\\x", "x"),
        ("C:x", "C_x"),
        ("a/b\\c", "c"),
        (".htaccess", "htaccess"),
        ("...", "upload"),
        ("..", "upload"),
        ("", "upload"),
        ("dir/", "upload"),
        ("a\x00.png", "a.png"),
        ("a\r\nb", "ab"),
        ("gpj.\u202eexe", "gpj.exe"),
        ("a\ud800b", "ab"),
        ("-rf", "rf"),
        ("trailing. . ", "trailing"),
        ('a<b>:"|?*c', "a_b______c"),
        ("CON", "_CON"),
        ("con.txt", "_con.txt"),
        ("nul .tar.gz", "_nul .tar.gz"),
        ("COM¹.log", "_COM¹.log"),
        ("console", "console"),
    ],
)
def test_s40_a_file_name_becomes_harmless(sent: str, kept: str) -> None:
    assert sanitize_filename(sent) == kept


@pytest.mark.parametrize(
    ("sent", "suffix"),
    [("a" * 5000 + ".jpeg", ".jpeg"), ("☃" * 5000, "☃"), ("a." + "b" * 5000, "b")],
)
def test_s40_a_long_name_is_cut_and_keeps_a_short_suffix(sent: str, suffix: str) -> None:
    name = sanitize_filename(sent)
    assert name.endswith(suffix)
    assert MAX_BYTES - 4 < len(name.encode()) <= MAX_BYTES


_hostile = st.text(
    st.one_of(st.characters(), st.sampled_from("/\\.: -_con\x00\u202e")), max_size=400
)


@given(sent=_hostile)
def test_s40_no_name_leaves_its_directory(sent: str) -> None:
    name = sanitize_filename(sent)
    assert Path("uploads", name).parent == Path("uploads")
    assert not set(name) & set('/\\<>:"|?*\x00')
    assert name[0] not in " .-"
    assert name[-1] not in " ."
    assert len(name.encode()) <= MAX_BYTES


@given(sent=_hostile)
def test_s40_a_safe_name_stays_as_it_is(sent: str) -> None:
    name = sanitize_filename(sent)
    assert sanitize_filename(name) == name
