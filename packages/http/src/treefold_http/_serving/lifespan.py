"""Start and end of an application: boot, hooks, the ASGI lifespan protocol.

Startup hooks run in list order; a failure undoes the completed part and stops the server.
Shutdown drains background work, runs the shutdown hooks, ends the threads and flushes the log.
"""

from __future__ import annotations

import asyncio
import inspect
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from treefold_http._extensions.calls import explain
from treefold_http._redis.users import (
    claim_names_on_used_servers,
    close_redis,
    has_claims,
    list_used_redis_clients,
    release_claims,
)
from treefold_http._runtime.background import run_in_loop_or_thread
from treefold_http._runtime.boot_report import BootError, TreefoldError
from treefold_http._runtime.current_application import (
    add_running_application,
    enter_application,
    has_several_applications,
    list_running_applications,
    remove_running_application,
)
from treefold_http._runtime.exit_callbacks import is_outer_cancellation
from treefold_http._runtime.threads import release_disk_threads
from treefold_http._runtime.unhandled import is_from_test_client, report_to_test_client
from treefold_http._serving.mounted_app import check_mount_middleware, list_mounted_apps
from treefold_http._wire.aliases import AnyCallable
from treefold_http._wire.asgi import Receive, Scope, Send
from treefold_logging import flush, get_logger

if TYPE_CHECKING:
    from treefold_http._serving.host import Host


_OTHER_SERVER = (
    "limit_concurrency and the settings of [serve], such as the limits of slow clients, apply under"
    " `treefold serve` only; set those of this server"
)

_CANCELLATION_SECONDS = 0.1
"""Seconds in which the cancellation of a startup follows the interruption of its hook."""

_SLOW_SHUTDOWN_SECONDS = 5.0
"""Seconds after which a line names the shutdown hook that has not ended."""


# _starting  started  state
# None       False    before the startup, after a failed one, or after the shutdown
# running    False    startup: all callers wait for this one
# done       True     serving
class Lifespan:
    """Runs the startup and the shutdown of an application, each once.

    Attributes:
        started: True once the startup is complete and requests may be served.
        is_direct: True once a request can be served as the server passes it, without a prefix.
        is_beside: True where it could, but several applications run, and each enters its own.
        stopping: set when the shutdown begins; event streams wait on it.
        running_hook: the name of the startup hook that runs now; empty at all other times.
    """

    def __init__(self, app: Host) -> None:
        self.app = app
        self.started = False
        self.is_direct = self.is_beside = False
        self.stopping = asyncio.Event()
        self.running_hook = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._starting: asyncio.Future[None] | None = None
        self._undo: list[Callable[[], Awaitable[None]]] = []

    async def serve_scope(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Speak the lifespan protocol (ASGI, lifespan 2.0)."""
        await receive()
        try:
            await self.run_startup()
        except TreefoldError as error:
            report_to_test_client(scope, error)
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        except asyncio.CancelledError:  # the server is stopped
            await self._cancel_startup()
            raise
        if not self.app.has_own_server and not is_from_test_client(scope):
            get_logger().info(_OTHER_SERVER)
        # `state` is optional in ASGI: a server that has it copies it into the scope of each request
        scope.get("state", {}).update(vars(self.app.state))
        await send({"type": "lifespan.startup.complete"})
        with watch_stop_signals(self.begin_shutdown):
            await receive()
        await self.run_shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    @asynccontextmanager
    async def __call__(self, parent: object = None) -> AsyncGenerator[dict[str, Any]]:
        """Run the startup and the shutdown inside the lifespan of a parent application.

        For a parent that takes a lifespan, such as `FastAPI(lifespan=api.lifespan)`, and does not
        run that of what is mounted in it.

        Args:
            parent: the parent application; unused.

        Raises:
            BootError: as `run_startup`.
        """
        await self.run_startup()
        try:
            with watch_stop_signals(self.begin_shutdown):
                yield dict(vars(self.app.state))
        finally:
            await self.run_shutdown()

    async def run_startup(self) -> None:
        """Boot and run the startup hooks, once.

        Concurrent calls share one attempt; a call after a failed attempt tries again.

        Raises:
            BootError: when the project cannot be read or a startup hook fails.
        """
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._run_startup())
            self._starting.add_done_callback(self._reset_failed_startup)
        # a first request that is cancelled must not cancel the start that others wait for
        await asyncio.shield(self._starting)

    async def _cancel_startup(self) -> None:
        """Cancel a startup in progress; what it has completed is undone."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.wait([self._starting])
        if self.started:  # it was complete when the cancellation came
            await self.run_shutdown()

    def _reset_failed_startup(self, start: asyncio.Future[None]) -> None:
        # `cancelled` first, as `exception()` of a cancelled future raises
        if start.cancelled() or start.exception() is not None:
            self._starting = None

    def begin_shutdown(self) -> None:
        """End the long-lived connections: event streams and open sockets."""
        # the stop signal calls it before the lifespan ends, and the shutdown once more
        if not self.stopping.is_set():
            self.stopping.set()
            self.app.background.start_work(self.app.sockets.close_all)

    async def run_shutdown(self) -> None:
        """Drain background work, run the shutdown hooks, end the threads, flush the log; once."""
        if self._starting is None:
            return
        with enter_application(self.app):
            await self._drain_and_run_shutdown()

    async def _drain_and_run_shutdown(self) -> None:
        self.begin_shutdown()
        # before the hooks: background work uses the pools and clients that they close
        await self.app.background.drain_tasks(self.app.settings.grace)
        await self._undo_completed_startup()
        others = [app for app in list_running_applications() if app is not self.app]
        # another application of this process may hold the claim of the same names
        if has_claims() and self.app.names not in [app.names for app in others]:
            await release_claims(self.app.names)  # without claims they may be in a file, unread
        await close_redis(keep_open_for=others)
        if "treefold_http.cache" in sys.modules:  # otherwise no cache was used
            sys.modules["treefold_http.cache"].clear_memory()
        self._starting = None
        self.started = False
        remove_running_application(self)
        self.update_serving_path()
        # after the hooks, which run in these threads if they are plain functions
        self.app.threads.shutdown()
        release_disk_threads()
        if self.app.usage is not None:
            self.app.usage.write_line()
        flush()

    async def _run_startup(self) -> None:
        # this task's context: hooks, and the tasks that they start
        with enter_application(self.app):
            try:
                await self._run_startup_steps()
            except GeneratorExit:  # the loop is closed, nothing can be awaited
                raise
            # also where it is cancelled; a module may have opened a connection in the boot
            except BaseException:
                await self._undo_completed_startup()
                raise
            finally:
                self.running_hook = ""

    async def _run_startup_steps(self) -> None:
        app = self.app
        self.stopping = asyncio.Event()  # bound to the running loop
        app.mounts.are_complete = False
        self._undo.append(
            self._shutdown_installed_extensions
        )  # first in, so that extensions end last
        app.boot()
        if list_used_redis_clients(app):
            await claim_names_on_used_servers(app)
            _warn_keys_named_after_folder(app)
        for extension in app.installed:
            await self._run_startup_hook(getattr(extension, "startup", None))
        self._undo.append(partial(self._run_shutdown_hook, app.providers.close))
        for extension in app.project.boot_files.extensions:
            await self._run_startup_hook(getattr(extension, "startup", None))
            self._undo.append(
                partial(self._run_shutdown_hook, getattr(extension, "shutdown", None))
            )
        # Shutdown hooks undo startup hooks, so a failure of the first startup hook skips them.
        for hook in app.project.boot_files.on_startup[:1]:
            await self._run_startup_hook(hook)
        self._undo.append(self._run_shutdown_hooks)
        for hook in app.project.boot_files.on_startup[1:]:
            await self._run_startup_hook(hook)
        app.mounts.are_complete = True
        check_mount_middleware(app)
        for mounted in list_mounted_apps(app):
            await self._run_startup_hook(
                mounted.lifespan.start_app, f"of the mount {mounted.prefix}"
            )
            self._undo.append(partial(self._run_shutdown_hook, mounted.lifespan.stop_app))
        self.started, self._loop = True, asyncio.get_running_loop()
        add_running_application(self)

    @property
    def is_running(self) -> bool:
        """True until it stops, or its event loop is closed without a stop."""
        return self.started and self._loop is not None and not self._loop.is_closed()

    def update_serving_path(self) -> None:
        """Serve requests directly, unless they have a prefix or several applications run."""
        is_plain = self.started and not self.app.settings.root_path
        self.is_beside = is_plain and has_several_applications()
        self.is_direct = is_plain and not self.is_beside

    async def _shutdown_installed_extensions(self) -> None:
        for extension in reversed(self.app.installed):
            await self._run_shutdown_hook(getattr(extension, "shutdown", None))

    async def _run_startup_hook(self, hook: AnyCallable | None, name: str = "") -> None:
        if hook is None:
            return
        self.running_hook = name or _format_hook_name(hook)
        try:
            async with asyncio.timeout(self.app.settings.startup_timeout):
                await self._call_hook(hook)
        except BaseException as error:
            if await _is_startup_cancelled(error):
                get_logger().warning("startup hook %s was cancelled", self.running_hook)
                raise asyncio.CancelledError from None
            if is_outer_cancellation(error):
                raise
            more = await explain(self.app, error)
            get_logger().error("startup hook %s failed", self.running_hook, exc_info=error)
            said = f"{error!r}; {more}" if more else repr(error)
            raise BootError(f"Startup hook {self.running_hook} failed: {said}") from error

    async def _undo_completed_startup(self) -> None:
        while self._undo:
            # taken out before it runs, so that a cancellation inside it does not run it twice
            await self._undo.pop()()

    async def _run_shutdown_hooks(self) -> None:
        for hook in self.app.project.boot_files.on_shutdown:
            await self._run_shutdown_hook(hook)

    async def _run_shutdown_hook(self, hook: AnyCallable | None) -> None:
        if hook is None:
            return
        name = _format_hook_name(hook)
        try:
            with _name_slow_shutdown_hook(name):
                await self._call_hook(hook)
        # a `SystemExit` or a `CancelledError` that the hook raises itself is a failed hook too
        except BaseException as error:
            if is_outer_cancellation(error):
                raise
            get_logger().error("shutdown hook %s failed", name, exc_info=error)

    async def _call_hook(self, hook: AnyCallable) -> None:
        call = partial(hook, self.app) if _takes_app(hook) else hook
        await run_in_loop_or_thread(self.app.threads, call)


def _warn_keys_named_after_folder(app: Host) -> None:
    names = app.names
    if names.is_folder and not names.is_test and names.environment != "development":
        get_logger().warning(
            "keys in redis begin with %s, after the folder; another folder or machine does not find"
            " them: set name in treefold.toml",
            names.own,
        )


@contextmanager
def _name_slow_shutdown_hook(name: str) -> Generator[None]:
    """Log one line if the block takes long; from a thread, as a hook may block the event loop."""
    line = "shutdown hook %s has not ended after %g s; a second stop signal ends the process"
    timer = threading.Timer(
        _SLOW_SHUTDOWN_SECONDS, get_logger().warning, (line, name, _SLOW_SHUTDOWN_SECONDS)
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def watch_stop_signals(on_stop_signal: Callable[[], None]) -> Generator[None]:
    """Call `on_stop_signal` on a stop signal, before the server's own handler.

    A server waits for open connections before it ends the lifespan, and an event stream ends only
    with the lifespan: without this, each would wait for the other until the grace period is over.
    """
    # `signal.signal` raises ValueError in any other thread
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    former: dict[int, Any] = {}

    def relay_signal(number: int, frame: FrameType | None) -> None:
        # wakes the loop, which may wait in `select` while the handler runs
        loop.call_soon_threadsafe(on_stop_signal)
        former[number](number, frame)

    for number in (signal.SIGTERM, signal.SIGINT):
        handler = signal.getsignal(number)
        # SIG_DFL, SIG_IGN and None (a handler of C code) have nothing to relay to
        if callable(handler):
            former[number] = handler
            signal.signal(number, relay_signal)
    try:
        yield
    finally:
        for number, handler in former.items():
            # a handler that was set inside the block stays
            if signal.getsignal(number) is relay_signal:
                signal.signal(number, handler)


async def _is_startup_cancelled(error: BaseException) -> bool:
    """Return True for the cancellation of a startup, not for one that a hook has raised itself."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    if not is_outer_cancellation(error):
        # a server interrupts a hook that blocks the loop before it can cancel this task
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(_CANCELLATION_SECONDS)
    return is_outer_cancellation(error)


def _takes_app(hook: AnyCallable) -> bool:
    """Return True if a hook takes the application: a parameter without default, or named `app`."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(
        p.kind in positional and (p.default is inspect.Parameter.empty or p.name == "app")
        for p in inspect.signature(hook).parameters.values()
    )


def _format_hook_name(hook: AnyCallable) -> str:
    return getattr(hook, "__qualname__", type(hook).__qualname__)
