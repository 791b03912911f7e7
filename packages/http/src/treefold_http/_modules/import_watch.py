"""What the import of modules starts outside themselves: threads, callbacks, signals, log handlers.

A second import would start it a second time beside the first, which nothing can stop. Seen is the
importing thread alone; requests go on in others. What belongs to the thread that made it, such as a
connection of `sqlite3`, would not serve those requests either.
"""

from __future__ import annotations

import atexit
import logging
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    import sqlite3
except ImportError:  # Python can be built without it
    sqlite3 = None

from treefold_http._wire.interpreter import find_caller_frame

_WATCHED: tuple[tuple[Any, str, str], ...] = (
    (threading.Thread, "start", "starts a thread"),
    (atexit, "register", "registers a function of atexit"),
    (signal, "signal", "sets a signal handler"),
    (logging.Logger, "addHandler", "adds a logging handler"),
    *([(sqlite3, "connect", "opens a connection of sqlite3")] if sqlite3 is not None else ()),
)
PROCESS_WIDE = tuple(each for each in _WATCHED if each[0] in (atexit, signal, logging.Logger))
"""Those of which a process has one: threads and connections may be of a single module."""
# taken before a watch replaces them: a wrapper compares the function it wraps with these
_set_signal = signal.signal
_connect = None if sqlite3 is None else sqlite3.connect


class ImportWatch:
    """A context manager that notes what imports of a project start, in this thread.

    Args:
        root: the application root.
        watched: the functions to watch: their owner, their name and a text.

    Attributes:
        seen: by path below the root, the first thing that the import of a module started.
    """

    def __init__(self, root: Path, watched: Sequence[tuple[Any, str, str]] = _WATCHED) -> None:
        self._watched = watched
        self._prefix = os.path.join(root, "")
        self._thread = threading.get_ident()
        self._plain: list[tuple[Any, str, Any]] = []
        self.seen: dict[str, str] = {}

    def __enter__(self) -> ImportWatch:
        self._thread = threading.get_ident()
        for owner, name, text in self._watched:
            plain = getattr(owner, name)
            self._plain.append((owner, name, plain))
            setattr(owner, name, self._wrap_to_record_calls(plain, text))
        return self

    def __exit__(self, *_: object) -> None:
        while self._plain:
            owner, name, plain = self._plain.pop()
            setattr(owner, name, plain)

    def _wrap_to_record_calls(self, plain: Any, description: str) -> Any:
        def record_and_call(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread and not _is_shared_connection(
                plain, args, kwargs
            ):
                file = self._find_importing_file()
                if file is not None:
                    self.seen.setdefault(file, description)
                if plain is _set_signal and not _is_main_thread():
                    return signal.getsignal(*args[:1])  # refused here; the next process sets it
            return plain(*args, **kwargs)

        return record_and_call

    def _find_importing_file(self) -> str | None:
        """Return the innermost module of the project that is being imported in this thread.

        Or that of the function that runs: `init()` of a handler.
        """
        frame, function = find_caller_frame(2), None
        while frame is not None:
            path = frame.f_code.co_filename
            if path.startswith(self._prefix):
                file = path.removeprefix(self._prefix).replace(os.sep, "/")
                if frame.f_code.co_name == "<module>":
                    return file
                function = function or file
            frame = frame.f_back
        return function


def _is_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _is_shared_connection(plain: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """True for a connection that all threads may use: that of a driver with a thread of its own."""
    if plain is not _connect:
        return False
    # `check_same_thread` is the fifth parameter of sqlite3.connect, where it comes by position
    return kwargs.get("check_same_thread", args[4] if len(args) > 4 else True) is False
