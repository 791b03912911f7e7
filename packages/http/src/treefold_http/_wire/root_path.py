"""The prefix that an application is served below: ASGI's `root_path`, and the setting.

A proxy may cut the prefix or pass it on. `add_root_prefix` writes both forms alike, so that
routing, links and documents know one. Pure; which prefix there is, the application knows.
"""

from __future__ import annotations

from typing import TypeVar

from treefold_http._wire.asgi import Scope

Path = TypeVar("Path", bytes, str)


def below_root(path: Path, root: str) -> Path:
    """Return a path without the prefix that the application is mounted at (ASGI, `root_path`)."""
    prefix = root.rstrip("/")
    if isinstance(path, str):
        return _remove_text_prefix(path, prefix) or "/"
    return _remove_bytes_prefix(path, prefix.encode()) or b"/"


def add_root_prefix(scope: Scope, prefix: str) -> Scope:
    """Return the scope of a request with a prefix in `root_path` and in front of its paths.

    The prefix is cut first where the request has it, and where the server has put it in front
    (its own option `root_path`), so that it is there once.

    Args:
        scope: an HTTP or WebSocket scope.
        prefix: a path such as `/api`.
    """
    given = scope.get("root_path", "").rstrip("/")
    root = prefix if given in ("", prefix) else given + prefix
    placed = {**scope, "root_path": root}
    if scope["path"].startswith("/"):
        below_given = _remove_text_prefix(scope["path"], given)
        placed["path"] = root + _remove_text_prefix(below_given, prefix)
    raw_path: bytes = scope.get("raw_path") or b""
    if raw_path.startswith(b"/"):
        below_given = _remove_bytes_prefix(raw_path, given.encode())
        below = _remove_bytes_prefix(below_given, prefix.encode())
        placed["raw_path"] = root.encode() + below
    return placed


def _remove_text_prefix(path: str, prefix: str) -> str:
    # the prefix `/api` is none of the path `/apiary`
    has_it = path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/")
    return path[len(prefix) :] if has_it else path


def _remove_bytes_prefix(path: bytes, prefix: bytes) -> bytes:
    has_it = path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in (b"", b"/")
    return path[len(prefix) :] if has_it else path
