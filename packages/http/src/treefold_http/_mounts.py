"""What is served outside the versions: `app.mount("/static", StaticFiles("web"))`.

Mounts of the project are asked before default-to-latest, those of the framework (documents, docs)
after it: whatever a project serves at a path is never hidden by something built in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias
from urllib.parse import unquote

from treefold_router import version_number

if TYPE_CHECKING:
    from treefold_http._request import Request
    from treefold_http._response import Response

Answer: TypeAlias = "Callable[[Request], Awaitable[Response]]"


class Mountable(Protocol):
    """What can be mounted; `StaticFiles` is."""

    def check(self, root: Path) -> None:
        """Refuse what cannot be served."""
        ...

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        """Answer a path below the prefix, given as its decoded segments."""
        ...


class Mounts:
    """The mounts of an application, asked where no route serves a path."""

    def __init__(self) -> None:
        self._by_prefix: dict[tuple[str, ...], Mountable] = {}
        self._built_in: dict[tuple[str, ...], Mountable] = {}

    def __bool__(self) -> bool:
        return bool(self._by_prefix)

    def add(self, prefix: str, target: Mountable, *, again: bool = False) -> None:
        """Mount something at a prefix.

        Args:
            again: in the place of what is there.

        Raises:
            ValueError: when the prefix is no path, names a version, or is taken.
        """
        parts = tuple(part for part in prefix.split("/") if part)
        if not prefix.startswith("/") or not parts:
            raise ValueError(f"Mount prefix {prefix!r} is no path; give one such as '/static'")
        if version_number(parts[0]) is not None:
            raise ValueError(f"Mount prefix {prefix!r} lies in a version; choose one outside")
        if parts in self._by_prefix and not again:
            raise ValueError(f"Mount prefix {prefix!r} is taken; choose another")
        self._by_prefix[parts] = target

    def snapshot(self) -> dict[tuple[str, ...], Mountable]:
        """Give what is mounted, for `restore`."""
        return dict(self._by_prefix)

    def restore(self, mounted: dict[tuple[str, ...], Mountable]) -> None:
        """Forget what was mounted since a snapshot: a boot that failed is tried again."""
        self._by_prefix = mounted

    def add_built_in(self, prefix: str, target: Mountable) -> None:
        """Mount what the framework brings: whatever the project has at the path comes first."""
        self._built_in[tuple(prefix.strip("/").split("/"))] = target

    def find(self, path: bytes | str) -> Answer | None:
        """Give what answers a path that routing found well-formed; None where nothing is there."""
        return _find(self._by_prefix, path)

    def find_built_in(self, path: bytes | str) -> Answer | None:
        """Give what of the framework answers a path that nothing of the project does."""
        return _find(self._built_in, path) if self._built_in else None


def _find(mounts: Mapping[tuple[str, ...], Mountable], path: bytes | str) -> Answer | None:
    text = path if isinstance(path, str) else path.decode()
    parts = [part for part in text.split("/") if part]
    segments = tuple(parts if isinstance(path, str) else map(unquote, parts))
    for length in range(len(segments), 0, -1):
        target = mounts.get(segments[:length])
        if target is not None:
            return partial(target.response, segments[length:])
    return None
