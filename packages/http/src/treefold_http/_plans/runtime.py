"""`ProjectRuntime`: the part of an application that reading a project uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from treefold_http._runtime.runtime import Runtime

if TYPE_CHECKING:
    from treefold_http._failures.exception_handlers import ExceptionHandler
    from treefold_http._injection.providers import Providers
    from treefold_http._injection.resolver import Injection
    from treefold_http._plans.installed import Installed
    from treefold_http._plans.mounts import Mounts
    from treefold_http._requests.request import Request
    from treefold_http._requests.usage import Usage
    from treefold_http._responses.response import Response


class ProjectRuntime(Runtime, Protocol):
    """The application that a project is read for.

    Attributes:
        injection: compiles handlers and dependencies.
        mounts: the mounts outside the versions.
        providers: the registry of `providers.py` and `app.provide`.
        usage: the counts of the setting `usage`; None without it.
    """

    injection: Injection
    mounts: Mounts
    providers: Providers
    usage: Usage | None

    @property
    def installed(self) -> Installed:
        """The extensions of installed distributions, once they are looked up."""
        ...

    def exception_handler(
        self, kind: type[BaseException]
    ) -> Callable[[ExceptionHandler], ExceptionHandler]:
        """Register the decorated function as handler of an exception type."""
        ...

    async def render(self, error: BaseException, request: Request) -> Response:
        """Return the response for an exception of a handler, a dependency or a middleware."""
        ...
