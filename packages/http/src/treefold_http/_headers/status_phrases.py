"""Reason phrases of statuses, by RFC 9110 on every Python: the standard library has older ones of
four statuses before 3.13.
"""

from __future__ import annotations

from http import HTTPStatus

_BY_RFC_9110 = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


def find_status_phrase(status: int, unknown: str) -> str:
    """Return the phrase of a status, such as `Not Found`, or `unknown` where it has none."""
    if status in _BY_RFC_9110:
        return _BY_RFC_9110[status]
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return unknown
