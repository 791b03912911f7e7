"""Modules of a version whose files are those of a base: how they are found, and what they may do.

    Api/v1/Book/Get.py              from .Services.shelf import BOOKS
    Api/v1/Book/Services/shelf.py   BOOKS = {}
    Api/v2/version.toml             inherits = "v1"

`Api.v2.Book.Get` is a module of its own that runs the code of the first file, and so is the
`Api.v2.Book.Services.shelf` that it imports: v2 has the state that a copy would have. A file that
names its version would reach the modules of v1 instead, so it cannot be inherited. Neither can one
that defines or registers something that a process has once (`InheritanceGuard`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, Any

from treefold_http._modules.containers import (
    Contents,
    has_same_items,
    list_values,
    read_module_name,
    restore_container,
    snapshot_containers,
)
from treefold_http._modules.import_graph import find_referenced_modules, transitive_closure
from treefold_http._modules.import_watch import PROCESS_WIDE, ImportWatch
from treefold_http._modules.version_imports import find_version_import

if TYPE_CHECKING:
    from treefold_http._modules.modules import ModuleSpace
    from treefold_http._modules.source_loader import SourceLoader


class NotInheritableError(ImportError):
    """A file of a base version cannot serve in a version that inherits it."""


def find_inherited_spec(space: ModuleSpace, name: str, path: Sequence[str] | None) -> Any:
    """Return the spec of a module of a version that inherits, whichever layer holds its file.

    Args:
        space: the modules of the root, with its layers.
        name: a dotted name that begins with `Api.` and the version.
        path: the `__path__` of its package.

    Returns:
        The spec; None where the version has no such module.

    Raises:
        ModuleNotFoundError: a base has a module of this name that the version does not inherit:
            the next finder would find it in the folders of the package.
    """
    below = "/".join(name.split(".")[1:]).replace("%2E", ".")
    if (init := space.versions.find_effective_file(f"{below}/__init__.py")) is not None:
        return _make_file_spec(space, name, init, space.versions.find_effective_folders(below))
    if (file := space.versions.find_effective_file(f"{below}.py")) is not None:
        return _make_file_spec(space, name, file, None)
    if folders := space.versions.find_effective_folders(below):
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = list(folders)
        return spec
    own = os.path.join(space.versions.api_folder, os.path.dirname(below))
    if (spec := PathFinder.find_spec(name, [own])) is not None and spec.origin is not None:
        return spec  # a compiled module
    if PathFinder.find_spec(name, path) is not None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return None


def _make_file_spec(
    space: ModuleSpace, name: str, file: str, folders: Sequence[str] | None
) -> ModuleSpec | None:
    path = os.path.join(space.versions.api_folder, file)
    return spec_from_file_location(
        name,
        path,
        loader=space.loader(name, path, space),
        submodule_search_locations=None if folders is None else list(folders),
    )


def run_inherited_module(
    loader: SourceLoader, module: ModuleType, run: Callable[[ModuleType], None]
) -> None:
    """Run a file of a base as a module of a version that inherits it.

    Raises:
        NotInheritableError: the file names its version, or does what a process does once.
    """
    code, line = loader.get_code(module.__name__), None
    if code is not None:
        folders = [part.replace("%2E", ".") for part in module.__name__.split(".")[2:-1]]
        line = find_version_import(code, loader.read_source, loader.base, folders)
    if line is not None:
        base, version = loader.base, _version_of(module)
        raise NotInheritableError(
            f"{_shown(loader)}, line {line}, names its version, so {version} cannot inherit it: it"
            f" would use the modules of {base}; run 'treefold version relative {base[1:]}', or"
            f" give {version} a file of its own"
        )
    guard = loader.space.guard
    if guard is None:
        run(module)
    else:
        guard.run_and_check(loader, module, run)


def _version_of(module: ModuleType) -> str:
    return module.__name__.split(".")[1]


def _shown(loader: SourceLoader) -> str:
    return os.path.relpath(loader.path, loader.space.root).replace(os.sep, "/")


class InheritanceGuard:
    """Refuses inherited files that define or register what a process has once.

    The base has run the same code before: a second model of a name, or a second function in a list
    of the project, would change the answers of both versions.

    Args:
        space: the modules of the root, all but those of versions that inherit.
        extensions: the extensions of the application, which know what models are.
    """

    def __init__(self, space: ModuleSpace, extensions: Sequence[Any]) -> None:
        self._root = space.root
        self._extensions = [one for one in extensions if hasattr(one, "find_definitions")]
        loaded = space.find_loaded_modules()
        shared = {name: m for name, m in loaded.items() if not name.startswith("Api.")}
        self._before: Mapping[str, Contents] = {
            name: snapshot_containers(module, loaded.keys()) for name, module in shared.items()
        }
        # the list of another module, imported by its name, does not tell where it is from
        self._owners = {key: name for name, found in self._before.items() for key in found}
        self._uses = {name: [*self._list_used_modules(one)] for name, one in shared.items()}

    def run_and_check(
        self, loader: SourceLoader, module: ModuleType, run: Callable[[ModuleType], None]
    ) -> None:
        """Run a module.

        Raises:
            NotInheritableError: it has defined or registered something; that is undone.
        """
        shown = _shown(loader)
        with ImportWatch(self._root, PROCESS_WIDE) as watch:
            run(module)
        what, way = "", "define it in Models/"
        for extension in self._extensions:
            if found := extension.find_definitions(module.__name__):
                what = f"defines {', '.join(found)}, which a process has once"
                extension.reload(frozenset([module.__name__]))
        if not what and (place := self._undo_registration(module)):
            what = f"enters something into {place}, which all versions share"
            way = "do that in hooks.py or in the Services/ of the project"
        if not what and (seen := watch.seen.get(shown)):
            what, way = f"{seen}, for the whole process", "do that in hooks.py"
        if what:
            version = _version_of(module)
            raise NotInheritableError(f"{shown} {what}, so {version} cannot inherit it; {way}")

    def _list_used_modules(self, module: ModuleType) -> Iterator[str]:
        yield from find_referenced_modules(module)
        for value in list(vars(module).values()):
            if (owner := self._owners.get(id(value))) is not None:
                yield owner

    def _undo_registration(self, module: ModuleType) -> str:
        """Take the objects of a module out of the containers of others; return one of these."""
        place = ""
        for name in transitive_closure(self._list_used_modules(module), self._uses):
            for container, former in self._before.get(name, {}).values():
                if not has_same_items(container, former) and _holds_new_objects_of(
                    module, list_values(container), list_values(former)
                ):
                    place = name
                    restore_container(container, former)
        return place


def _holds_new_objects_of(
    module: ModuleType, values: Collection[Any], former: Collection[Any]
) -> bool:
    known = set(map(id, former))
    return any(
        read_module_name(one if hasattr(one, "__name__") else type(one)) == module.__name__
        for value in values
        if id(value) not in known
        for one in _flatten_tuple(value)
    )


def _flatten_tuple(value: Any) -> Iterator[Any]:
    # as in `handlers.append(("created", send_mail))`
    yield from value if type(value) is tuple else (value,)
