"""The table of media types: ours, whatever the machine says."""

from __future__ import annotations

import mimetypes

import pytest

from treefold_http import Response
from treefold_http._headers.media_types import MEDIA_TYPES, guess_media_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("index.html", "text/html; charset=utf-8"),
        ("INDEX.HTM", "text/html; charset=utf-8"),
        ("app.js", "text/javascript; charset=utf-8"),
        ("app.mjs", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("notes.txt", "text/plain; charset=utf-8"),
        ("data.json", "application/json"),
        ("logo.svg", "image/svg+xml"),
        ("app.wasm", "application/wasm"),
        ("archive.tar.gz", "application/gzip"),
        ("page.html.bak", "application/octet-stream"),
        ("setup.exe", "application/octet-stream"),
        ("README", "application/octet-stream"),
        ("html", "application/octet-stream"),
        (".html", "application/octet-stream"),
        ("a.", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_the_last_suffix_decides(name: str, kind: str) -> None:
    assert guess_media_type(name) == kind


def test_the_table_of_the_system_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(mimetypes.types_map, ".js", "text/evil")
    mimetypes.add_type("text/evil", ".js")
    assert guess_media_type("app.js") == "text/javascript; charset=utf-8"


def test_every_entry_stands_in_a_header_and_every_text_says_its_charset() -> None:
    for suffix, kind in MEDIA_TYPES.items():
        assert suffix == suffix.lower()
        assert suffix.isalnum()
        Response(media_type=kind)
        assert kind.startswith("text/") == kind.endswith("; charset=utf-8")
