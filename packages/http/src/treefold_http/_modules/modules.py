"""The Python modules of one application root, kept apart from those of every other root.

A project's top-level names (`Api`, `Services`, `hooks`, ...) are imported from its own root by an
import finder of this module; nothing is put on `sys.path`. `sys.modules` can hold one `Api` only,
so each root keeps its modules in its own space, and the entries are swapped while another root
imports. With one root in the process, as in every production server, nothing is ever swapped.
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
import threading
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import resolve_name, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar, cast

from treefold_http._modules.former_modules import FormerModules, find_modules_of_thread
from treefold_http._modules.source_loader import SourceLoader, run_module
from treefold_http._modules.version_files import VersionFiles
from treefold_http._wire.interpreter import find_caller_frame

if TYPE_CHECKING:
    from treefold_http._modules.inherited import InheritanceGuard

_FOLDERS = frozenset({"Api", "Middleware", "Models", "Services", "Tests", "Utils"})
PROJECT_NAMES = _FOLDERS | {"extensions", "hooks", "providers", "schedules", "settings"}
"""Top-level names that always resolve to the project; other names only if nothing else has them."""

_lock = threading.RLock()  # re-entered by imports inside of an import
_current: ModuleSpace | None = None
_plain_import = builtins.__import__
_plain_import_module = importlib.import_module


class ModuleSpace:
    """Import modules of one root; `get_or_create_space` returns its only space in this process.

    Args:
        root: the folder that holds `Api/`.

    Attributes:
        names: top-level names of the root's own modules.
        tops: those and the other folders of the root, which `sys.path` may make packages.
        loader: the loader class of its modules.
        former: during a reload, the modules that run meanwhile.
        late: names of modules that code outside of a reload has imported beside it: they hold
            objects of former modules, and are to be removed.
        computed: by the name of a module, those that it has imported by `importlib.import_module`.
        guard: checks the files that a version inherits, once a boot has loaded all others.
        versions: the files of versions that inherit.
    """

    _spaces: ClassVar[dict[Path, ModuleSpace]] = {}

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = f"{root}/"
        self._scan_top_level_names()
        self.loader = SourceLoader
        self.former: FormerModules | None = None
        self.late: set[str] = set()
        self.computed: dict[str, set[str]] = {}
        self.guard: InheritanceGuard | None = None
        self.versions = VersionFiles(f"{root}/Api")
        self._parked: dict[str, ModuleType] = {}
        self._foreign: dict[str, ModuleType] = {}
        self._known: dict[str, int] = {}

    @classmethod
    def get_or_create_space(cls, root: Path) -> ModuleSpace:
        """Return the space of a root: two applications on one root share their modules."""
        root = root.resolve()
        if root not in cls._spaces:
            cls._spaces[root] = cls(root)
        return cls._spaces[root]

    def load_module(self, name: str) -> ModuleType:
        """Import a module by its dotted name, such as `Services.mail`; once, like any import.

        Raises:
            ImportError: when there is none.
        """
        with self.as_current_root():
            return importlib.import_module(name)

    def import_file_once(
        self, top_folder: str, file: str, packages: Collection[str], *, source: str | None = None
    ) -> tuple[ModuleType, bool]:
        """Import a file by its path, such as `v1/User/[id]/Get.py` below `Api`.

        The module is the one that `importlib.import_module("Api.v1.User.[id].Get")` returns, and
        relative imports in it resolve inside its folder.

        Args:
            top_folder: a folder of the root.
            packages: the folders below `top_folder` that hold an `__init__.py`; looking for it in
                all folders would take a fifth of a boot.
            source: the file to run, if it lies in another folder than `file`, which names the
                module.

        Returns:
            The module, and True if this call has run it.
        """
        inside, _, leaf = file.removesuffix(".py").rpartition("/")
        folder = f"{top_folder}/{inside}" if inside else top_folder
        package_name = folder_to_package_name(folder)
        name = f"{package_name}.{leaf}"
        with self.as_current_root():
            # another file may have imported the handler by its name
            if (known := sys.modules.get(name)) is not None:
                return known, False
            self._import_packages(top_folder, inside, packages)
            path = f"{self._prefix}{top_folder}/{source or file}"
            spec = ModuleSpec(name, self.loader(name, path, self), origin=path)
            spec.has_location = True
            module = _create_module(spec, package_name)
            module.__file__ = path
            # before it runs, as in any import: a module that imports it back finds it
            sys.modules[name] = module
            try:
                run_module(module, cast("SourceLoader", spec.loader))
            except BaseException:
                sys.modules.pop(name, None)
                raise
            if (package := sys.modules.get(package_name)) is not None:
                setattr(package, leaf, module)
            return module, True

    def find_loaded_modules(self) -> dict[str, ModuleType]:
        """Return the root's modules by dotted name; the root must be the current one."""
        known, self._known = self._known, {}
        found: dict[str, ModuleType] = {}
        # Copied at once: in the middle of `list(...items())` Python 3.11 may collect garbage, whose
        # finalizers import modules.
        for name, module in sys.modules.copy().items():
            if known.get(name) == id(module) or (
                name.partition(".")[0] in self.tops and self._is_module_below_root(module)
            ):
                found[name], self._known[name] = module, id(module)
        return found

    def _is_module_below_root(self, module: ModuleType) -> bool:
        # As text: the first reload checks every module, and a Path takes as long as an import.
        paths = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        own = f"{self.root.as_posix()}/"
        return any(p is not None and f"{p}/".replace(os.sep, "/").startswith(own) for p in paths)

    def refresh_top_level_names(self) -> None:
        """Update the top-level names from the disk; the root must be the current one."""
        self._scan_top_level_names()
        self._remove_foreign_modules()
        # finders keep the listing of a folder by its time of change, which may be too coarse
        importlib.invalidate_caches()

    def _scan_top_level_names(self) -> None:
        self.names = PROJECT_NAMES | _find_top_level_names(self.root)
        folders = {e.name for e in os.scandir(self.root) if e.name.isidentifier() and e.is_dir()}
        self.tops = self.names | (folders - sys.stdlib_module_names)

    def unload_module(self, module: ModuleType) -> None:
        """Remove a module from `sys.modules`, so that the next import runs it again."""
        with self.as_current_root():
            sys.modules.pop(module.__name__, None)

    def remove_modules_imported_meanwhile(self) -> None:
        """Remove the modules that were imported beside a reload, once it has ended.

        One whose import has not ended waits for the next call: Python looks for it at its end. The
        root must be the current one.
        """
        for name in list(self.late) if self.former is None else ():
            spec = getattr(sys.modules.get(name), "__spec__", None)
            if spec is None or not spec._initializing:
                self.late.discard(name)
                remove_module(name)

    def _import_packages(self, top: str, inside: str, packages: Collection[str]) -> None:
        """Import the packages of a handler that have an `__init__.py`, outermost first.

        A folder without one becomes a package when it is first imported: most never are, and 1,000
        routes have 2,500.
        """
        if not packages:
            return
        steps = inside.split("/") if inside else []
        for count in range(len(steps) + 1):
            package = "/".join(steps[:count])
            if package not in packages:
                continue
            path = "/".join([top, *steps[:count]])
            name = folder_to_package_name(path)
            if name not in sys.modules and self._has_init_file(path):
                importlib.import_module(name)

    def _has_init_file(self, folder: str) -> bool:
        if os.path.isfile(f"{self._prefix}{folder}/__init__.py"):
            return True
        return f"{folder}/__init__.py".removeprefix("Api/") in self.versions.layers.files

    @contextmanager
    def as_current_root(self) -> Generator[None]:
        """Put this root's modules into `sys.modules`, and restore the former root's at the end."""
        with _lock:
            former = _current
            self.make_current_root()
            try:
                yield
            finally:
                if former is not None and former is not self:
                    former.make_current_root()

    def make_current_root(self) -> None:
        """Make this the current root, from which `import Api` imports."""
        global _current  # sys.modules is global, and so is the root it belongs to
        with _lock:
            if _current is self:
                return
            if _current is not None:
                _current._swap_out_modules()
                # not before the second root: a server with one keeps Python's own import
                patch_import_functions()
            self._remove_foreign_modules()
            sys.modules.update(self._parked)
            self._parked = {}
            _current = self

    def _remove_foreign_modules(self) -> None:
        """Remove foreign modules from `sys.modules` whose names this project defines itself."""
        for name in PROJECT_NAMES & sys.modules.keys():
            is_own = self._owns_module(sys.modules[name])
            if not is_own and self.find_module_spec(name, None) is not None:
                inner = [other for other in sys.modules if other.startswith(f"{name}.")]
                self._foreign |= {each: sys.modules.pop(each) for each in (name, *inner)}

    def _swap_out_modules(self) -> None:
        mine = [name for name in sys.modules if name.partition(".")[0] in self.tops]
        own = [name for name in mine if self._owns_module(sys.modules[name])]
        self._parked = {name: sys.modules.pop(name) for name in own}
        sys.modules.update(self._foreign)
        self._foreign = {}

    def _owns_module(self, module: ModuleType) -> bool:
        paths = [getattr(module, "__file__", None), *getattr(module, "__path__", ())]
        real = (Path(os.path.realpath(path)) for path in paths if path is not None)
        return any(path.is_relative_to(self.root) for path in real)

    def find_sys_path_spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Return the spec of a module below this root that `sys.path` leads to; None for others."""
        package, _, _ = name.rpartition(".")
        if name.partition(".")[0] not in self.tops:
            return None
        if path is not None:
            own = self._prefix + package.replace(".", "/")
            return self.find_module_spec(name, path) if own in path else None
        if (found := PathFinder.find_spec(name)) is None:
            return None
        places = list(found.submodule_search_locations or filter(None, [found.origin]))
        folders = {os.path.realpath(os.path.dirname(place)) for place in places}
        return self.find_module_spec(name, None) if folders == {str(self.root)} else None

    def find_module_spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        """Return the spec of a module below this root, or None."""
        spec = self._find_file_spec(name, path)
        if spec is None:
            return None
        # exactly this class: compiled extensions, and loaders of other tools, stay
        if type(spec.loader) is SourceFileLoader:
            spec.loader = self.loader(name, spec.loader.path, self)
        if spec.submodule_search_locations is not None:
            # A plain list: the lazy path of a namespace package would search sys.path again.
            spec.submodule_search_locations = list(spec.submodule_search_locations)
            if not spec.has_location:
                spec.loader = _FolderLoader()
        return spec

    def _find_file_spec(self, name: str, path: Sequence[str] | None) -> ModuleSpec | None:
        # `Api.v2` and what is below it
        if name.startswith("Api.v") and name.split(".")[1] in self.versions.layers.chains:
            from treefold_http._modules.inherited import find_inherited_spec

            return find_inherited_spec(self, name, path)
        return PathFinder.find_spec(name, path or [str(self.root)]) or _find_dotted_folder_spec(
            name, path
        )


class _FolderLoader(Loader):
    """Creates the package of a folder without `__init__.py`, with its loaded handlers."""

    def exec_module(self, module: ModuleType) -> None:
        attach_submodules(module)


def remove_module(name: str) -> None:
    """Remove a module from `sys.modules` and from its package, where `from` finds it as well."""
    module = sys.modules.pop(name, None)
    package, _, leaf = name.rpartition(".")
    names = vars(sys.modules[package]) if package in sys.modules else {}
    if module is not None and names.get(leaf) is module:
        names.pop(leaf, None)


def attach_submodules(package: ModuleType) -> None:
    """Set the submodules that were loaded before a package as its attributes.

    `import a.b` sets `b` on `a` only when it loads `b`.
    """
    prefix = f"{package.__name__}."
    for name, module in sys.modules.copy().items():
        if name.startswith(prefix) and "." not in name.removeprefix(prefix):
            setattr(package, name.removeprefix(prefix), module)


def _find_dotted_folder_spec(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of a folder with a dot in its name, which no finder of Python looks for."""
    leaf = name.rpartition(".")[2]
    if "%2E" not in leaf:
        return None
    folders = [os.path.join(entry, leaf.replace("%2E", ".")) for entry in path or ()]
    if (folder := next(filter(os.path.isdir, folders), None)) is None:
        return None
    init = os.path.join(folder, "__init__.py")
    if os.path.isfile(init):
        return spec_from_file_location(name, init, submodule_search_locations=[folder])
    spec = ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [folder]
    return spec


def patch_import_functions() -> None:
    """Replace Python's import functions by ones that take the lock of this module.

    An import in a project waits while another root holds `sys.modules`. During a reload in another
    thread it finds the former modules at once: an import there may take long, or never end.
    """
    builtins.__import__ = _import_in_own_space
    patch_import_module_to_track()


def patch_import_module_to_track() -> None:
    """Note which modules import others by `importlib.import_module`: sources do not say it."""
    importlib.import_module = _import_module_in_own_space


def _find_top_level_names(root: Path) -> frozenset[str]:
    """Top-level modules of the root that shadow nothing of the standard library."""
    found = {entry.stem for entry in root.glob("*.py")}
    found |= {entry.name for entry in root.iterdir() if (entry / "__init__.py").is_file()}
    return frozenset(name for name in found if name not in sys.stdlib_module_names)


def folder_to_package_name(path: str) -> str:
    """Return the package name of a folder below the root."""
    # A dot in a folder name must not look like a separator: `foo.bar` is not `foo/bar`.
    return path.replace(".", "%2E").replace("/", ".")


def _create_module(spec: ModuleSpec, package: str) -> ModuleType:
    """Create a module as `module_from_spec`, but faster: 1,000 routes have 3,500 modules."""
    module = ModuleType(spec.name)
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__package__ = package
    return module


class _ReservedNameFinder(MetaPathFinder):
    """The first finder: resolves the names of the project layout in the current root.

    And those of the root's files that Python finds itself, as with `PYTHONPATH=.`: its own loader
    would trust the bytecode of a former save.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if _current is None:
            return None
        if fullname.partition(".")[0] in PROJECT_NAMES:
            return _current.find_module_spec(fullname, path)
        return _current.find_sys_path_spec(fullname, path)


class _OtherNameFinder(MetaPathFinder):
    """The last finder: resolves other modules of the root, if no installed one exists (S-120)."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if _current is None or fullname.partition(".")[0] not in _current.names:
            return None
        return _current.find_module_spec(fullname, path)


def _find_former_modules() -> FormerModules | None:
    if (begun := find_modules_of_thread()) is not None:
        return begun
    former = None if _current is None else _current.former
    return former if former is not None and former.serves_this_thread() else None


def _import_in_own_space(
    name: str,
    globals: Mapping[str, Any] | None = None,
    locals: Mapping[str, Any] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> ModuleType:
    """Replace `__import__` in a process with several roots: a module imports from its own root.

    The lock is taken even if nothing is swapped: Python locks the name of a module while it imports
    it, and two threads that take the two locks in different orders would deadlock.
    """
    if (former := _find_former_modules()) is not None:
        found = former.find_import_result(name, globals, fromlist or (), level)
        return found or former.import_with_former_modules(
            _plain_import, name, globals, locals, fromlist or (), level
        )
    loader = globals.get("__loader__") if globals else None
    if not isinstance(loader, SourceLoader):
        return _plain_import(name, globals, locals, fromlist or (), level)
    with loader.space.as_current_root():
        if loader.space.late:
            loader.space.remove_modules_imported_meanwhile()
        return _plain_import(name, globals, locals, fromlist or (), level)


def _import_module_in_own_space(name: str, package: str | None = None) -> ModuleType:
    """Replace `importlib.import_module`, as `__import__`, and note who calls it."""
    if (former := _find_former_modules()) is not None:
        found = former.find_module(resolve_name(name, package))
        return found or former.import_with_former_modules(_plain_import_module, name, package)
    caller = find_caller_frame(1).f_globals
    loader = caller.get("__loader__")
    if not isinstance(loader, SourceLoader):
        return _plain_import_module(name, package)
    loader.space.computed.setdefault(caller["__name__"], set()).add(resolve_name(name, package))
    with loader.space.as_current_root():
        if loader.space.late:
            loader.space.remove_modules_imported_meanwhile()
        return _plain_import_module(name, package)


sys.meta_path.insert(0, _ReservedNameFinder())
sys.meta_path.append(_OtherNameFinder())
