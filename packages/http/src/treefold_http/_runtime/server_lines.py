"""The lines that servers write for requests and sockets, with their secrets masked.

uvicorn logs the whole target of a request beside our line: a token in the query of a socket would
be in the log in clear text. The lines stay; their targets are masked as in ours (S-76, S-80, S-81).
A server does not know which application a line belongs to, so those of all in the process decide.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakSet

from treefold_logging import request_target

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

_LOGGERS = ("uvicorn.access", "uvicorn.error")
_REQUEST = '%s - "%s %s HTTP/%s" %d'
_SOCKET = '%s - "WebSocket %s"'


class _Mask(logging.Filter):
    """Masks the target in a record of uvicorn; it drops none."""

    def __init__(self) -> None:
        super().__init__()
        self.apps: WeakSet[Runtime] = WeakSet()

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the target among the arguments of a line."""
        form, given = record.msg, record.args
        if not isinstance(form, str) or not isinstance(given, tuple):
            return True
        place = 2 if form == _REQUEST else 1 if form.startswith(_SOCKET) else 0
        if place and len(given) > place and isinstance(given[place], str):
            path, _, query = str(given[place]).partition("?")
            target = mask_target(path.encode("utf-8", "replace"), query.encode("utf-8", "replace"))
            record.args = (*given[:place], target, *given[place + 1 :])
        return True


_mask = _Mask()


def install_uvicorn_log_mask(app: Runtime) -> None:
    """Mask the lines of uvicorn in this process; more than one application may be served."""
    _mask.apps.add(app)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_mask)  # adding it again changes nothing


def mask_target(raw_path: bytes, query: bytes, root_path: str = "") -> str:
    """Return the target of a line, masked by every application that has booted.

    Args:
        raw_path: the path as sent.
        query: the query as sent.
        root_path: the prefix that the server is mounted at; the setting `root_path` may follow it.
    """
    root = root_path.rstrip("/")
    masked = {
        index
        for app in list(_mask.apps)
        for prefix in {root, root + app.settings.root_path}
        for index in app.find_masked_segments(raw_path, prefix)
    }
    return request_target(raw_path, query, sorted(masked))
