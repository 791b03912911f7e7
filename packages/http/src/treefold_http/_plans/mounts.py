"""Mounts outside of the versions: `app.mount("/static", StaticFiles("web"))`.

Mounts of the project are searched before default-to-latest, those of the framework (documents,
docs) after it: a path that the project serves is never hidden by a built-in mount. A path with a
segment `.` or `..` is no mount's: nothing behind a mount can read it as the parent folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from treefold_http._wire.path_segments import Segments, decode_segments, has_dot_segment
from treefold_router import version_number

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._responses.response import Response


class Mountable(Protocol):
    """The protocol of a mount target, such as `StaticFiles`."""

    def check(self, root: Path) -> None:
        """Refuse a target that cannot be served."""
        ...

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        """Return the response for a path below the prefix, given as its decoded segments."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Mounted:
    """A mount that covers a path.

    Attributes:
        target: the target of the mount.
        segments: the decoded segments of the path.
        depth: the number of them that are the prefix of the mount.
    """

    target: Mountable
    segments: Segments
    depth: int

    @property
    def mount_prefix(self) -> str:
        """The prefix of the mount, such as `/static`."""
        return "/" + "/".join(self.segments[: self.depth])

    async def __call__(self, request: Request) -> Response:
        """Answer a request for the path."""
        return await self.target.response(self.segments[self.depth :], request)


class Mounts:
    """The mounts of an application, searched for a path that no route serves.

    Attributes:
        are_complete: True once the startup hooks have run, which may mount.
    """

    def __init__(self) -> None:
        self.are_complete = False
        self._by_prefix: dict[Segments, Mountable] = {}
        self._built_in: dict[Segments, Mountable] = {}

    def __bool__(self) -> bool:
        return bool(self._by_prefix)

    def add_mount(self, prefix: str, target: Mountable) -> None:
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
        # mounts are searched for paths outside of the versions only
        if version_number(parts[0]) is not None:
            raise ValueError(f"Mount prefix {prefix!r} is inside a version; choose one outside")
        if parts in self._by_prefix:
            raise ValueError(f"Mount prefix {prefix!r} is taken; choose another")
        self._by_prefix[parts] = target

    @property
    def mount_targets(self) -> Sequence[Mountable]:
        """The targets of the project's mounts, in their order."""
        return tuple(self._by_prefix.values())

    def take_snapshot(self) -> dict[Segments, Mountable]:
        """Return the current mounts by prefix, for `restore_snapshot`."""
        return dict(self._by_prefix)

    def restore_snapshot(self, mounted: dict[Segments, Mountable]) -> None:
        """Return to the mounts of a snapshot, before a failed boot is repeated."""
        self._by_prefix = mounted

    def add_built_in(self, prefix: str, target: Mountable) -> None:
        """Mount a target of the framework; routes and mounts of the project take precedence."""
        self._built_in[tuple(prefix.strip("/").split("/"))] = target

    def find_mount(self, path: bytes | str) -> Mounted | None:
        """Return the mount of the project that covers a well-formed path; None without one."""
        return _find_mount(self._by_prefix, path)

    def find_built_in(self, path: bytes | str) -> Mounted | None:
        """Return the built-in mount that covers a path; None if none does."""
        return _find_mount(self._built_in, path) if self._built_in else None


def _find_mount(mounts: Mapping[Segments, Mountable], path: bytes | str) -> Mounted | None:
    segments = decode_segments(path)
    # the longest prefix first: `/static/private` before `/static`
    for length in range(len(segments), 0, -1):
        if (target := mounts.get(segments[:length])) is not None:
            return None if has_dot_segment(segments) else Mounted(target, segments, length)
    return None
