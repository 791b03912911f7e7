"""`make`: rows for tests, with values that fit their fields.

    make(Book)                       Book(title="title 1", pages=1, writer=make(Writer))
    make(Book, title="Emma", n=2)    two of them, with the title of the call
    make(Book, writer=ada)           the given writer; without one, each book has its own

A field that is left out keeps its default, or None where it allows that. For all others the first
of `_VALUES` counts that the field takes, and that no row has where it must be unique: what a field
takes is asked of `clean`, so that choices, lengths and validators are told in one place.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import itertools
import uuid
from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import Any, TypeVar, overload

from treefold_orm import fields
from treefold_orm._base.errors import FieldValueError, IntegrityError, ModelError
from treefold_orm._fields.base import MISSING, AnyField
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._models.model import Model
from treefold_orm._runtime.transactions import transaction
from treefold_orm._terms.constraints import UniqueConstraint

M = TypeVar("M", bound=Model)

MOST_TRIES = 300
"""Numbers that are tried for one value: more than a field has choices."""
_numbers = itertools.count(1)


@overload
def make(model: type[M], /, *, n: int, **values: Any) -> list[M]: ...
@overload
def make(model: type[M], /, *, n: None = None, **values: Any) -> M: ...
def make(model: type[M], /, *, n: int | None = None, **values: Any) -> M | list[M]:
    """Create a row for a test, with values that fit its fields, or `n` rows as a list.

    Fields with a default or `null=True` keep it. A foreign key without either gets a new row.

    Args:
        values: those of fields that the test is about, as for `create`.

    Raises:
        ModelError: a field needs a value that cannot be made; nothing is created.
        FieldError: there is no such field.
    """
    meta: Any = getattr(model, "_meta", None)
    if meta is None or meta.abstract:
        raise ModelError(f"make() must have a model with a table, got {model!r}")
    if n is not None and (type(n) is not int or n < 0):
        raise ValueError(f"n must be a number of rows from 0, got {n!r}")
    if n is not None and "n" in meta.fields:
        raise ModelError(f"n of make() is no value of {meta.name}.n; use objects.create(n=...)")
    with transaction(str(meta.database)):
        if n is None:
            return _make_row(model, values, ())
        return [_make_row(model, values, ()) for _ in range(n)]


@overload
async def amake(model: type[M], /, *, n: int, **values: Any) -> list[M]: ...
@overload
async def amake(model: type[M], /, *, n: None = None, **values: Any) -> M: ...
async def amake(model: type[M], /, *, n: Any = None, **values: Any) -> M | list[M]:
    """`make` for async code."""
    # in a thread, which shares the transaction of this task
    return await asyncio.to_thread(make, model, n=n, **values)


def _make_row(model: type[M], given: dict[str, Any], inside: tuple[AnyField, ...]) -> M:
    """Create one row; `inside` are the foreign keys that led here."""
    meta, number = model._meta, next(_numbers)
    # those whose values differ between rows, alone or together with others
    distinct = {field.name for field in meta.columns if field.unique}
    for constraint in meta.constraints:
        distinct.update(constraint.fields if isinstance(constraint, UniqueConstraint) else ())
    made: dict[str, Any] = {}
    for field in meta.columns:
        is_given = {field.name, field.attname, "pk" if field.primary_key else ""} & given.keys()
        if is_given or field.generated or _may_be_left_out(field, field.name in distinct):
            continue
        if is_foreign_key(field):
            made[field.name] = _make_target(field, inside)
        else:
            made[field.name] = _choose_value(model, field, number)
    try:
        return model.objects.create(**made, **given)
    except IntegrityError as error:
        if not made:
            raise
        raise ModelError(
            f"make({meta.name}) chose {', '.join(made)}, and the database refuses the row: {error};"
            " pass the values that belong together"
        ) from error


def _may_be_left_out(field: AnyField, is_distinct: bool) -> bool:
    if field.default is not MISSING:
        # a constant is that of every row
        return callable(field.default) or not is_distinct
    return field.null or (field.db_fills and not is_distinct)


def _make_target(field: Any, inside: tuple[AnyField, ...]) -> Model:
    if field in inside:
        path = " -> ".join(f"{one.meta.name}.{one.name}" for one in (*inside, field))
        raise ModelError(
            f"make() cannot begin a circle of rows that need each other: {path}; pass {field.name}="
        )
    return _make_row(field.target.model, {}, (*inside, field))


def _choose_value(model: type[Model], field: AnyField, number: int) -> Any:
    """Return the first candidate that the field takes, and that no row has if it is unique."""
    problem, are_taken = "no value of this type is known", False
    for candidate in _list_candidates(field, number):
        try:
            value = field.clean(candidate)
        except FieldValueError as error:
            problem = error.reason
            continue
        if not field.unique or not model.objects.filter(**{field.name: value}).exists():
            return value
        are_taken = True
    problem = "rows have all values that fit" if are_taken else problem
    raise ModelError(
        f"make({field.meta.name}) cannot make a value for {field.name!r}"
        f" ({type(field).__name__}): {problem}; pass {field.name}="
    )


def _list_candidates(field: Any, number: int) -> Iterator[Any]:
    """Yield values for a field, the most readable first; later ones are small, for small fields."""
    known: Any = field.choices or getattr(field, "enum_class", None)
    if known is not None:
        yield from (one for one in known if one is not None)
        return
    for kind, build in _VALUES:
        if isinstance(field, kind):
            for one in (number, *range(MOST_TRIES)):
                yield from build(field, one)
            return


def _build_text(field: Any, number: int) -> Iterator[str]:
    if not field.has_form:
        yield f"{field.verbose_name} {number}"
    yield from (f"{field.name}-{number}", f"{number:x}")


def _moment(number: int, zone: dt.timezone | None = None) -> dt.datetime:
    return dt.datetime(2000, 1, 1, tzinfo=zone) + dt.timedelta(minutes=number)


_VALUES: list[tuple[type[AnyField], Callable[[Any, int], Iterable[Any]]]] = [
    (fields.BooleanField, lambda _, n: (n % 2 == 0,)),
    (fields.IntegerField, lambda _, n: (n,)),
    (fields.FloatField, lambda _, n: (float(n),)),
    (fields.DecimalField, lambda field, n: (n, n * field.unit)),
    (
        fields.GenericIPAddressField,
        lambda _, n: (IPv4Address("10.0.0.0") + n, IPv6Address("2001:db8::") + n),
    ),
    (fields.EmailField, lambda f, n: (f"{f.name}{n}@example.org", f"{n:x}@b.co")),
    (fields.URLField, lambda _, n: (f"https://example.org/{n}", f"http://{n:x}")),
    (fields.TextField, _build_text),
    (fields.UUIDField, lambda _, n: (uuid.UUID(int=n),)),
    (fields.BinaryField, lambda _, n: (str(n).encode(),)),
    (fields.JSONField, lambda _, n: ({"number": n},)),
    (fields.ArrayField, lambda f, n: ([], *([one] for one in _list_candidates(f.base, n)))),
    (fields.DateTimeField, lambda f, n: (_moment(n) if f.storage else _moment(n, dt.UTC),)),
    (fields.DateField, lambda _, n: (dt.date(2000, 1, 1) + dt.timedelta(days=n),)),
    (fields.TimeField, lambda _, n: (_moment(n).time(),)),
    (fields.DurationField, lambda _, n: (dt.timedelta(minutes=n),)),
]
