"""Mounts outside of the versions: `app.mount("/static", StaticFiles("web"))`.

Mounts of the project are searched before default-to-latest, those of the framework (documents,
docs) after it: a path that the project serves is never hidden by a built-in mount.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias
from urllib.parse import unquote

from treefold_router import version_number

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._responses.response import Response

Answer: TypeAlias = "Callable[[Request], Awaitable[Response]]"


class Mountable(Protocol):
    """The protocol of a mount target, such as `StaticFiles`."""

    def check(self, root: Path) -> None:
        """Refuse a target that cannot be served."""
        ...

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        """Return the response for a path below the prefix, given as its decoded segments."""
        ...


class Mounts:
    """The mounts of an application, searched for a path that no route serves."""

    def __init__(self) -> None:
        self._by_prefix: dict[tuple[str, ...], Mountable] = {}
        self._built_in: dict[tuple[str, ...], Mountable] = {}

    def __bool__(self) -> bool:
        return bool(self._by_prefix)

    def add(self, prefix: str, target: Mountable) -> None:
        """Mount a target at a prefix.

        Raises:
            ValueError: when the prefix is no path, names a version, or is taken.
        """
        parts = tuple(part for part in prefix.split("/") if part)
        if not prefix.startswith("/") or not parts:
            raise ValueError(
                f"Mount prefix must start with '/' and a name, got {prefix!r}; write a path such"
                " as '/static'"
            )
        if version_number(parts[0]) is not None:
            raise ValueError(f"Mount prefix {prefix!r} is inside a version; choose one outside")
        if parts in self._by_prefix:
            raise ValueError(f"Mount prefix {prefix!r} is taken; choose another")
        self._by_prefix[parts] = target

    @property
    def targets(self) -> Sequence[Mountable]:
        """The targets of the project's mounts, in their order."""
        return tuple(self._by_prefix.values())

    def snapshot(self) -> dict[tuple[str, ...], Mountable]:
        """Return the current mounts, for `restore`."""
        return dict(self._by_prefix)

    def restore(self, mounted: dict[tuple[str, ...], Mountable]) -> None:
        """Return to the mounts of a snapshot, before a failed boot is repeated."""
        self._by_prefix = mounted

    def add_built_in(self, prefix: str, target: Mountable) -> None:
        """Mount a target of the framework; routes and mounts of the project take precedence."""
        self._built_in[tuple(prefix.strip("/").split("/"))] = target

    def find(self, path: bytes | str) -> Answer | None:
        """Return a function that answers a well-formed path; None if no mount covers it."""
        return _find(self._by_prefix, path)

    def covering(self, path: bytes | str) -> tuple[str, Mountable] | None:
        """Return prefix and target of the mount of the project that covers a path, for messages."""
        segments = _segments(path)
        for length in range(len(segments), 0, -1):
            target = self._by_prefix.get(segments[:length])
            if target is not None:
                return "/" + "/".join(segments[:length]), target
        return None

    def find_built_in(self, path: bytes | str) -> Answer | None:
        """Return a function that answers a path from a built-in mount; None if none covers it."""
        return _find(self._built_in, path) if self._built_in else None


def _find(mounts: Mapping[tuple[str, ...], Mountable], path: bytes | str) -> Answer | None:
    segments = _segments(path)
    for length in range(len(segments), 0, -1):
        target = mounts.get(segments[:length])
        if target is not None:
            return partial(target.response, segments[length:])
    return None


def _segments(path: bytes | str) -> tuple[str, ...]:
    text = path if isinstance(path, str) else path.decode(errors="replace")
    parts = [part for part in text.split("/") if part]
    return tuple(parts if isinstance(path, str) else map(unquote, parts))
