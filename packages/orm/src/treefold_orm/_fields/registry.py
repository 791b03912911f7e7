"""The registry: all models of the process, and the texts that name a target.

String targets ("Tag", "shop.models.Tag", "self") are settled here as soon as the class they name
exists. A reload takes models out and puts new ones in their place while requests run.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, cast

from treefold_orm._base.errors import ModelError
from treefold_orm._base.interpreter import is_being_imported

if TYPE_CHECKING:
    from treefold_orm._fields.meta import Instance, Meta


_entered: ContextVar[str] = ContextVar("treefold_orm_space", default="")


class Registry:
    """All models of the process, in order of definition, and the relations waiting for their
    target.

    Applications that share a process stay apart: each has a space, which is its folder, and a model
    whose file lies in it belongs to that space. Models of no space belong to all.
    """

    def __init__(self) -> None:
        self._roots: list[str] = []  # the folders of applications
        # by space, module and qualified name; `_gone` are those that a reload has taken out
        self._models: dict[tuple[str, str, str], Meta] = {}
        self._gone: dict[tuple[str, str, str], Meta] = {}
        # targets named by text: those whose model is not defined yet, and those that are settled
        self._waiting: list[_TextTarget] = []
        self._named_targets: list[_TextTarget] = []
        self._lock = threading.RLock()  # a reload defines models in a thread beside the requests
        self._unsure = False  # a model came that a settled text could mean as well

    def add_model(self, meta: Meta) -> None:
        """Register a model; the same module and qualified name again replaces the old one (reload).

        Models that named the old one then point to the new one.
        """
        with self._lock:
            self._add_or_replace_model(meta)

    def _add_or_replace_model(self, meta: Meta) -> None:
        key = _build_registry_key(meta)
        old = self._models.get(key) or self._gone.pop(key, None)
        self._models[key] = meta
        if old is None:
            self._unsure = self._unsure or any(n.text == meta.name for n in self._named_targets)
            return
        self._named_targets = [named for named in self._named_targets if named.source is not old]
        for named in self._named_targets:
            if named.target is old:
                named.target = meta
                named.action(meta)

    def unregister_module_models(
        self, root: str | os.PathLike[str], modules: Collection[str]
    ) -> Callable[[Collection[str]], None]:
        """Take out the models of modules that are about to be imported again, or are deleted.

        Another model that named one of them points to the new model of that name, wherever it is
        defined; the models that are taken out keep their targets, for the requests that use them.

        Args:
            root: the folder whose space they are in.
            modules: dotted names.

        Returns:
            Puts the models of the modules back that it is given: these were not replaced.
        """
        # the separator at the end keeps `/srv/shop` apart from `/srv/shop2`
        space = os.path.join(os.path.realpath(root), "")
        with self._lock:
            former = {k: m for k, m in self._models.items() if k[0] == space and k[1] in modules}
            self._gone = dict(former)
            for key in former:
                del self._models[key]
            targets = self._named_targets
            own = [named for named in targets if _build_registry_key(named.source) in former]
            self._named_targets = [named for named in self._named_targets if named not in own]

        def restore_module_models(names: Collection[str]) -> None:
            kept = {key: meta for key, meta in former.items() if key[1] in names}
            with self._lock:
                self._named_targets += [
                    named for named in own if _build_registry_key(named.source) in kept
                ]
                for meta in kept.values():
                    self._add_or_replace_model(meta)
                for named in own:
                    self._repoint_to_replacement(named)

        return restore_module_models

    def _repoint_to_replacement(self, reference: _TextTarget) -> None:
        """Point a model that was put back to the model that took its target's place."""
        target = reference.target
        new = self._models.get(_build_registry_key(target)) if target is not None else None
        if self.has_model(reference.source) and new is not None and new is not target:
            reference.target = new
            reference.action(new)

    def list_module_models(self, root: str | os.PathLike[str], module: str) -> list[str]:
        """Return the names of the models that a module defines, in a space.

        Args:
            root: the folder of the space.
            module: a dotted name.
        """
        space = os.path.join(os.path.realpath(root), "")
        with self._lock:
            return [meta.name for key, meta in self._models.items() if key[:2] == (space, module)]

    def group_related_modules(self, root: str | os.PathLike[str]) -> list[frozenset[str]]:
        """Return the groups of modules whose models are connected by relations, in a space."""
        space = os.path.join(os.path.realpath(root), "")
        groups: dict[str, set[str]] = {}
        with self._lock:
            steps = [step for meta in self._models.values() for step in meta.relations.values()]
        for step in steps:
            if step.source.space == space == step.target.space:
                ends = {_module_name(step.source), _module_name(step.target)}
                joined = ends.union(*(groups.get(end, ()) for end in ends))
                groups.update(dict.fromkeys(joined, joined))
        return list({id(group): frozenset(group) for group in groups.values()}.values())

    def has_model(self, meta: Meta) -> bool:
        """Return True while a model is registered."""
        return self._models.get(_build_registry_key(meta)) is meta

    def __iter__(self) -> Iterator[Meta]:
        self.resolve_pending_targets()
        with self._lock:
            # a copy: a reload may define models while a caller goes through them
            return iter(list(self._models.values()))

    def enter_application_folder(self, root: str | os.PathLike[str]) -> None:
        """Make a folder a space, before its models are imported, and the space of this context."""
        folder = os.path.join(os.path.realpath(root), "")
        if folder not in self._roots:
            self._roots.append(folder)
            self._roots.sort(key=len, reverse=True)  # the nearest folder comes first
        _entered.set(folder)

    def find_application_folder(self, module: str) -> str:
        """Return the folder among the spaces that a module's file lies in; empty for none."""
        file: str | None = getattr(sys.modules.get(module), "__file__", None)
        path = os.path.realpath(file) if file and self._roots else ""
        return next((root for root in self._roots if path.startswith(root)), "")

    def list_application_models(self) -> list[Meta]:
        """Return the models of the space of this context and those of none; else all of them."""
        space = _entered.get()
        return [meta for meta in self if not space or meta.space in ("", space)]

    def call_when_resolved(
        self,
        source: Meta,
        target: type[Instance] | str,
        action: Callable[[Meta], None],
        undo: Callable[[], None],
    ) -> None:
        """Run `action` with the target's meta, now or as soon as the named model exists.

        `undo` reverts `action`, before it runs with another model of the name.
        """
        if isinstance(target, str):
            self._waiting.append(_TextTarget(source, target, action, undo))
        else:
            action(target._meta)

    def resolve_pending_targets(self) -> None:
        """Resolve string targets whose models exist by now.

        A bare name means the model of its own module, also one that is defined later than another
        module's model of that name. Raises `ModelError` for a text that could mean several models,
        whichever came first; where its own module is being imported, once that is done.
        """
        # there is nothing to resolve for most queries, which ask each time
        if self._waiting or self._unsure or self._gone:
            with self._lock:
                self._resolve_pending_targets()

    def _resolve_pending_targets(self) -> None:
        gone = self._gone.values()
        lost = [n for n in self._named_targets if n.target in gone and n.source not in gone]
        misled = self._find_outdated_targets()
        for named in misled:
            named.undo()
        for meta in self._models.values() if misled else ():
            meta.clear_path_caches()
        self._named_targets = [n for n in self._named_targets if n not in lost and n not in misled]
        self._waiting += [*lost, *misled]
        tried: set[_TextTarget] = set()  # an action may settle others, or add some
        while named := next((n for n in self._waiting if n not in tried), None):
            tried.add(named)
            self._try_resolve_target(named)

    def _find_outdated_targets(self) -> list[_TextTarget]:
        """The texts that were taken for another model than the one that they mean by now."""
        unsure, self._unsure = self._unsure, False
        found: list[_TextTarget] = []
        for named in self._named_targets if unsure else ():
            target = cast("Meta", named.target)
            try:
                bare = named.text == target.name
                if bare and self._find_target(named.source, named.text) is not target:
                    found.append(named)
            except ModelError:
                self._unsure = True
                if not self._may_be_defined_later(named):
                    raise
        return found

    def _try_resolve_target(self, reference: _TextTarget) -> None:
        try:
            target = self._find_target(reference.source, reference.text)
            if target is None:
                return
            self._waiting.remove(reference)
            self._named_targets.append(reference)
            reference.target = target
            reference.action(target)
        except ModelError:
            if not self._may_be_defined_later(reference):
                raise
            reference.undo()
            self._named_targets = [n for n in self._named_targets if n is not reference]
            if reference not in self._waiting:
                self._waiting.append(reference)

    def _may_be_defined_later(self, reference: _TextTarget) -> bool:
        """True while the module of the text is imported and has no model of that name."""
        module = reference.source.model.__module__
        return is_being_imported(module) and not any(
            meta.name == reference.text and meta.model.__module__ == module
            for meta in self._models.values()
        )

    def _find_target(self, source: Meta, text: str) -> Meta | None:
        if text == "self":
            return source
        module, _, name = text.rpartition(".")
        found = [
            m
            for m in self._models.values()
            if m.name == name and not m.abstract and m.space in ("", source.space or m.space)
        ]
        if module:
            # a module that was run again may have left an older model of the name
            found = [m for m in found if m.model.__module__ == module][-1:]
        if len(found) > 1:
            near = [m for m in found if m.model.__module__ == source.model.__module__]
            found = near[-1:] or [m for m in found if m.space == source.space] or found
        if len(found) > 1:
            raise _build_ambiguous_target_error(source, text, found)
        return found[0] if found else None


class _TextTarget:
    """A target that was given as text, and the model that it was taken for."""

    __slots__ = ("action", "source", "target", "text", "undo")

    def __init__(
        self, source: Meta, text: str, action: Callable[[Meta], None], undo: Callable[[], None]
    ) -> None:
        self.source = source
        self.text = text
        self.action = action
        self.undo = undo
        self.target: Meta | None = None


def _build_ambiguous_target_error(source: Meta, text: str, found: list[Meta]) -> ModelError:
    names = sorted(f"{meta.model.__module__}.{meta.name}" for meta in found)
    return ModelError(
        f"{source.name} points to {text!r}, which could be {' or '.join(names)}: write the whole "
        "name, or give the class"
    )


def _build_registry_key(meta: Meta) -> tuple[str, str, str]:
    return meta.space, _module_name(meta), meta.model.__qualname__


def _module_name(meta: Meta) -> str:
    return meta.model.__module__


registry = Registry()
