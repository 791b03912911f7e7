"""The contract between an application and its extensions.

An extension is an object of a project's `extensions.py`, or one that an installed distribution
declares under the entry-point group `treefold.extensions`. This module defines the members of an
extension. It depends on no particular database or extension; `_plans.installed` finds the
installed ones, `_extensions.calls` calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from treefold_http._built_in.outside import (
    Outside as Outside,
    built_in_at as built_in_at,
    mount_at as mount_at,
)
from treefold_http._extensions.calls import (
    apply as apply,
    explain as explain,
    find_session_store as find_session_store,
    observe as observe,
    pending as pending,
    prepare_tests as prepare_tests,
    readiness as readiness,
    release as release,
    session_store_of as session_store_of,
)
from treefold_http._extensions.members import (
    READY_TIMEOUT as READY_TIMEOUT,
    Check as Check,
    LogContext as LogContext,
    Pending as Pending,
    Refusal as Refusal,
    ResultForm as ResultForm,
    SessionStore as SessionStore,
    SpanFactory as SpanFactory,
)
from treefold_http._plans.installed import GROUP as GROUP, install as install
from treefold_http._project.boot import load_error as load_error
from treefold_http._project.boot_files import (
    load_boot_files as load_boot_files,
    load_models as load_models,
)
from treefold_http._project.coverage import (
    describe_uncovered as describe_uncovered,
    find_unserved as find_unserved,
)
from treefold_http._project.guards import (
    Guard as Guard,
    guards_of_path as guards_of_path,
    guards_of_refusal as guards_of_refusal,
    guards_of_route as guards_of_route,
)
from treefold_http._project.loaded_project import BootFiles as BootFiles
from treefold_http._project.lost_guards import (
    LostGuard as LostGuard,
    find_lost_guards as find_lost_guards,
)
from treefold_http._project.parameter_findings import (
    ParameterFinding as ParameterFinding,
    find_parameter_findings as find_parameter_findings,
)
from treefold_http._runtime.runtime import Role as Role
from treefold_http._wire.root_path import below_root as below_root

if TYPE_CHECKING:
    from treefold_http._application import Application


class Extension(Protocol):
    """The members of an extension; each is optional.

    An extension may be an object of any class, with only the members it needs. A class that derives
    from this one inherits all members, which do nothing. `setup`, `startup` and `shutdown` are
    called in the order of the extensions: installed ones first, beginning with `databases`.
    """

    refusals: Mapping[type[Exception], Callable[[Any], Refusal]] = {}
    """Exception types and functions that return the response to one. Read once, after `setup`; an
    exception handler of the project for the same type takes precedence."""

    def setup(self, app: Application) -> None:
        """Prepare for an application; called once, before any module of the project is imported.

        An installed extension relies on `app.root` and `app.settings` only: `doctor` and tools
        set it up without a boot. An exception stops the boot and is reported.
        """

    def use_log(self, log: LogContext) -> None:
        """Receive the request id and the mask of the log; called once, after `setup`.

        For an extension that writes log lines, or takes up a request in another process.
        """

    async def startup(self) -> None:
        """Start; called when the server starts, before the startup hooks. It may be plain, and
        may take the application as its one argument. An exception stops the start."""

    async def shutdown(self) -> None:
        """Release the resources of `setup` and `startup`; called also after a failed boot or start.
        It may be plain. An exception is logged."""

    def watch(self) -> Callable[[], str]:
        """Begin to watch one request; called with `dev=True` only.

        Returns:
            A function that ends the watch and returns a note for the summary of the request, or an
            empty text.
        """
        return lambda: ""

    def reload(self, modules: Collection[str]) -> Callable[[Collection[str]], None]:
        """Forget the modules of the project that are about to be imported again, by dotted name.

        Returns:
            A function that takes the names of modules that were not replaced, and restores them.
        """
        return lambda _: None

    def find_definitions(self, module: str) -> Sequence[str]:
        """Return what a module has defined that a process has once, such as `the model Note`.

        Called for a file that a version inherits from another one, which has run it before: where
        something is returned, the file is broken in that version, and `reload` is called for it.
        """
        del module
        return ()

    def related(self) -> Collection[Collection[str]]:
        """Return groups of modules of the project, by dotted name, that change together.

        A reload imports all modules of a group if it imports one of them, and replaces all or none:
        their objects refer to each other without an import, as models do that name each other.
        """
        return ()

    def parameters(self, kind: type[Any]) -> Callable[..., Any] | None:
        """Return a function that makes a parameter of this type, or None for another type.

        A handler that takes such a parameter takes those of the function instead: keyword-only,
        with scalars or lists of scalars as their types, a default, and a description as the
        `documentation` of an object in `Annotated`. They are read from the query, whatever their
        names: a list from repeated names and from commas. A name of the query that no input and no
        credential of the route takes is refused. The function is called once for a request, on the
        event loop; for one type it is always the same function. It may have an attribute
        `find_problems`, called without arguments by `check --strict`: pairs of a code and a text.
        """
        del kind

    def result(self, annotation: Any) -> ResultForm | None:
        """Return how results of a declared type are answered, or None for another type.

        Args:
            annotation: the `response_model` of a handler, or else its return annotation.
        """
        del annotation

    async def ready(self) -> Sequence[Check]:
        """Check the resources of the extension, for the readiness probe and `doctor`.

        It is called with and without a running application, and cancelled after `READY_TIMEOUT`.
        """
        return ()

    def session_store(self) -> SessionStore | None:
        """Return a store for sessions, or None if this application has none to offer."""
        return None

    def observe(self, span_factory: SpanFactory) -> Callable[[], None]:
        """Open a span around each operation of the extension, in any task or thread.

        Returns:
            A function that stops the tracing.
        """
        return lambda: None

    def explain(self, error: BaseException) -> str:
        """Return one more sentence for an error that was not handled, or an empty text.

        It runs in a worker thread and may block for a moment. The sentence follows the error in the
        traceback and, in development, in the response.
        """
        return ""

    def pending(self) -> Sequence[Pending]:
        """Return the steps that are missing before the project can serve, such as migrations.

        It may block; it is called after the boot, never on the thread of an event loop.
        """
        return ()

    def apply(self) -> Sequence[str] | None:
        """Perform the steps of `pending` that need no decision by the user.

        It may block, as `pending`.

        Returns:
            A line for each performed step; None if the project has no steps at all, not even
            steps that were applied earlier.
        """
        return None

    def prepare_tests(self) -> None:
        """Prepare for tests if no extension has steps to apply, for example by creating tables.

        It may block; it is called once per test run, after the boot.
        """
