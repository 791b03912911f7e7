"""ForeignKey and OneToOneField: fields that point to another model.

A foreign key is a column named `<name>_id` with the type of the target's key, and an attribute
`<name>` that holds the related instance. The database acts on delete, RESTRICT
unless said otherwise; PROTECT is asked for before, in `_operations/protecting.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeGuard, TypeVar, Unpack, overload

from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._fields.base import (
    MISSING,
    Codec,
    Field,
    NotNull,
    Nullable,
    Options,
    Reading,
    Stored,
)
from treefold_orm._fields.meta import Instance, Meta, Relation, find_owner_meta

if TYPE_CHECKING:
    from treefold_orm._terms.columns import Reference

M = TypeVar("M", bound=Instance)
M2 = TypeVar("M2", bound=Instance)
V = TypeVar("V")

OnDelete = Literal["RESTRICT", "PROTECT", "CASCADE", "SET_NULL", "SET_DEFAULT"]
RESTRICT: OnDelete = "RESTRICT"
PROTECT: OnDelete = "PROTECT"
CASCADE: OnDelete = "CASCADE"
SET_NULL: OnDelete = "SET_NULL"
SET_DEFAULT: OnDelete = "SET_DEFAULT"
_ACTIONS = {"RESTRICT", "PROTECT", "CASCADE", "SET_NULL", "SET_DEFAULT"}
_ELSEWHERE = {  # Django's other rules
    "DO_NOTHING": "the database enforces foreign keys: use RESTRICT",
    "SET": "use SET_DEFAULT with a default",
}


class KeyOptions(Options, total=False):
    """Keyword options of a foreign key."""

    related_name: str | None
    constraint_name: str | None


class NotNullKey(KeyOptions, NotNull):
    """Options of a foreign key that always has a target."""


class NullableKey(KeyOptions, Nullable):
    """Options of a foreign key that may be None."""


class ForeignKey(Field[V], Generic[M, V]):
    """A reference to one row of another model.

    `to` is the class, its name ("Tag", or with its module "shop.models.Tag"), or "self";
    `on_delete` is the action on the row when its target is deleted, done by the
    database: RESTRICT (default), CASCADE, SET_NULL or SET_DEFAULT, as constants of this package or
    the same words as text. PROTECT is RESTRICT to the database, and `delete()` looks for
    protecting rows before: it raises `ProtectedError`, also where they would be deleted along.
    `related_name` names the way back (default `<model>_set`); `constraint_name` is the name of the
    key in the database (default `fk_<table>_<column>`).
    """

    one_to_one = False
    _made: tuple[Relation, ...] = ()

    @overload
    def __init__(
        self: ForeignKey[M2, M2],
        to: type[M2],
        on_delete: OnDelete = RESTRICT,
        **options: Unpack[NotNullKey],
    ) -> None: ...
    @overload
    def __init__(
        self: ForeignKey[M2, M2 | None],
        to: type[M2],
        on_delete: OnDelete = RESTRICT,
        **options: Unpack[NullableKey],
    ) -> None: ...
    @overload
    def __init__(
        self: ForeignKey[Any, Any],
        to: str,
        on_delete: OnDelete = RESTRICT,
        *,
        null: bool = False,
        **options: Unpack[KeyOptions],
    ) -> None: ...
    def __init__(
        self,
        to: Any,
        on_delete: OnDelete = RESTRICT,
        *,
        related_name: str | None = None,
        constraint_name: str | None = None,
        **options: Any,
    ) -> None:
        if on_delete not in _ACTIONS:
            hint = _ELSEWHERE.get(on_delete) or f"use one of {', '.join(sorted(_ACTIONS))}"
            raise ModelError(f"on_delete cannot be {on_delete!r}; {hint}")
        if on_delete == "SET_NULL" and not options.get("null"):
            raise ModelError("on_delete=SET_NULL needs null=True")
        if on_delete == "SET_DEFAULT" and "db_default" not in options:
            default = options.get("default", MISSING)
            if default is MISSING or callable(default):
                raise ModelError("on_delete=SET_DEFAULT needs a db_default, or a constant default")
            # the database itself sets the column, and knows no default of Python
            options["db_default"] = default
        # PostgreSQL makes no index for a foreign key; a unique one has that of its constraint
        options.setdefault("db_index", not self.one_to_one)
        if self.one_to_one:
            options["unique"] = True
        self._init_field(options)
        self.to: type[Instance] | str = to
        self.related_name = related_name
        self.constraint_name = constraint_name
        self.on_delete: OnDelete = on_delete
        self.target: Meta | None = None

    @property
    def database_action(self) -> str:
        """The action that the database is given: PROTECT is RESTRICT there."""
        return RESTRICT if self.on_delete == PROTECT else self.on_delete

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type[object]) -> Reference[M]: ...
        @overload
        def __get__(self, instance: Stored, owner: type[object]) -> V: ...
        @overload
        def __get__(self, instance: object, owner: type[object]) -> Self: ...
        def __get__(self, instance: Any, owner: type[object]) -> Any: ...

    else:

        def __get__(self, instance, owner):
            if instance is None:
                return self.column
            return instance._get_or_load_related(self)

        def __set__(self, instance, value):
            instance._set_related(self, value)

    def compute_attribute_name(self) -> str:
        return f"{self.name}_id"

    def link_target(self, target: Meta) -> None:
        """Learn the target, and make the relation known on both sides."""
        if target.abstract:
            raise ModelError(
                f"{self.meta.name}.{self.name} points to abstract {target.name}: point to a "
                "concrete model"
            )
        source = find_owner_meta(self)
        forward = self.set_target(target)
        self._made = (forward,)
        source.add_relation(forward)
        target.add_incoming_foreign_key(self)
        back = self.reverse_name()
        if back is not None:
            several = not self.one_to_one
            reverse = Relation(back, target, source, "reverse", target.pk, self, to_many=several)
            self._made = (forward, reverse)
            target.add_relation(reverse)
            target.model._add_relation_accessor(reverse)

    def set_target(self, target: Meta) -> Relation:
        """Learn the target; return the relation to it."""
        source = find_owner_meta(self)
        refuse_composite_target(source, self.name, target)
        self.target = target
        return Relation(self.name, source, target, "forward", self, target.pk, nullable=self.null)

    def unlink_target(self) -> None:
        """Forget the target, and take the relation back from both sides."""
        if self.target is not None:
            self.target.pointers.remove(self)
        self.target = None
        unregister_relations(self._made)

    @property
    def is_in_use(self) -> bool:
        """True while its model is registered: a reload puts another one in its place."""
        return find_owner_meta(self).registry.has_model(find_owner_meta(self))

    def reverse_name(self) -> str | None:
        """Name of the way back, or None where `related_name` ends with `+` and there is none."""
        if self.related_name is not None:
            return None if self.related_name.endswith("+") else self.related_name
        lower = self.meta.name.lower()
        return lower if self.one_to_one else f"{lower}_set"

    @property
    def known_target(self) -> Meta:
        """The target's meta, or `FieldError` while no class has the name."""
        if self.target is None:
            find_owner_meta(self).registry.resolve_pending_targets()
        if self.target is None:
            raise FieldError(
                f"{self.meta.name}.{self.name} points to {self.to!r}, which is not defined"
            )
        return self.target

    @property
    def internal(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - follows the target's key
        return self.known_target.pk.internal

    @property
    def normalises(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride] - follows the target's key
        return self.known_target.pk.normalises

    def column_type(self, dialect: str) -> str:
        return self.known_target.pk.column_type(dialect)

    def coerce(self, value: Any) -> Any:
        target = self.known_target
        if isinstance(value, target.model):
            value = value.pk
            if value is None:
                raise self.build_value_error(f"that {target.name} is not saved yet")
        elif hasattr(value, "_meta"):
            raise self.build_value_error(f"takes a {target.name}, not a {type(value).__name__}")
        try:
            return target.pk.coerce(value)
        except ValueError as error:
            raise self.build_value_error(str(getattr(error, "reason", "not a key"))) from None

    def fits_all(self, values: list[Any]) -> bool:
        return self.known_target.pk.fits_all(values)

    def parse(self, text: str) -> Any:
        return self.known_target.pk.parse(text)

    def encoder(self, dialect: str) -> Codec | None:
        return self.known_target.pk.encoder(dialect)

    def decoder(self, dialect: str) -> Codec | None:
        return self.known_target.pk.decoder(dialect)

    def build_read_rule(self, dialect: str) -> Reading:
        return self.known_target.pk.build_read_rule(dialect)

    def read_unexpected_value(self, raw: Any) -> Any:
        return self.known_target.pk.read_unexpected_value(raw)


def unregister_relations(made: tuple[Relation, ...]) -> None:
    """Take relations back from the models that they start from."""
    for relation in made:
        relation.source.drop_relation(relation)


def refuse_composite_target(source: Meta, name: str, target: Meta) -> None:
    """Raise `ModelError` for a relation to a model whose primary key has several columns."""
    if len(target.keys) > 1:
        raise ModelError(
            f"{source.name}.{name} cannot use the primary key of {target.name}, which has several "
            f"columns ({', '.join(key.name for key in target.keys)}); keep these in fields of "
            f"{source.name}, or give {target.name} a key of one column"
        )


def is_foreign_key(field: object) -> TypeGuard[ForeignKey[Any, Any]]:
    """Return True for a foreign key, in a form that type checkers understand."""
    return isinstance(field, ForeignKey)


class OneToOneField(ForeignKey[M, V], Generic[M, V]):
    """A foreign key that is unique, so that the way back leads to one instance."""

    one_to_one = True

    @overload
    def __init__(
        self: OneToOneField[M2, M2],
        to: type[M2],
        on_delete: OnDelete = RESTRICT,
        **options: Unpack[NotNullKey],
    ) -> None: ...
    @overload
    def __init__(
        self: OneToOneField[M2, M2 | None],
        to: type[M2],
        on_delete: OnDelete = RESTRICT,
        **options: Unpack[NullableKey],
    ) -> None: ...
    @overload
    def __init__(
        self: OneToOneField[Any, Any],
        to: str,
        on_delete: OnDelete = RESTRICT,
        *,
        null: bool = False,
        **options: Unpack[KeyOptions],
    ) -> None: ...
    def __init__(self, to: Any, on_delete: OnDelete = RESTRICT, **options: Any) -> None:
        super().__init__(to, on_delete, **options)


AnyForeignKey = ForeignKey[Any, Any]
