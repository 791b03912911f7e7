"""What the import of modules starts outside themselves: threads, callbacks, signals, log handlers.

A second import would start it a second time beside the first, which nothing can stop. Seen is the
importing thread alone; requests go on in others.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
from pathlib import Path
from typing import Any

from treefold_http._wire.interpreter import calling_frame

_WATCHED: tuple[tuple[Any, str, str], ...] = (
    (threading.Thread, "start", "starts a thread"),
    (atexit, "register", "registers a function of atexit"),
    (signal, "signal", "sets a signal handler"),
    (logging.Logger, "addHandler", "adds a logging handler"),
)


class ImportWatch:
    """A context manager that notes what imports of a project start, in this thread.

    Args:
        root: the application root.

    Attributes:
        seen: by path below the root, the first thing that the import of a module started.
    """

    def __init__(self, root: Path) -> None:
        self._prefix = os.path.join(root, "")
        self._thread = threading.get_ident()
        self._plain: list[tuple[Any, str, Any]] = []
        self.seen: dict[str, str] = {}

    def __enter__(self) -> ImportWatch:
        self._thread = threading.get_ident()
        for owner, name, text in _WATCHED:
            plain = getattr(owner, name)
            self._plain.append((owner, name, plain))
            setattr(owner, name, self._noting(plain, text))
        return self

    def __exit__(self, *_: object) -> None:
        while self._plain:
            owner, name, plain = self._plain.pop()
            setattr(owner, name, plain)

    def _noting(self, plain: Any, text: str) -> Any:
        def note(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread:
                file = self._importing()
                if file is not None:
                    self.seen.setdefault(file, text)
            return plain(*args, **kwargs)

        return note

    def _importing(self) -> str | None:
        """Return the innermost module of the project that is being imported in this thread."""
        frame = calling_frame(2)
        while frame is not None:
            path = frame.f_code.co_filename
            if frame.f_code.co_name == "<module>" and path.startswith(self._prefix):
                return path.removeprefix(self._prefix).replace(os.sep, "/")
            frame = frame.f_back
        return None
