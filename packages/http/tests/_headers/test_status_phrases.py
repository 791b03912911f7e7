"""Reason phrases by RFC 9110, section 15, on every Python."""

from http import HTTPStatus

import pytest

from treefold_http._headers.status_phrases import find_status_phrase


@pytest.mark.parametrize(
    ("status", "phrase"),
    [
        (404, "Not Found"),
        (413, "Content Too Large"),
        (414, "URI Too Long"),
        (416, "Range Not Satisfiable"),
        (422, "Unprocessable Content"),
        (499, "Error"),
    ],
)
def test_a_phrase_does_not_depend_on_the_python(status: int, phrase: str):
    assert find_status_phrase(status, "Error") == phrase


def test_every_known_status_has_a_phrase():
    assert all(find_status_phrase(status, "") for status in HTTPStatus)
