"""The loaded modules of a root with their imports, kept from one reload to the next.

Reading the imports of a module, and inverting them, happens once for each module object: a reload
costs as much as what changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from types import ModuleType

from treefold_http._modules.import_graph import find_referenced_modules, parse_imports
from treefold_http._modules.source_loader import SourceLoader

_HANDLERS = "Api."


class ModuleIndex:
    """The loaded modules of a root, and which of them import which.

    Args:
        root: the application root.

    Attributes:
        root: the application root.
        loaded: by dotted name.
        imports: by dotted name, the names that the sources import.
        importers: by dotted name, the loaded modules that import it or hold its objects.
        by_file: by path below the root, the names of the modules.
        asking: names of the modules that ask a class for its subclasses.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._root = str(root)
        self.loaded: dict[str, ModuleType] = {}
        self.imports: dict[str, frozenset[str]] = {}
        self.importers: dict[str, set[str]] = {}
        self.by_file: dict[str, set[str]] = {}
        self.asking: set[str] = set()
        self._computed: Mapping[str, Collection[str]] = {}
        self._edges: dict[str, frozenset[str]] = {}
        self._executed: dict[str, int] = {}  # by dotted name, the hash of the source that ran

    def update_modules(
        self, loaded: Mapping[str, ModuleType], computed_imports: Mapping[str, Collection[str]]
    ) -> None:
        """Take over the modules that are loaded now.

        Args:
            loaded: by dotted name.
            computed_imports: by dotted name, the modules that it has imported by names of its own
                making.
        """
        self._computed = computed_imports
        for name in self.loaded.keys() - loaded.keys():
            self.remove_module(name)
        for name, module in loaded.items():
            if self.loaded.get(name) is not module:
                self.remove_module(name)
                self.loaded[name] = module
                self._store_module_imports(name, module)
                self.by_file.setdefault(self.find_module_file(module), set()).add(name)
                self._update_import_edges(name)
            # handlers are left out: a project has thousands, and every save would read them all
            elif not name.startswith(_HANDLERS) or name in computed_imports:
                self._update_import_edges(name)  # globals may hold other objects by now

    def remove_module(self, name: str) -> None:
        """Forget a module, which must not be kept alive."""
        module = self.loaded.pop(name, None)
        if module is not None:
            self.by_file.get(self.find_module_file(module), set()).discard(name)
            del self.imports[name]
            self._executed.pop(name, None)
            self.asking.discard(name)
            self._remove_import_edges(name)

    def find_module_file(self, module: ModuleType) -> str:
        """Return the path of a module's file below the root; empty if the module has no file."""
        file = getattr(module, "__file__", None)
        return str(file)[len(self._root) + 1 :].replace("\\", "/") if file is not None else ""

    def find_computed_importers(self, package: str) -> set[str]:
        """Return the modules that import modules of a package by names of their own making."""
        return {
            importer
            for importer, names in self._computed.items()
            if any(name.rpartition(".")[0] == package for name in names)
        }

    def was_made_of_present_source(self, module: ModuleType) -> bool:
        """Return True if the file of a loaded module has the content that was run."""
        file = getattr(module, "__file__", None)
        if file is None or not Path(file).is_file():
            return False
        name, source = module.__name__, _read_source(module)
        if self.loaded.get(name) is module:
            return self._executed.get(name) == hash(source)
        return _read_executed_source(module) == source  # loaded since the last reload

    def _store_module_imports(self, name: str, module: ModuleType) -> None:
        source = _read_executed_source(module)
        if source is None:  # saved since
            source = _read_source(module)
        else:
            self._executed[name] = hash(source)
        self.imports[name] = parse_imports(source, module.__package__ or "")
        # as bytes: the word in a comment costs no more than a restart that was not necessary
        if b"__subclasses__" in source:
            self.asking.add(name)

    def _update_import_edges(self, name: str) -> None:
        computed = self._computed.get(name, ())
        # without the module itself, which defines most of its own globals
        edges = self.imports[name].union(find_referenced_modules(self.loaded[name]), computed) - {
            name
        }
        if edges != self._edges.get(name):
            self._remove_import_edges(name)
            self._edges[name] = edges
            for imported in edges:
                self.importers.setdefault(imported, set()).add(name)

    def _remove_import_edges(self, name: str) -> None:
        for imported in self._edges.pop(name, ()):
            self.importers[imported].discard(name)


def _read_executed_source(module: ModuleType) -> bytes | None:
    loader = module.__loader__
    return loader.read_executed_source() if isinstance(loader, SourceLoader) else None


def _read_source(module: ModuleType) -> bytes:
    file = getattr(module, "__file__", None)
    if file is None or not str(file).endswith(".py"):
        return b""
    if not Path(file).is_file():  # gone, or a FIFO, whose reading would not end
        return b""
    try:
        return Path(file).read_bytes()
    except OSError:
        return b""
