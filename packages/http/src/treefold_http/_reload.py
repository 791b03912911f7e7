"""Reload: changed files in, another site beside the running one out; then they change places.

What changed and what imports it is imported anew, everything else stays the object that it is. What
fails keeps its last good version. Nothing is watched here, and no request passes through.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ExtensionFileLoader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from treefold_http._boot import Site, build_site
from treefold_http._findings import BrokenFile
from treefold_http._imports import held_by, imports_of, reached
from treefold_http._modules import ModuleSpace, dotted, take_turns
from treefold_http._providers import Provider
from treefold_http._replacement import FreshLoader, Replacement
from treefold_http._settings import Settings
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._application import Application

_SETTINGS_FILES = frozenset({"pyproject.toml", "treefold.toml"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reloaded:
    """Another site serves now.

    Attributes:
        files: what was imported anew, below the application root.
        added: routes that are new.
        removed: routes that are gone.
        broken: every file that does not load now, an older failure included.
        seconds: how long it took.
        replaced: providers whose values of the application are given to nobody any more.
    """

    files: tuple[str, ...]
    added: tuple[Route, ...]
    removed: tuple[Route, ...]
    broken: tuple[BrokenFile, ...]
    seconds: float
    replaced: tuple[Provider, ...]


@dataclass(frozen=True, slots=True)
class RestartNeeded:
    """A change that only another process can take up; what served goes on serving.

    Attributes:
        reason: why, in one line.
    """

    reason: str


class Reloader:
    """Keeps a booted application as its files are.

    Args:
        app: the application; it runs with `dev=True`, or nothing is kept to fall back on.
    """

    def __init__(self, app: Application) -> None:
        self._app = app
        self._space = ModuleSpace.of(app.root)
        self._settings = Settings.load(app.root)
        self._imports: dict[str, tuple[ModuleType, frozenset[str]]] = {}
        self._unfit: set[str] = set()
        self._undone: set[str] = set()
        self._space.loader = FreshLoader
        take_turns()

    def look_around(self) -> None:
        """Read what each module imports, which the first reload would have to do otherwise."""
        with self._space.current():
            self._read_imports(self._space.loaded())

    def reload(self, changed: Iterable[str]) -> Reloaded | RestartNeeded | None:
        """Take up changed files.

        It is called on the event loop, from a callback: no request runs meanwhile, and what is
        imported sees no running loop, as at boot.

        Args:
            changed: files below the application root that are new, different or gone.

        Returns:
            What came of it; None where nothing that serves has changed.

        Raises:
            SettingsError: a changed settings file is wrong; the former settings stay.
            BootError: there is no `Api/` any more; what served goes on serving.
            BaseException: what the import of a module could not be kept from raising
                (KeyboardInterrupt). Everything is as before.
        """
        self._undone |= set(changed)
        reason = self._unsettled(self._undone)
        if reason is None:
            with self._space.current(), _no_loop():
                outcome = self._exchange(self._undone)
        else:
            outcome = RestartNeeded(reason)
        self._undone = set()
        return outcome

    def _unsettled(self, changed: Collection[str]) -> str | None:
        names = sorted(name for name in changed if "/" not in name)
        for name in names:
            if name == ".env" or name.startswith(".env."):
                return f"{name} changed"
            if name in _SETTINGS_FILES and Settings.load(self._app.root) != self._settings:
                return f"the settings in {name} changed"
        return None

    def _exchange(self, changed: Collection[str]) -> Reloaded | RestartNeeded | None:
        started = time.perf_counter()
        app, former = self._app, self._app.site
        declared = app.providers.declared
        loaded = self._space.loaded()
        imports = self._read_imports(loaded)
        stale = self._stale(changed, loaded, imports)
        for name in stale:
            if isinstance(loaded[name].__loader__, ExtensionFileLoader):
                return RestartNeeded(f"{self._file_of(loaded[name])} is compiled")
        self._space.look_again()
        told = [getattr(app, "databases", None), *former.extensions]
        forgotten = [_forgotten(extension, stale) for extension in told]
        try:
            with Replacement(self._space, stale) as replacement:
                site = build_site(app, former, modules_before=stale)
                if reason := _starts_anew(former, site):
                    raise _Restart(reason)
                needed = reached(_modules_of(site.report.broken), imports)
                self._unfit = replacement.restore(needed)
        except BaseException as error:
            app.providers.declared = declared
            _remember(forgotten, stale)
            if isinstance(error, _Restart):
                return RestartNeeded(str(error))
            raise
        _remember(forgotten, self._unfit)
        app.exchange_site(site)
        for name in stale - self._unfit:
            del self._imports[name]  # or they would live until the next reload
        used = set(app.providers.declared.values())
        return _outcome(
            former,
            site,
            files=tuple(sorted({self._file_of(loaded[n]) for n in stale if n not in self._unfit})),
            replaced=tuple(made for made in declared.values() if made not in used),
            seconds=time.perf_counter() - started,
        )

    def _read_imports(self, loaded: dict[str, ModuleType]) -> dict[str, frozenset[str]]:
        known = self._imports
        self._imports = {
            name: known[name]
            if name in known and known[name][0] is module
            else (module, _imports_of(module))
            for name, module in loaded.items()
        }
        return {name: names for name, (_, names) in self._imports.items()}

    def _stale(
        self,
        changed: Collection[str],
        loaded: dict[str, ModuleType],
        imports: dict[str, frozenset[str]],
    ) -> set[str]:
        importers: dict[str, set[str]] = {}
        for name, module in loaded.items():
            for imported in {*imports[name], *held_by(module)} - {name}:
                importers.setdefault(imported, set()).add(name)
        # By name too: what failed to import a module, or its package, may want it now.
        seeds = {_module_name(path) for path in changed} | self._unfit
        seeds |= {name for name, module in loaded.items() if self._file_of(module) in changed}
        return reached(seeds, importers) & loaded.keys()

    def _file_of(self, module: ModuleType) -> str:
        file = getattr(module, "__file__", None)
        if file is None:
            return ""
        return str(file)[len(str(self._space.root)) + 1 :].replace("\\", "/")


class _Restart(Exception):
    """Ends an exchange that would leave something started by old code only."""


def _imports_of(module: ModuleType) -> frozenset[str]:
    file = getattr(module, "__file__", None)
    if file is None or not str(file).endswith(".py"):
        return frozenset()
    try:
        return imports_of(Path(file).read_bytes(), module.__package__ or "")
    except OSError:
        return frozenset()


def _starts_anew(former: Site, site: Site) -> str | None:
    """Why a site cannot take over: what has been started by old code is to be started by new."""
    if not _alike(former.extensions, site.extensions):
        return "extensions.py, or what it imports, changed"
    if not _alike(former.on_startup, site.on_startup):
        return "a startup hook changed"
    return None


def _alike(former: Collection[Any], now: Collection[Any]) -> bool:
    return list(map(id, former)) == list(map(id, now))


def _forgotten(extension: Any, names: set[str]) -> Callable[[frozenset[str]], Any] | None:
    """Tell an extension which modules go, by its method `reload`; give what takes that back."""
    tell = getattr(extension, "reload", None)
    return tell(frozenset(names)) if tell is not None else None


def _remember(forgotten: Iterable[Callable[[frozenset[str]], Any] | None], names: set[str]) -> None:
    for remember in forgotten:
        if remember is not None and names:
            remember(frozenset(names))


def _modules_of(broken: Iterable[BrokenFile]) -> set[str]:
    files = [one for one in broken if one.kept]
    return {_module_name(f) for one in files for f in (f"Api/{one.file}", one.file, one.cause)}


def _module_name(path: str) -> str:
    return dotted(path.removesuffix(".py").removesuffix("/__init__"))


def _outcome(former: Site, site: Site, **facts: Any) -> Reloaded | None:
    before = {(route.method, route.template, route.file): route for route in former.table.routes}
    after = {(route.method, route.template, route.file): route for route in site.table.routes}
    changed_report = former.report.broken != site.report.broken
    if not facts["files"] and before.keys() == after.keys() and not changed_report:
        return None
    return Reloaded(
        added=tuple(route for key, route in after.items() if key not in before),
        removed=tuple(route for key, route in before.items() if key not in after),
        broken=site.report.broken,
        **facts,
    )


@contextmanager
def _no_loop() -> Generator[None]:
    """Hide the running loop: at boot there is none, and what is imported may rely on it."""
    loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(loop)
