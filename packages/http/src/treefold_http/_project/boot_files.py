"""The files of a project that every request depends on, read at boot.

`Models/`, `Middleware/`, `settings.py`, `providers.py`, `extensions.py` and `hooks.py`. A file that
fails is a fatal finding, and the others are still read, so that a boot reports all failures at
once. `_plans.handlers` reads the files of handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from treefold_http._chains.middleware_chain import (
    check_middleware_entry,
    prepare_middleware_entries,
)
from treefold_http._extensions.calls import call_extension_setup
from treefold_http._failures.error_format import ErrorFormat, as_error_format
from treefold_http._injection.providers import Provider
from treefold_http._modules.modules import ModuleSpace
from treefold_http._plans.installed import install, list_model_modules
from treefold_http._project.app_settings import (
    FILE,
    NAME,
    GivenSettings,
    RefusedSettings,
    read_app_settings,
    refuse_settings_without_model,
)
from treefold_http._project.findings import Findings
from treefold_http._project.loaded_project import BootFiles
from treefold_http._runtime.boot_report import BootError, SettingsError
from treefold_http._wire.aliases import AnyCallable

if TYPE_CHECKING:
    from treefold_http._plans.runtime import ProjectRuntime


T = TypeVar("T")

MIDDLEWARE = "Middleware/__init__.py"


def read_boot_files(app: ProjectRuntime, space: ModuleSpace, findings: Findings) -> BootFiles:
    """Import the models and read the boot files; add failures to the findings.

    In a reload, a file that fails keeps its previous entries.
    """
    _install_and_load_models(app, space, findings)
    middlewares = findings.read_or_keep_former(
        lambda: _load_listed_middlewares(space, findings), lambda former: former.middlewares
    )
    _register_providers(app, space, findings)
    extensions = findings.read_or_keep_former(
        lambda: _load_and_set_up_extensions(app, space, findings),
        lambda former: former.extensions,
    )
    app.injection.extensions[:] = [*app.installed, *extensions]
    on_startup, on_shutdown, error_format = findings.read_or_keep_former(
        lambda: _load_hooks(space, findings),
        lambda former: (former.on_startup, former.on_shutdown, former.error_format),
    )
    middlewares = findings.read_or_keep_former(
        lambda: _prepare_middlewares(app, middlewares, extensions, findings),
        lambda former: former.middlewares,
    )
    return BootFiles(middlewares, extensions, on_startup, on_shutdown, error_format)


def load_models(app: ProjectRuntime) -> None:
    """Set installed extensions up and import the models of a project, and no other module of it.

    For tools that need no handler. A boot that follows imports the same modules.

    Raises:
        BootError: an extension or a model cannot be used; the message says which.
    """
    _call_reader_or_raise(app, _install_and_load_models)


def load_boot_files(app: ProjectRuntime) -> BootFiles:
    """Read the boot files of a project, which may add mounts, and no handler; hooks do not run.

    Raises:
        BootError: a boot file cannot be used; the message says which.
    """
    return _call_reader_or_raise(app, read_boot_files)


def _call_reader_or_raise(
    app: ProjectRuntime, read: Callable[[ProjectRuntime, ModuleSpace, Findings], T]
) -> T:
    space = ModuleSpace.get_or_create_space(app.root)
    space.make_current_root()
    findings = Findings(str(space.root))
    result = read(app, space, findings)
    if findings.fatal is not None:
        raise BootError(findings.fatal_message)
    return result


def _install_and_load_models(app: ProjectRuntime, space: ModuleSpace, findings: Findings) -> None:
    """Set installed extensions up, then import every module below `Models/`."""
    # a reload keeps the installed extensions that the process has set up
    if findings.former is None:
        install(app, lambda name, error: findings.record_failure(name, error, fatal=True))
        if findings.fatal is not None:
            return
    for name in list_model_modules(space.root):
        _load_module_or_record(space, name, f"{name.replace('.', '/')}.py", findings)


def _load_boot_module(space: ModuleSpace, name: str, findings: Findings) -> ModuleType | None:
    file = space.root / f"{name}.py"
    if not file.is_file() and not (space.root / name / "__init__.py").is_file():
        return None
    shown = file.name if file.is_file() else f"{name}/__init__.py"
    return _load_module_or_record(space, name, shown, findings)


def _load_module_or_record(
    space: ModuleSpace, name: str, file_name: str, findings: Findings
) -> ModuleType | None:
    try:
        return space.load_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        findings.record_failure(file_name, error, fatal=True)
        return None


def _read_list(module: ModuleType | None, name: str) -> Sequence[Any]:
    entries: Any = getattr(module, name, [])
    if not isinstance(entries, (list, tuple)):
        raise TypeError(f"`{name}` must be a list, got {type(entries).__qualname__!r}")
    return cast("Sequence[Any]", entries)


def _load_listed_middlewares(space: ModuleSpace, findings: Findings) -> Sequence[Any]:
    module = _load_boot_module(space, "Middleware", findings)
    try:
        listed = _read_list(module, "middlewares")
        for entry in listed:
            check_middleware_entry(entry)
    except TypeError as error:
        findings.record_failure(MIDDLEWARE, error, fatal=True)
        return []
    return listed


def _prepare_middlewares(
    app: ProjectRuntime, entries: Sequence[Any], extensions: Sequence[Any], findings: Findings
) -> Sequence[Any]:
    try:
        prepare_middleware_entries(app, entries, [*app.installed, *extensions])
    except Exception as error:
        findings.record_failure(MIDDLEWARE, error, fatal=True)
        return []
    return entries


def _read_callables(
    module: ModuleType | None, name: str, findings: Findings
) -> Sequence[AnyCallable]:
    try:
        listed = _read_list(module, name)
        for entry in listed:
            if not callable(entry):
                raise TypeError(f"`{name}` must be a list of functions, got the entry {entry!r}")
    except TypeError as error:
        findings.record_failure("hooks.py", error, fatal=True)
        return []
    return listed


_Hooks: TypeAlias = tuple[Sequence[AnyCallable], Sequence[AnyCallable], ErrorFormat | None]


def _load_hooks(space: ModuleSpace, findings: Findings) -> _Hooks:
    module = _load_boot_module(space, "hooks", findings)
    return (
        _read_callables(module, "on_startup", findings),
        _read_callables(module, "on_shutdown", findings),
        _read_error_format(module, findings),
    )


def _read_error_format(module: ModuleType | None, findings: Findings) -> ErrorFormat | None:
    declared: Any = getattr(module, "error_format", None)
    try:
        return None if declared is None else as_error_format(declared)
    except (TypeError, ValueError) as error:
        findings.record_failure("hooks.py", error, fatal=True)
        return None


def _build_settings_provider(
    app: ProjectRuntime, space: ModuleSpace, findings: Findings
) -> Mapping[Any, Provider]:
    """Return the provider of the project's own settings, if `settings.py` has their model.

    In a reload, a file that fails keeps its previous provider; values that do not fit a changed
    model are an error of the requests that take them.
    """
    values, count = app.settings.app, len(findings.broken)
    model = getattr(_load_boot_module(space, FILE.removesuffix(".py"), findings), NAME, None)
    if len(findings.broken) > count:
        declared = app.providers.declared.items()
        return {key: one for key, one in declared if isinstance(one.factory, GivenSettings)}
    try:
        if model is None:
            refuse_settings_without_model(values)
            return {}
        return {model: Provider(read_app_settings(model, values), scope="app")}
    except SettingsError as error:
        findings.record_setting_failure(str(error))
        return {model: Provider(RefusedSettings(error))} if isinstance(model, type) else {}


def _register_providers(app: ProjectRuntime, space: ModuleSpace, findings: Findings) -> None:
    settings = _build_settings_provider(app, space, findings)
    count = len(findings.broken)
    module = _load_boot_module(space, "providers", findings)
    # the former providers stay declared
    if len(findings.broken) > count:
        return
    providers: Any = getattr(module, "providers", {})
    try:
        if not isinstance(providers, dict):
            raise TypeError(f"`providers` must be a dict, got {type(providers).__qualname__!r}")
        app.providers.replace_declared_providers({**settings, **cast("dict[Any, Any]", providers)})
    except TypeError as error:
        findings.record_failure("providers.py", error, fatal=True)


def _load_and_set_up_extensions(
    app: ProjectRuntime, space: ModuleSpace, findings: Findings
) -> Sequence[Any]:
    module = _load_boot_module(space, "extensions", findings)
    try:
        listed = _read_list(module, "extensions")
        # once for each process: other extensions restart it
        for extension in listed if findings.former is None else ():
            call_extension_setup(extension, app)
    except (Exception, SystemExit) as error:
        findings.record_failure("extensions.py", error, fatal=True)
        return []
    return listed
