"""Reload: build another site from the changed files, then swap it with the running one.

Changed modules and their importers are imported again; all other modules stay the same objects. A
file that fails keeps its last good version. If startup hooks change, they run before the swap. This
module watches no files and handles no requests.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from treefold_http._boot import Site, build_site
from treefold_http._change import (
    HOOKS,
    Change,
    Held,
    Modules,
    is_compiled,
    modules_of,
    needed_by_hooks,
)
from treefold_http._findings import BrokenFile, broken_file
from treefold_http._imports import imports_of, reached
from treefold_http._installed import is_wanted
from treefold_http._life import Life
from treefold_http._modules import ModuleSpace, View, take_turns
from treefold_http._providers import Provider
from treefold_http._replacement import FreshLoader, Replacement
from treefold_http._settings import Settings
from treefold_http._starting import Failure, Starting, other_hooks
from treefold_logging import get_logger
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._application import Application

_SETTINGS_FILES = frozenset({"pyproject.toml", "treefold.toml"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """The result of a reload: another site serves now.

    Attributes:
        files: the reloaded files, below the application root.
        added: the new routes.
        removed: the removed routes.
        broken: every file that does not load now, including older failures.
        seconds: the duration, startup hooks included.
        replaced: former providers whose application values are no longer used.
        started: the names of the startup hooks that ran.
        former: the former life, to be ended after its last request; None if hooks did not rerun.
    """

    files: tuple[str, ...]
    added: tuple[Route, ...]
    removed: tuple[Route, ...]
    broken: tuple[BrokenFile, ...]
    seconds: float
    replaced: tuple[Provider, ...]
    started: tuple[str, ...] = ()
    former: Life | None = None


@dataclass(frozen=True, slots=True)
class RestartNeeded:
    """A change that requires a restart of the process; the former site continues to serve.

    Attributes:
        reason: the reason, in one line.
    """

    reason: str


class Reloader:
    """Keeps a booted application up to date with its files.

    Args:
        app: the application, with `dev=True`; without it no last good versions are kept.
    """

    def __init__(self, app: Application) -> None:
        self._app = app
        self._space = ModuleSpace.of(app.root)
        self._settings = Settings.load(app.root)
        self._imports: dict[str, tuple[ModuleType, frozenset[str]]] = {}
        self._unfit: frozenset[str] = frozenset()
        self._undone: frozenset[str] = frozenset()
        self._held: Held | None = None
        self._pending: _Pending | None = None
        self._space.loader = FreshLoader
        take_turns()

    @property
    def is_behind(self) -> bool:
        """True if a rerun of hooks was abandoned for newer changes: another reload is due."""
        return self._held is not None and not self._held.broken

    def look_around(self) -> None:
        """Read the imports of each module now, to make the first reload faster."""
        with self._space.current():
            self._read_imports(self._space.loaded())

    def reload(self, changed: Iterable[str]) -> Reloaded | RestartNeeded | Starting | None:
        """Reload changed files.

        Called on the event loop, from a callback: no request runs meanwhile, and imported modules
        see no running loop, as at boot. The caller has abandoned startup hooks that still ran.

        Args:
            changed: files below the application root that are new, different or removed.

        Returns:
            The result; None if nothing that serves has changed. The caller begins a `Starting`, and
            calls `finish` when it has ended.

        Raises:
            SettingsError: a changed settings file is invalid; the former settings stay.
            BootError: `Api/` is missing; the former site continues to serve.
            BaseException: an import raised `KeyboardInterrupt`; everything is as before.
        """
        self._undone |= frozenset(changed)
        if self._pending is not None:
            change = self._let_go(self._pending)
            self._held, self._undone = self._hold(change), self._undone | change.others
        reason = self._unsettled(self._undone)
        return RestartNeeded(reason) if reason is not None else self._exchange()

    def finish(self, starting: Starting) -> Reloaded | RestartNeeded | Starting | None:
        """Complete a reload after its startup hooks have ended; called like `reload`."""
        pending = self._pending
        if pending is None or pending.starting is not starting:
            return None
        if starting.failure is None:
            with self._space.current():
                return self._take_over(pending, starting)
        change = self._let_go(pending)
        if starting.failure.is_taken:
            return RestartNeeded(_said(starting.failure))
        broken = _broken_start(starting.failure, self._space.root)
        get_logger().error("%s", broken.error, exc_info=starting.failure.error)
        self._held, self._undone = self._hold(change, (broken,)), change.others
        return self._exchange(holds=True)

    def _unsettled(self, changed: Collection[str]) -> str | None:
        if not self._app.installed.is_complete and is_wanted(self._app):
            return "the project has models now"
        names = sorted(name for name in changed if "/" not in name)
        for name in names:
            if name == ".env" or name.startswith(".env."):
                return f"{name} changed"
            if name in _SETTINGS_FILES and Settings.load(self._app.root) != self._settings:
                return f"the settings in {name} changed"
        return None

    def _exchange(self, *, holds: bool = False) -> Reloaded | RestartNeeded | Starting | None:
        outcome: Reloaded | RestartNeeded | Starting | None
        with self._space.current(), _no_loop():
            try:
                outcome = self._build(holds=holds)
            except _Restart as needed:
                outcome = RestartNeeded(str(needed))
            except _Blocked as blocked:
                self._held = self._hold(blocked.change, blocked.broken)
                self._undone = blocked.change.others
                return self._exchange(holds=True)
        self._undone = frozenset()
        return outcome

    def _build(self, *, holds: bool) -> Reloaded | Starting | None:
        started = time.perf_counter()
        app, former = self._app, self._app.site
        loaded = self._space.loaded()
        imports = self._read_imports(loaded)
        modules = Modules(self._space.root, loaded, imports)
        change = self._change(modules, former, holds=holds)
        for name in change.stale:
            if is_compiled(loaded[name]):
                raise _Restart(f"{modules.file_of(loaded[name])} is compiled")
        self._space.look_again()
        values = _Values(app)
        told = [*app.installed, *former.extensions]
        forgotten = [_forgotten(extension, change.stale) for extension in told]
        starting = None
        try:
            with Replacement(self._space, change.stale) as replacement:
                broken = self._held.broken if self._held is not None else ()
                site = build_site(app, former, modules_before=change.stale, broken=broken)
                if not _alike(former.extensions, site.extensions):
                    raise _Restart("extensions.py, or what it imports, changed")
                if _starts_over(former, site, change):
                    _check_start(former, site, change, modules)
                    if app.lifespan.started:
                        life = app.lifespan.life.next(View(app.root), app.providers.declared)
                        starting = Starting(app, former, site, life)
                needed = reached(modules_of(site.report.broken), imports)
                unfit = replacement.restore(needed)
                if starting is not None:
                    starting.life.view.modules = replacement.step_aside()
        except BaseException:
            values.restore()
            _remember(forgotten, change.stale)
            raise
        _remember(forgotten, unfit)
        fresh = change.stale - unfit
        pending = _Pending(
            starting=starting,
            site=site,
            change=change,
            replacement=replacement,
            values=values,
            unfit=frozenset(unfit),
            files=tuple(sorted({modules.file_of(loaded[name]) for name in fresh})),
            remember=partial(_remember, forgotten, fresh),
            started=started,
        )
        if starting is None:
            return self._swap(pending)
        values.restore()
        self._pending = pending
        return starting

    def _change(self, modules: Modules, former: Site, *, holds: bool) -> Change:
        held = self._held
        if held is not None and not holds and modules.wants(held, self._undone):
            self._undone, self._held = self._undone | held.files, None
        return modules.change(
            self._undone,
            self._unfit,
            starts=bool(former.on_startup),
            holds=self._held is not None,
        )

    def _swap(self, pending: _Pending, **facts: Any) -> Reloaded | None:
        app, served = self._app, self._app.site
        self._unfit = pending.unfit
        app.exchange_site(pending.site)
        for name in pending.change.stale - pending.unfit:
            self._imports.pop(name, None)  # otherwise old modules stay alive until the next reload
        used = set(app.providers.declared.values())
        return _outcome(
            served,
            pending.site,
            files=pending.files,
            replaced=tuple(p for p in pending.values.declared.values() if p not in used),
            seconds=time.perf_counter() - pending.started,
            **facts,
        )

    def _take_over(self, pending: _Pending, starting: Starting) -> Reloaded | None:
        """Swap modules, providers and site at once, after the startup hooks have succeeded."""
        self._pending = None
        app, life = self._app, starting.life
        former = app.lifespan.succeed(life, starting.ends)
        former.view.modules = pending.replacement.follow(life.view.modules)
        former.declared, app.providers.declared = app.providers.declared, dict(life.declared or {})
        life.view.modules, life.declared = {}, None
        outcome = self._swap(pending, started=tuple(starting.names), former=former)
        if app.providers.snapshot() != pending.values.added:
            app.replan()  # a startup hook has added a provider
        return outcome

    def _let_go(self, pending: _Pending) -> Change:
        """Discard a site whose startup hooks failed or were abandoned; return its reload plan."""
        self._pending = None
        pending.remember()
        pending.values.restore()
        return pending.change

    def _hold(self, change: Change, broken: tuple[BrokenFile, ...] = ()) -> Held:
        names = needed_by_hooks(self._space.root) | modules_of(broken)
        return Held(change.held, frozenset(names), broken)

    def _read_imports(self, loaded: dict[str, ModuleType]) -> dict[str, frozenset[str]]:
        known = self._imports
        self._imports = {
            name: known[name]
            if name in known and known[name][0] is module
            else (module, _imports_of(module))
            for name, module in loaded.items()
        }
        return {name: names for name, (_, names) in self._imports.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A site that waits for its startup hooks, with the data to swap it in or to discard it."""

    starting: Starting | None
    site: Site
    change: Change
    replacement: Replacement
    values: _Values
    unfit: frozenset[str]
    files: tuple[str, ...]
    remember: Callable[[], None]
    started: float


class _Values:
    """A snapshot of the application values that a build and startup hooks change."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self.declared = app.providers.declared
        self.added = app.providers.snapshot()
        self._mounted = app.mounts.snapshot()

    def restore(self) -> None:
        """Restore the snapshot."""
        self._app.providers.declared = self.declared
        self._app.providers.restore(dict(self.added))
        self._app.mounts.restore(dict(self._mounted))


class _Restart(Exception):
    """Ends a reload that requires a restart of the process."""


class _Blocked(Exception):
    """Ends a reload in which hooks cannot rerun."""

    def __init__(self, change: Change, broken: tuple[BrokenFile, ...]) -> None:
        super().__init__()
        self.change = change
        self.broken = broken


def _imports_of(module: ModuleType) -> frozenset[str]:
    file = getattr(module, "__file__", None)
    if file is None or not str(file).endswith(".py"):
        return frozenset()
    try:
        return imports_of(Path(file).read_bytes(), module.__package__ or "")
    except OSError:
        return frozenset()


def _starts_over(former: Site, site: Site, change: Change) -> bool:
    """Return True if hooks have changed; if `hooks.py` fails to import, if its imports have."""
    if _kept(site, frozenset({HOOKS})):
        return bool(change.over)
    other = other_hooks(site.on_startup, former.on_startup)
    return bool(other or other_hooks(former.on_startup, site.on_startup))


def _check_start(former: Site, site: Site, change: Change, modules: Modules) -> None:
    """Refuse a rerun of hooks after which two lives would share a module."""
    if change.over and (kept := _kept(site, change.over)):
        raise _Blocked(change, kept)
    if getattr(sys.modules.get(HOOKS), "restart_on_change", False):
        raise _Restart("a startup hook changed, and hooks.py says restart_on_change")
    ends = other_hooks(former.on_shutdown, site.on_shutdown)
    if former.on_startup and (shared := modules.in_both(change, ends=bool(ends))):
        raise _Restart(f"hooks.py changed, and extensions.py uses {shared} as well")


def _kept(site: Site, names: Collection[str]) -> tuple[BrokenFile, ...]:
    """The broken files that keep their former modules, among modules of these names."""
    broken = [one for one in site.report.broken if one.kept]
    return tuple(one for one in broken if not modules_of([one]).isdisjoint(names))


def _said(failure: Failure) -> str:
    text = " ".join(f"{type(failure.error).__name__}: {failure.error}".split())
    return f"startup hook {failure.hook} failed: {text}"


def _broken_start(failure: Failure, root: Path) -> BrokenFile:
    own = f"{root}/"
    frames = [f.f_code.co_filename for f, _ in traceback.walk_tb(failure.error.__traceback__)]
    files = [file.removeprefix(own) for file in frames if file.startswith(own)]
    cause = files[-1] if files else "hooks.py"
    found = broken_file("hooks.py", failure.error, cause=cause, kept=True)
    return replace(found, error=_said(failure))


def _alike(former: Collection[Any], now: Collection[Any]) -> bool:
    return list(map(id, former)) == list(map(id, now))


def _forgotten(extension: Any, names: Collection[str]) -> Callable[[frozenset[str]], Any] | None:
    """Call the `reload` of an extension with the removed modules; return its undo function."""
    tell = getattr(extension, "reload", None)
    return tell(frozenset(names)) if tell is not None else None


def _remember(
    forgotten: Iterable[Callable[[frozenset[str]], Any] | None], names: Collection[str]
) -> None:
    for remember in forgotten:
        if remember is not None and names:
            remember(frozenset(names))


def _outcome(served: Site, site: Site, **facts: Any) -> Reloaded | None:
    before = {(route.method, route.template, route.file): route for route in served.table.routes}
    after = {(route.method, route.template, route.file): route for route in site.table.routes}
    changed_report = served.report.broken != site.report.broken
    anything = facts["files"] or facts.get("former") or changed_report
    if not anything and before.keys() == after.keys():
        return None
    return Reloaded(
        added=tuple(route for key, route in after.items() if key not in before),
        removed=tuple(route for key, route in before.items() if key not in after),
        broken=site.report.broken,
        **facts,
    )


@contextmanager
def _no_loop() -> Generator[None]:
    """Hide the running loop: at boot there is none, and imported modules may rely on that."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
