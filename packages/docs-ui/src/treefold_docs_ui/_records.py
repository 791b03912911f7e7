"""Arguments of the application: documents, and in development a description of the project.

Frozen records and their checks. Nothing here knows where a route table or a log comes from: an
`Inspector` is two callables.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

_forbidden = re.compile("[\x00-\x20\x7f\\\\]").search
_scheme = re.compile("[A-Za-z][A-Za-z0-9+.-]*:").match


@dataclass(frozen=True, slots=True)
class Document:
    """One choice of the version switch.

    Args:
        name: the label of the document, such as `v1`.
        url: address of an OpenAPI 3 document in JSON, on the origin of the page: a path such as
            `/openapi.json`, or relative to the folder of the docs, such as `../openapi.json`.
        asyncapi: address of an AsyncAPI 3 document in JSON that describes its sockets.

    Raises:
        ValueError: for an address on another origin, which the page may not load.
    """

    name: str
    url: str
    asyncapi: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        for url in (self.url, self.asyncapi):
            if url is not None and (
                not url or _forbidden(url) or _scheme(url) or url.startswith("//")
            ):
                raise ValueError(
                    f"Document address must be a path on this origin, got {url!r};"
                    " write it like '/openapi.json'"
                )


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that serves a route.

    Args:
        method: such as `GET`, or `WEBSOCKET`.
        url: the path with parameters in braces, such as `/v1/user/{id}`.
        file: its path below the folder that is the tree, such as `v1/User/[id]/Get.py`.
    """

    method: str
    url: str
    file: str


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that looks like a route and is not served, and why."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class BrokenFile:
    """A file that could not be loaded: the error in one line, and the whole traceback."""

    file: str
    error: str
    traceback: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteView:
    """Description of an application at one moment.

    Args:
        root: name of the folder that the files are below, such as `Api`.
        files: the files that serve.
        skipped: files that look like a route and are not served.
        broken: the files that could not be loaded.
    """

    root: str = "Api"
    files: Sequence[SourceFile] = ()
    skipped: Sequence[SkippedFile] = ()
    broken: Sequence[BrokenFile] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspector:
    """Data for developers only; without it the docs show no source and no log.

    Args:
        site: returns the current state; called at each request of the page.
        log: returns an iterator over batches of masked log lines: first the stored lines, then
            each batch as it is written. It is closed when the reader disconnects. None for no log.
    """

    site: Callable[[], SiteView]
    log: Callable[[], AsyncIterator[Sequence[str]]] | None = None
