"""Model: the base class, and the state of an instance.

An instance keeps its values in its own dictionary and the row it was loaded from by reference;
`save` compares the two. `_operations` loads missing columns and saves; `_models/definition.py`
makes a `Meta` of a class body.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast, overload

from treefold_orm._base import errors
from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._base.names import check_untainted
from treefold_orm._base.references import OwnerReference, is_relation_cached
from treefold_orm._fields.base import AnyField, Field
from treefold_orm._fields.keys import KeyAccess
from treefold_orm._fields.meta import Instance, Relation
from treefold_orm._fields.numbers import BigAutoField
from treefold_orm._fields.relations import AnyForeignKey, is_foreign_key
from treefold_orm._models.definition import define_model, preallocate_instance_attributes
from treefold_orm._models.many_to_many import ManyToManyField
from treefold_orm._models.related import RelationAccess
from treefold_orm._models.validation import full_clean
from treefold_orm._operations import lazy, saving
from treefold_orm._operations.own_database import check_related_database
from treefold_orm._queries.managers import ManagerAccess
from treefold_orm._runtime.context import find_current_journal
from treefold_orm._runtime.run import arun, run
from treefold_orm._terms.operators import Expression

if TYPE_CHECKING:
    from treefold_orm._queries.untrusted import Assignable

    # without a type, which mypy takes for Any: it refuses a key of another type than the base has
    def infer_automatic_key():
        return BigAutoField()


class Model(Instance):
    """Base of all models.

    Fields are class attributes; a `Meta` class inside says `table`, `ordering`, `get_latest_by`
    (what `latest()` goes by), `constraints`, `indexes`, `version_field` (optimistic locking),
    `managed` (False for a table that others create), `verbose_name`, `verbose_name_plural` and
    `abstract`. Without a key of its own a model gets `id`; a key of several columns is declared as
    `pk = CompositePrimaryKey("tenant", "number")`.
    """

    objects = ManagerAccess()
    pk = KeyAccess()
    if TYPE_CHECKING:
        id = infer_automatic_key()

    # for a web framework, where a handler has a parameter of this type
    __parameter_remedy__: ClassVar[str] = (
        "take Changes[...] or a Shape of its columns as the body, or find the row in a dependency,"
        " Depends(function)"
    )

    DoesNotExist: ClassVar[type[errors.DoesNotExist]] = errors.DoesNotExist
    MultipleObjectsReturned: ClassVar[type[errors.MultipleObjectsReturned]] = (
        errors.MultipleObjectsReturned
    )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        define_model(cls, Model)

    def __init__(self, **values: Any) -> None:
        meta = self._meta
        if meta.abstract:
            raise ModelError(
                f"{meta.name} is abstract: make an instance of a model that inherits from it"
            )
        for name in values:
            # asked here, for a call for each name would show where many instances are made
            if name.__class__ is not str:
                check_untainted(name)
        for field in meta.columns:
            attname = field.attname
            if attname in values:
                setattr(self, attname, values.pop(attname))
            elif field.name in values:
                setattr(self, field.name, values.pop(field.name))
            elif not field.db_fills:
                setattr(self, attname, field.get_default())
        if values:
            if "pk" in values:
                cast("Any", self).pk = values.pop("pk")  # of any key: `pk` keeps its own type
            for name in values:
                raise meta.build_unknown_name_error(name)

    # -- loading ----------------------------------------------------------------------------------

    def _load_missing_field(self, field: AnyField) -> Any:
        return lazy.load_field(self, field)

    def _get_or_load_related(self, field: AnyForeignKey) -> Any:
        cached = held = cast("Any", getattr(self, f"_cached_{field.name}", None))
        if held.__class__ is OwnerReference:
            cached = held()
        # __dict__ is asked for last: it makes a dictionary of what instances keep without one
        if cached is not None and self._shape is not None and field.attname not in self.__dict__:
            return cached  # joined, while the column itself was left out
        key = getattr(self, field.attname)
        if key is None:  # nothing, or an instance that had no key when it was assigned
            return cached if self.__dict__.get(f"_awaits_{field.attname}") else None
        if cached is not None and cached.pk == key:
            return cached
        if isinstance(key, Expression):
            raise FieldError(
                f"{self._meta.name}.{field.name} is not known before save(), got an expression as "
                "its key"
            )
        if cached is None and held.__class__ is OwnerReference:
            lazy.refuse_dropped_owner(self, field, held, key)
        return lazy.load_related(self, self._meta.relations[field.name])

    def _set_related(self, field: AnyForeignKey, value: Any) -> None:
        self.__dict__.pop(f"_awaits_{field.attname}", None)
        if value is None:
            self.__dict__.pop(f"_cached_{field.name}", None)
            setattr(self, field.attname, None)
            return
        target = field.known_target
        if not isinstance(value, target.model):
            raise FieldError(
                f"{self._meta.name}.{field.name} takes a {target.name}, not a "
                f"{type(value).__name__}"
            )
        if self._row and value._row and value._alias != self._alias:
            check_related_database(field, value, self._alias)
        self.__dict__[f"_cached_{field.name}"] = value
        key = value.pk
        if key is None:
            self.__dict__[f"_awaits_{field.attname}"] = True
        setattr(self, field.attname, key)
        journal = find_current_journal(value._alias)
        if journal is not None:
            journal.record_copied_key(self, field.attname, value, target.pk.attname)

    @classmethod
    def _add_relation_accessor(cls, relation: Relation) -> None:
        preallocate_instance_attributes(cls, [f"_cached_{relation.name}"])
        if relation.name not in cls.__dict__ or not isinstance(cls.__dict__[relation.name], Field):
            setattr(cls, relation.name, RelationAccess(relation))

    @classmethod
    def _remove_relation_accessor(cls, relation: Relation) -> None:
        access = cls.__dict__.get(relation.name)
        if isinstance(access, RelationAccess) and access._relation is relation:
            delattr(cls, relation.name)

    @classmethod
    def _has_non_field_attribute(cls, name: str) -> bool:
        nearest = next((b.__dict__[name] for b in cls.__mro__ if name in b.__dict__), None)
        return nearest is not None and not isinstance(
            nearest, (Field, ManyToManyField, RelationAccess)
        )

    def is_loaded(self, name: str) -> bool:
        """Return True if the field or relation `name` can be read without a query."""
        field = self._meta.fields.get(name) or self._meta.by_attname.get(name)
        if is_foreign_key(field) and name == field.name:
            # a key that is None leads nowhere, which takes no query; 0 says that it is not loaded
            return is_relation_cached(self, name) or self.__dict__.get(field.attname, 0) is None
        if field is not None:
            return field.attname in self.__dict__
        return is_relation_cached(self, name)

    # -- saving -----------------------------------------------------------------------------------

    def save(
        self,
        *,
        update_fields: Sequence[str] | None = None,
        force_insert: bool = False,
        using: str | None = None,
    ) -> None:
        """Insert the row, or update the columns that changed since it was read.

        An instance without a key is inserted, also as a copy of the row that it was read from:
        `post.pk = None; post.save()`. An attribute may hold an expression, `F("views") + 1`: the
        database computes it, and the attribute is its value then. Times with `auto_now` are set
        even where nothing else changed.

        Args:
            update_fields: the fields to write, whether they changed or not.
            force_insert: insert the row, also one that was read or deleted.
            using: the database to insert into.

        A model that overrides this overrides `asave` as well: `create` and its like go through
        either, bulk calls through neither.

        Raises:
            ModelError: the model overrides `asave` alone.
            StaleObject: the row is gone, or changed and the model has a version field.
            FieldValueError: a value does not fit its field; nothing was sent.
        """
        self._require_both_saves_overridden("save")
        alias = using or self._alias
        work = saving.save_instance(self, alias, update_fields, force_insert=force_insert)
        run(alias, work, "await asave()", write=True)

    async def asave(
        self,
        *,
        update_fields: Sequence[str] | None = None,
        force_insert: bool = False,
        using: str | None = None,
    ) -> None:
        """`save` for async code."""
        self._require_both_saves_overridden("asave")
        alias = using or self._alias
        work = saving.save_instance(self, alias, update_fields, force_insert=force_insert)
        await arun(alias, work, write=True)

    def _require_both_saves_overridden(self, name: str) -> None:
        if self._meta.own_saves:
            from treefold_orm._queries.own_saves import require_both_saves_overridden

            require_both_saves_overridden(self._meta, name)

    def delete(self, *, using: str | None = None) -> int:
        """Delete the row; return how many rows were deleted (0 if it was gone)."""
        alias = using or self._alias
        return run(alias, saving.delete_instance(self, alias), "await adelete()", write=True)

    async def adelete(self, *, using: str | None = None) -> int:
        """`delete` for async code."""
        alias = using or self._alias
        return await arun(alias, saving.delete_instance(self, alias), write=True)

    def refresh(self, *names: str) -> None:
        """Read the row again: `refresh_from_db` with names by place."""
        self.refresh_from_db(fields=names or None)

    async def arefresh(self, *names: str) -> None:
        """`refresh` for async code."""
        await self.arefresh_from_db(fields=names or None)

    def refresh_from_db(
        self, *, fields: Sequence[str] | None = None, using: str | None = None
    ) -> None:
        """Read the row again, and forget the related rows that were loaded.

        Columns that were not loaded stay so, and changes that were not saved are lost; `load()`
        reads missing columns instead. Annotations stay as they are.

        Args:
            fields: names of columns to read, or of relations to forget; all without.
            using: the database to read from, and to save to from then on.

        Raises:
            DoesNotExist: the row is gone.
        """
        alias = using or self._alias
        run(alias, saving.refresh_instance(self, alias, fields), "await arefresh_from_db()")

    async def arefresh_from_db(
        self, *, fields: Sequence[str] | None = None, using: str | None = None
    ) -> None:
        """`refresh_from_db` for async code."""
        alias = using or self._alias
        await arun(alias, saving.refresh_instance(self, alias, fields))

    def load(self, *names: str) -> Self:
        """Load relations or columns that were not part of the query; return the instance."""
        work = lazy.load_attributes([self], self._alias, names, batch_lazy=True)
        run(self._alias, work, "await aload()")
        return self

    async def aload(self, *names: str) -> Self:
        """`load` for async code."""
        await arun(self._alias, lazy.load_attributes([self], self._alias, names, batch_lazy=False))
        return self

    @overload
    def assign(self, data: Assignable, *, fields: Sequence[str] | None = None) -> list[str]: ...
    @overload
    def assign(self, data: Any, *, fields: Sequence[str]) -> list[str]: ...
    def assign(self, data: Any, *, fields: Sequence[str] | None = None) -> list[str]:
        """Set attributes from untrusted data; return the names that were set.

        The one way for request data into an instance. A `Shape` and `Changes[...]` of a handler
        name the fields; of plain data only the named `fields` are set, the key and sensitive fields
        among them, and all other keys are ignored. Nothing is set where one value does not fit.

        Args:
            data: `Changes`, a `Shape`, or a mapping of names to values.
            fields: the names that may be set; needed for a mapping.

        Raises:
            FieldValueError: a value does not fit its field, or is the key of a stored row, which is
                set only where `fields` names it.
            FieldError: the model has no such field, or a mapping came without `fields`.
        """
        from treefold_orm._queries.untrusted import assign_untrusted_data

        return assign_untrusted_data(self, data, fields=fields)

    # -- checking ---------------------------------------------------------------------------------

    def clean(self) -> None:
        """Check values against each other; override it, and raise `ValidationError` with messages.

        Called by `full_clean()` only, never by `save()`.
        """

    def full_clean(self, exclude: Collection[str] = ()) -> None:
        """Check all loaded values and call `clean()`; the attributes become the checked values.

        Uniqueness, missing targets of relations and check constraints are left to the database,
        which alone can tell: `save()` raises `UniqueViolation` and its siblings.

        Args:
            exclude: names of fields that are not checked.

        Raises:
            ValidationError: every message of every field in `message_dict`.
        """
        full_clean(self, exclude)

    # -- identity ---------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Model) or type(other)._meta is not self._meta:
            return False
        key = self.pk
        return key is not None and key == other.pk  # pyright: ignore[reportUnnecessaryComparison] - None until it is saved

    def __hash__(self) -> int:
        key = self.pk
        if key is None:  # pyright: ignore[reportUnnecessaryComparison] - as above
            # its hash would change with save(), and a set would not find it again
            raise TypeError(f"{self._meta.name} without a key cannot be hashed; save it first")
        return hash((self._meta.name, key))

    def __repr__(self) -> str:
        values = self.__dict__
        shown: list[str] = []
        for field in self._meta.columns:
            if field.attname in values:
                value = values[field.attname]
                masked = "***" if field.sensitive and value is not None else value
                shown.append(f"{field.attname}={_shorten_repr(masked)}")
        return f"{self._meta.name}({', '.join(shown)})"

    def __getstate__(self) -> dict[str, Any]:
        state = {k: v for k, v in self.__dict__.items() if k != "_batch"}
        for name, value in self.__dict__.items():
            if value.__class__ is OwnerReference:  # the instance travels, while there is one
                state[name] = value()
                if state[name] is None:
                    del state[name]
        if state.get("_row") is not None:
            state["_row"] = tuple(state["_row"])  # a driver's row does not travel
        if "_shape" in state:
            state["_shape"] = self._shape and tuple(field.name for field in self._shape)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if names := state.get("_shape"):
            self._shape = tuple(self._meta.fields[name] for name in names)


def _shorten_repr(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
