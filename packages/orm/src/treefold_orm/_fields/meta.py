"""The description of a model: its fields, relations and names, as data.

`Meta` describes one model, `Relation` one step from a model to another, `registry` holds all
models. String targets ("Tag", "shop.models.Tag", "self") are settled here as soon as the class they
name exists. No SQL, no I/O.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from treefold_orm._base import errors
from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._base.interpreter import is_being_imported
from treefold_orm._base.journal import Journal
from treefold_orm._base.names import quote
from treefold_orm._base.records import Record, record
from treefold_orm._fields.base import Field
from treefold_orm._fields.keys import KeyColumns

if TYPE_CHECKING:
    from treefold_orm._fields.batch import LazyBatch
    from treefold_orm._terms.constraints import Constraint, Index
    from treefold_orm._terms.search_index import SearchIndex


@record
class Relation(Record):
    """One step from `source` to `target`, joined where `source_field` equals `target_field`.

    For `many`, the rows of `through` connect the keys of both sides: `source_field` and
    `target_field` are then the two foreign keys of the through model.
    """

    name: str
    source: Meta
    target: Meta
    kind: Literal["forward", "reverse", "many"]
    source_field: Field[Any]
    target_field: Field[Any]
    to_many: bool = False
    nullable: bool = True
    through: Meta | None = None

    __eq__ = object.__eq__
    __hash__ = object.__hash__


class Instance:
    """An instance of a model as every room knows it; `Model` is the one class below it.

    Attributes: `_row` is the row that it was read from or written to (None before), `_shape` the
    columns of that row where it has not all, `_alias` its database, `_batch` the result that it was
    read with, `_read_in` the transaction that it was read in, if that had written.
    """

    _meta: ClassVar[Meta]
    _row: Any = None
    _shape: tuple[Field[Any], ...] | None = None
    _batch: LazyBatch | None = None
    _alias: str = "default"
    _read_in: Journal | None = None
    if TYPE_CHECKING:
        pk: Any
        DoesNotExist: ClassVar[type[errors.DoesNotExist]]
        MultipleObjectsReturned: ClassVar[type[errors.MultipleObjectsReturned]]

        def __init__(self, **values: Any) -> None: ...
        def clean(self) -> None: ...
        def _missing_field(self, field: Field[Any]) -> Any: ...
        @classmethod
        def _attach_reverse(cls, relation: Relation) -> None: ...
        @classmethod
        def _detach(cls, relation: Relation) -> None: ...
        @classmethod
        def _has_attribute(cls, name: str) -> bool: ...


class Meta:
    """Everything known about one model."""

    def __init__(self, model: type[Instance], *, table: str, abstract: bool) -> None:
        self.model = model
        self.registry: Registry = getattr(model, "_registry", registry)
        space: str | None = model.__dict__.get("_space")
        self.space = registry.space_of(model.__module__) if space is None else space
        self.name = model.__name__
        self.abstract = abstract
        self.table_name = table
        self.table = quote(table)
        self.fields: dict[str, Field[Any]] = {}
        self.by_attname: dict[str, Field[Any]] = {}
        self.relations: dict[str, Relation] = {}
        self.many: dict[str, Any] = {}
        self.columns: tuple[Field[Any], ...] = ()
        self.columns_without_key: tuple[Field[Any], ...] = ()
        self.db_filled: tuple[Field[Any], ...] = ()
        self.auto_now: tuple[Field[Any], ...] = ()
        self.key_place = 0
        self.pk: Field[Any] = cast("Field[Any]", None)
        self.keys: tuple[Field[Any], ...] = ()  # the columns of the primary key
        self.version: Field[Any] | None = None
        self.ordering: tuple[str, ...] = ()
        self.latest_by: tuple[str, ...] = ()
        self.constraints: tuple[Constraint, ...] = ()
        self.indexes: tuple[Index | SearchIndex, ...] = ()
        self.auto_created = False
        self.managed = True
        self.verbose_name = ""
        self.verbose_name_plural = ""
        self.own_saves: frozenset[str] = frozenset()  # which of save and asave the model overrides
        self.default_manager: Any = None  # where relations to many rows begin; None for all rows
        self.lookups: dict[str, Any] = {}

    def add_field(self, field: Field[Any], name: str) -> None:
        """Bind a column field under its name."""
        field.bind(self, name)
        for known in self.fields.values():
            if known.column_name == field.column_name:
                raise ModelError(
                    f"{self.name}.{name} and {self.name}.{known.name} share column "
                    f"{field.column_name!r}"
                )
            if shared := {name, field.attname} & {known.name, known.attname}:
                raise ModelError(
                    f"{self.name}.{name} and {self.name}.{known.name} share the attribute "
                    f"{min(shared)!r}: rename one and keep its column with db_column="
                )
        self.fields[name] = field
        self.by_attname[field.attname] = field
        self.columns = tuple(self.fields.values())
        if field.primary_key:
            if self.pk is not None:  # pyright: ignore[reportUnnecessaryComparison] - None until the key is found
                raise ModelError(f"{self.name} has two primary keys: {self.pk.name!r} and {name!r}")
            self.pk = field
            self.keys = (field,)
        self.columns_without_key = tuple(f for f in self.columns if not f.primary_key)
        self.db_filled = tuple(f for f in self.columns if f.db_fills)
        self.auto_now = tuple(f for f in self.columns if getattr(f, "auto_now", False))
        self.key_place = next((i for i, f in enumerate(self.columns) if f.primary_key), 0)

    def set_composite_key(self, names: tuple[str, ...]) -> None:
        """Make several columns the primary key."""
        if self.pk is not None:  # pyright: ignore[reportUnnecessaryComparison] - None until the key is found
            raise ModelError(
                f"{self.name} has two primary keys: {self.pk.name!r} and {', '.join(names)}"
            )
        for name in names:
            if name not in self.fields and name not in self.by_attname:
                raise ModelError(f"{self.unknown(name)}; CompositePrimaryKey must name fields")
        self.keys = tuple(self.fields.get(name) or self.by_attname[name] for name in names)
        self.pk = KeyColumns(self.keys)
        self.pk.bind(self, "pk")

    def add_relation(self, relation: Relation) -> None:
        """Make a relation known under its name; names of fields and other relations may not be
        reused.
        """
        known = self.relations.get(relation.name)
        own = relation.name in self.many or relation.kind == "forward"  # a field of this model
        clash = not own and (relation.name in self.fields or relation.name in self.by_attname)
        if clash or (known is not None and known.kind != relation.kind):
            raise ModelError(
                f"{self.name} has {relation.name!r} already: give {relation.target.name} a "
                "related_name"
            )
        if not own and self.model._has_attribute(relation.name):
            raise ModelError(
                f"{self.name}.{relation.name} cannot lead to {relation.target.name}: {self.name} "
                "has another attribute of that name; give the relation a related_name"
            )
        if known is not None and _distinct(known, relation):
            raise ModelError(
                f"{relation.name!r} on {self.name} would mean both {known.target.name} and "
                f"{relation.target.name}: "
                "give one a related_name"
            )
        self.relations[relation.name] = relation
        self.lookups.clear()

    def drop_relation(self, relation: Relation) -> None:
        """Forget a relation whose text turned out to mean another model."""
        if self.relations.get(relation.name) is relation:
            del self.relations[relation.name]
            self.model._detach(relation)

    def find(self, name: str) -> Field[Any] | Relation | None:
        """Return the field or relation that `name` is as one step of a lookup path, or None."""
        if name == "pk":
            return self.pk
        return self.relations.get(name) or self.fields.get(name) or self.by_attname.get(name)

    def column_named(self, name: str) -> Field[Any]:
        """Return the column field with this name or attribute; raise `FieldError` without one."""
        found = self.fields.get(name) or self.by_attname.get(name)
        if found is None:
            raise self.unknown(name)
        return found

    def unknown(self, name: str) -> FieldError:
        """Return the error for a name this model does not have, with the nearest one it has."""
        self.registry.settle()
        import difflib

        names = sorted({*self.fields, *self.by_attname, *self.relations, "pk"})
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)}"
        return FieldError(f"{self.name} has no field {name!r}: {hint}")

    def __repr__(self) -> str:
        return f"<Meta of {self.name}>"


def owner_of(field: Field[Any]) -> Meta:
    """The description of the model that a field belongs to."""
    return cast("Meta", field.meta)


def _distinct(known: Relation, new: Relation) -> bool:
    one, other = known.target.model, new.target.model
    if not known.target.registry.has(known.target):
        return False  # its module was imported again, and it moved
    if one is other:
        return known.target_field is not new.target_field
    # a reloaded model has the same names
    return (one.__module__, one.__qualname__) != (other.__module__, other.__qualname__)


_entered: ContextVar[str] = ContextVar("treefold_orm_space", default="")


class Registry:
    """All models of the process, in order of definition, and the relations waiting for their
    target.

    Applications that share a process stay apart: each has a space, which is its folder, and a model
    whose file lies in it belongs to that space. Models of no space belong to all.
    """

    def __init__(self) -> None:
        self._roots: list[str] = []
        self._models: dict[tuple[str, str, str], Meta] = {}
        self._waiting: list[_TextTarget] = []
        self._named_targets: list[_TextTarget] = []
        self._gone: dict[tuple[str, str, str], Meta] = {}
        self._unsure = False  # a model came that a settled text could mean as well

    def add(self, meta: Meta) -> None:
        """Register a model; the same module and qualified name again replaces the old one (reload).

        Models that named the old one then point to the new one.
        """
        key = _key(meta)
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

    def forget(
        self, root: str | os.PathLike[str], modules: Collection[str]
    ) -> Callable[[Collection[str]], None]:
        """Take out the models of modules that are about to be imported again, or are deleted.

        What named one of them points to the new model of that name, wherever it is defined.

        Args:
            root: the folder whose space they are in.
            modules: dotted names.

        Returns:
            Puts the models of the modules back that it is given: these were not replaced.
        """
        space = os.path.join(os.path.realpath(root), "")
        former = {k: m for k, m in self._models.items() if k[0] == space and k[1] in modules}
        self._gone = dict(former)
        for key in former:
            del self._models[key]

        def back(names: Collection[str]) -> None:
            for key, meta in former.items():
                if key[1] in names:
                    self.add(meta)

        return back

    def has(self, meta: Meta) -> bool:
        """Return True while a model is registered."""
        return self._models.get(_key(meta)) is meta

    def __iter__(self) -> Iterator[Meta]:
        self.settle()
        return iter(list(self._models.values()))

    def enter(self, root: str | os.PathLike[str]) -> None:
        """Make a folder a space, before its models are imported, and the space of this context."""
        folder = os.path.join(os.path.realpath(root), "")
        if folder not in self._roots:
            self._roots.append(folder)
            self._roots.sort(key=len, reverse=True)  # the nearest folder comes first
        _entered.set(folder)

    def space_of(self, module: str) -> str:
        """Return the folder among the spaces that a module's file lies in; empty for none."""
        file: str | None = getattr(sys.modules.get(module), "__file__", None)
        path = os.path.realpath(file) if file and self._roots else ""
        return next((root for root in self._roots if path.startswith(root)), "")

    def entered(self) -> list[Meta]:
        """Return the models of the space of this context and those of none; else all of them."""
        space = _entered.get()
        return [meta for meta in self if not space or meta.space in ("", space)]

    def when_known(
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

    def settle(self) -> None:
        """Resolve string targets whose models exist by now.

        A bare name means the model of its own module, also one that is defined later than another
        module's model of that name. Raises `ModelError` for a text that could mean several models,
        whichever came first; where its own module is being imported, once that is done.
        """
        gone = self._gone.values()
        lost = [n for n in self._named_targets if n.target in gone and n.source not in gone]
        misled = self._misled()
        for named in misled:
            named.undo()
        for meta in self._models.values() if misled else ():
            meta.lookups.clear()
        self._named_targets = [n for n in self._named_targets if n not in lost and n not in misled]
        self._waiting += [*lost, *misled]
        tried: set[_TextTarget] = set()  # an action may settle others, or add some
        while named := next((n for n in self._waiting if n not in tried), None):
            tried.add(named)
            self._resolve(named)

    def _misled(self) -> list[_TextTarget]:
        """The texts that were taken for another model than the one that they mean by now."""
        unsure, self._unsure = self._unsure, False
        found: list[_TextTarget] = []
        for named in self._named_targets if unsure else ():
            target = cast("Meta", named.target)
            try:
                bare = named.text == target.name
                if bare and self._meant(named.source, named.text) is not target:
                    found.append(named)
            except ModelError:
                self._unsure = True
                if not self._own_may_follow(named):
                    raise
        return found

    def _resolve(self, named: _TextTarget) -> None:
        try:
            target = self._meant(named.source, named.text)
            if target is None:
                return
            self._waiting.remove(named)
            self._named_targets.append(named)
            named.target = target
            named.action(target)
        except ModelError:
            if not self._own_may_follow(named):
                raise
            named.undo()
            self._named_targets = [n for n in self._named_targets if n is not named]
            if named not in self._waiting:
                self._waiting.append(named)

    def _own_may_follow(self, named: _TextTarget) -> bool:
        """True while the module of the text is imported and has no model of that name."""
        module = named.source.model.__module__
        return is_being_imported(module) and not any(
            meta.name == named.text and meta.model.__module__ == module
            for meta in self._models.values()
        )

    def _meant(self, source: Meta, text: str) -> Meta | None:
        if text == "self":
            return source
        module, _, name = text.rpartition(".")
        found = [
            m
            for m in self._models.values()
            if m.name == name and not m.abstract and m.space in ("", source.space or m.space)
        ]
        if module:
            found = [m for m in found if m.model.__module__ == module][-1:]
        if len(found) > 1:
            near = [m for m in found if m.model.__module__ == source.model.__module__]
            found = near[-1:] or [m for m in found if m.space == source.space] or found
        if len(found) > 1:
            raise _ambiguous(source, text, found)
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


def _ambiguous(source: Meta, text: str, found: list[Meta]) -> ModelError:
    names = sorted(f"{meta.model.__module__}.{meta.name}" for meta in found)
    return ModelError(
        f"{source.name} points to {text!r}, which could be {' or '.join(names)}: write the whole "
        "name, or give the class"
    )


def _key(meta: Meta) -> tuple[str, str, str]:
    return meta.space, meta.model.__module__, meta.model.__qualname__


registry = Registry()
