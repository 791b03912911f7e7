"""Data from outside: `assign` for bodies, `Tainted` for bodies and query strings.

Nothing from a request names a field or lookup unless code listed it. Keys of a `Tainted` mapping
are marked, and every query method, constructor and `update` refuses marked names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from treefold_orm._base.errors import FieldError, FieldValueError
from treefold_orm._fields.meta import Instance

V = TypeVar("V")


class Assignable(Protocol):
    """Values of a request under names that code allowed, such as `Changes` of a handler."""

    def assignable_values(self) -> Mapping[str, Any]:
        """Return the value of each name that was sent."""
        ...


class TaintedKey(str):
    """A name that came from a request; it stays marked on its way through `**`."""

    __slots__ = ()


class Tainted(dict[str, V], Generic[V]):
    """A mapping from a request: reads like a dictionary, but its keys may not name anything in a
    query.
    """

    def keys(self) -> Any:
        """The keys, marked."""
        return [TaintedKey(key) for key in super().__iter__()]

    # with keys() alone, f(**tainted) would take the plain names: CPython copies a subclass of dict
    # directly unless it has an __iter__ of its own
    def __iter__(self) -> Any:
        return iter(self.keys())

    def items(self) -> Any:
        """Pairs with marked keys."""
        return [(TaintedKey(key), value) for key, value in super().items()]


def taint(mapping: Mapping[str, V]) -> Tainted[V]:
    """Return a copy of a mapping whose keys are marked as coming from a request."""
    return Tainted({str(key): value for key, value in mapping.items()})


def assign_untrusted_data(
    instance: Instance, data: Any, *, fields: Sequence[str] | None
) -> list[str]:
    """Set fields of an instance from untrusted data; see `Model.assign`."""
    if isinstance(fields, str):
        raise FieldError("assign(fields=...) takes a list of names, not one text")
    meta = instance._meta
    # of the class: a request can make any attribute of an instance, and no method
    kind: type[Any] = data.__class__
    is_assignable = hasattr(kind, "assignable_values")
    values: Mapping[str, Any] = data.assignable_values() if is_assignable else data
    if fields is None:
        if not is_assignable:
            raise FieldError(
                f"assign() cannot set any name of a {kind.__name__}; name those that a"
                " request may set, assign(data, fields=[...]), or annotate the body Changes[...]"
            )
        fields = tuple(values)
        if key := next((name for name in fields if _is_fixed_key(instance, name)), None):
            raise FieldValueError(meta.name, key, reason="is the key, which cannot be changed")
    allowed = [(name, meta.pk if name == "pk" else meta.require_column(name)) for name in fields]
    given = {str(key): value for key, value in values.items()}
    # all are checked before the first is set
    changes = [(name, field, field.clean(given[name])) for name, field in allowed if name in given]
    for _, field, value in changes:
        setattr(instance, field.attname, value)
        instance.__dict__.pop(f"_cached_{field.name}", None)
    return [name for name, _, _ in changes]


def _is_fixed_key(instance: Instance, name: str) -> bool:
    """Return True for the key of a row that is stored, or one that the database makes."""
    meta = instance._meta
    field = meta.pk if name == "pk" else meta.require_column(name)
    is_key = name == "pk" or field in meta.keys
    return is_key and (instance._row is not None or field.generated)
