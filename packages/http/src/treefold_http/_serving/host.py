"""`Host`: the application as sockets, lifespan, reload and documents see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from treefold_http._plans.runtime import ProjectRuntime

if TYPE_CHECKING:
    from treefold_http._failures.error_responses import ErrorResponses
    from treefold_http._plans.plans import Plan
    from treefold_http._project.loaded_project import LoadedProject
    from treefold_http._serving.open_sockets import OpenSockets


class Host(ProjectRuntime, Protocol):
    """An application that has booted, or boots at the first access to `project`.

    Attributes:
        errors: the exception handlers and the error format.
        has_own_server: True if the server applies the settings `[serve]`.
        probes: the plans of the health probes, by path.
        sockets: the open sockets, closed at shutdown.
    """

    errors: ErrorResponses
    has_own_server: bool
    probes: Mapping[bytes, Plan]
    sockets: OpenSockets

    @property
    def project(self) -> LoadedProject:
        """The loaded project that serves requests; the first access boots."""
        ...

    def boot(self) -> None:
        """Read the project; a second call does nothing."""
        ...

    def replace_project(self, project: LoadedProject) -> None:
        """Replace the loaded project; requests in progress finish on the previous one."""
        ...
