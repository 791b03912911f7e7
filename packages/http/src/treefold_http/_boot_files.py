"""The files of a project that every request depends on, read at boot.

`Models/`, `Middleware/`, `providers.py`, `extensions.py` and `hooks.py` (rulings, 'Middleware,
lifecycle, background'). A file that fails is a fatal finding, and the others are still read, so
that a boot reports all failures at once. `_loader` reads the files of handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from treefold_http._errors import BootError
from treefold_http._findings import Findings
from treefold_http._installed import install, model_modules
from treefold_http._middleware import check_entry, prepare_entries
from treefold_http._modules import ModuleSpace

if TYPE_CHECKING:
    from treefold_http._application import Application


class BootFiles(NamedTuple):
    """The entries of the boot files, in their order."""

    middlewares: Sequence[Any]
    extensions: Sequence[Any]
    on_startup: Sequence[Callable[..., Any]]
    on_shutdown: Sequence[Callable[..., Any]]


def read_boot_files(app: Application, space: ModuleSpace, findings: Findings) -> BootFiles:
    """Import the models and read the boot files; add failures to the findings.

    In a reload, a file that fails keeps its previous entries.
    """
    _load_models(app, space, findings)
    middlewares = findings.boot_file(
        lambda: _middlewares(space, findings), lambda site: site.listed
    )
    _provide(app, space, findings)
    extensions = findings.boot_file(
        lambda: _extensions(app, space, findings), lambda site: site.extensions
    )
    on_startup, on_shutdown = findings.boot_file(
        lambda: _hooks(space, findings), lambda site: (site.on_startup, site.on_shutdown)
    )
    middlewares = findings.boot_file(
        lambda: _prepared(app, middlewares, extensions, findings), lambda site: site.listed
    )
    return BootFiles(middlewares, extensions, on_startup, on_shutdown)


def load_models(app: Application) -> None:
    """Set installed extensions up and import the models of a project, and no other module of it.

    For tools that need no handler. A boot that follows imports the same modules.

    Raises:
        BootError: an extension or a model cannot be used; the message says which.
    """
    space = ModuleSpace.of(app.root)
    space.enter()
    findings = Findings(str(space.root))
    _load_models(app, space, findings)
    if findings.fatal is not None:
        raise BootError(f"{findings.fatal.file} cannot be used: {findings.fatal.error}")


def load_middlewares(app: Application) -> Sequence[Any]:
    """Read the boot files of a project, and no handler; return the entries of `Middleware/`.

    For tools that serve nothing: extensions are set up, entries are made ready, hooks do not run.

    Raises:
        BootError: a boot file cannot be used; the message says which.
    """
    space = ModuleSpace.of(app.root)
    space.enter()
    findings = Findings(str(space.root))
    files = read_boot_files(app, space, findings)
    if findings.fatal is not None:
        raise BootError(f"{findings.fatal.file} cannot be used: {findings.fatal.error}")
    return files.middlewares


def _load_models(app: Application, space: ModuleSpace, findings: Findings) -> None:
    """Set installed extensions up, then import every module below `Models/` (rulings, 'ORM')."""
    if findings.former is None:
        install(app, lambda name, error: findings.add(name, error, fatal=True))
        if findings.fatal is not None:
            return
    for name in model_modules(space.root):
        try:
            space.load(name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            findings.add(f"{name.replace('.', '/')}.py", error, fatal=True)


def _boot_module(space: ModuleSpace, name: str, findings: Findings) -> ModuleType | None:
    file = space.root / f"{name}.py"
    if not file.is_file() and not (space.root / name / "__init__.py").is_file():
        return None
    shown = file.name if file.is_file() else f"{name}/__init__.py"
    try:
        return space.load(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        findings.add(shown, error, fatal=True)
        return None


def _listed(module: ModuleType | None, name: str) -> Sequence[Any]:
    entries: Any = getattr(module, name, [])
    if not isinstance(entries, (list, tuple)):
        raise TypeError(f"`{name}` is {type(entries).__qualname__!r}; make it a list")
    return cast("Sequence[Any]", entries)


def _middlewares(space: ModuleSpace, findings: Findings) -> Sequence[Any]:
    module = _boot_module(space, "Middleware", findings)
    try:
        listed = _listed(module, "middlewares")
        for entry in listed:
            check_entry(entry)
    except TypeError as error:
        findings.add("Middleware/__init__.py", error, fatal=True)
        return []
    return listed


def _prepared(
    app: Application, entries: Sequence[Any], extensions: Sequence[Any], findings: Findings
) -> Sequence[Any]:
    try:
        prepare_entries(app, entries, [*app.installed, *extensions])
    except Exception as error:
        findings.add("Middleware/__init__.py", error, fatal=True)
        return []
    return entries


def _callables(
    module: ModuleType | None, name: str, findings: Findings
) -> Sequence[Callable[..., Any]]:
    try:
        listed = _listed(module, name)
        for entry in listed:
            if not callable(entry):
                raise TypeError(
                    f"`{name}` holds {entry!r}, which cannot be called; make it a list of functions"
                )
    except TypeError as error:
        findings.add("hooks.py", error, fatal=True)
        return []
    return listed


def _hooks(
    space: ModuleSpace, findings: Findings
) -> tuple[Sequence[Callable[..., Any]], Sequence[Callable[..., Any]]]:
    module = _boot_module(space, "hooks", findings)
    return (
        _callables(module, "on_startup", findings),
        _callables(module, "on_shutdown", findings),
    )


def _provide(app: Application, space: ModuleSpace, findings: Findings) -> None:
    count = len(findings.broken)
    module = _boot_module(space, "providers", findings)
    if len(findings.broken) > count:
        return
    providers: Any = getattr(module, "providers", {})
    try:
        if not isinstance(providers, dict):
            raise TypeError(f"`providers` is {type(providers).__qualname__!r}; make it a dict")
        app.providers.declare(cast("dict[Any, Any]", providers))
    except TypeError as error:
        findings.add("providers.py", error, fatal=True)


def _extensions(app: Application, space: ModuleSpace, findings: Findings) -> Sequence[Any]:
    module = _boot_module(space, "extensions", findings)
    try:
        listed = _listed(module, "extensions")
        for extension in listed if findings.former is None else ():
            if (setup := getattr(extension, "setup", None)) is not None:
                setup(app)
    except (Exception, SystemExit) as error:
        findings.add("extensions.py", error, fatal=True)
        return []
    return listed
