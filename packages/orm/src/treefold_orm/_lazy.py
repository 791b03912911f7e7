"""Reading what was not loaded: refused in async code, done for a whole result at once in sync
code.

Never row by row: instances of one result know each other, and what one of them lacks is loaded for
all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._context import current
from treefold_orm._errors import NotLoaded
from treefold_orm._fields._base import Field
from treefold_orm._fields._relations import is_foreign_key
from treefold_orm._meta import Relation
from treefold_orm._prefetch import as_prefetch, attach, prefetch
from treefold_orm._run import in_event_loop, run
from treefold_orm._saving import adopt
from treefold_orm._statement import Operation

if TYPE_CHECKING:
    from treefold_orm._model import Model


def _refuse_in_async(instance: Model, name: str, hint: str) -> None:
    if in_event_loop() and not getattr(current.get(), "blocking", False):
        raise NotLoaded(
            f"{instance._meta.name}.{name} is not loaded: add {hint} to the query, or `await "
            f"instance.aload({name!r})`"
        )


def load_field(instance: Model, field: Field[Any]) -> Any:
    """The value of a column that was not part of the query."""
    if instance._row is None:
        raise AttributeError(f"{instance._meta.name}.{field.attname} was never set")
    _refuse_in_async(instance, field.name, f"only(..., {field.name!r})")
    twin = f"await instance.aload({field.name!r})"
    run(
        instance._alias,
        load_names(_peers(instance), instance._alias, (field.attname,), peers=True),
        twin,
    )
    return instance.__dict__[field.attname]


def load_related(instance: Model, relation: Relation) -> Any:
    """The instance at the end of a to-one relation that was not part of the query."""
    name = relation.name
    _refuse_in_async(instance, name, f".select_related({name!r})")
    mates = [o for o in _peers(instance) if f"_cached_{name}" not in o.__dict__ or o is instance]
    operation = attach(mates, relation, None, instance._alias, to_attr=None, peers=True)
    run(instance._alias, operation, f"await instance.aload({name!r})")
    found = instance.__dict__[f"_cached_{name}"]
    if found is None and relation.kind == "forward":
        raise relation.target.model.DoesNotExist(
            f"The {relation.target.name} this {instance._meta.name} points to is gone"
        )
    return found


def _peers(instance: Model) -> list[Any]:
    peers = instance._peers
    return [instance] if peers is None else [o for o in peers if o._row is not None]


def load_names(
    instances: list[Any], alias: str, names: Sequence[str], *, peers: bool
) -> Operation[None]:
    """Load columns and relations by name for all instances."""
    meta = instances[0]._meta
    columns: list[str] = []
    for name in names:
        field = meta.fields.get(name) or meta.by_attname.get(name)
        if field is None or (is_foreign_key(field) and name == field.name):
            for instance in instances:
                instance.__dict__.pop(f"_cached_{name}", None)
            yield from prefetch(instances, [as_prefetch(meta, name)], alias, peers=peers)
        else:
            columns.append(field.name)
    if not columns:
        return
    from treefold_orm._managers import plain_query
    from treefold_orm._operations import rows

    lacking = [
        o for o in instances if any(meta.fields[c].attname not in o.__dict__ for c in columns)
    ] or instances
    query = plain_query(meta, alias).only(*columns).filter(pk__in=[o.pk for o in lacking])
    found = yield from rows(query, peers=False)
    fresh = {o.pk: o for o in found}
    for instance in lacking:
        if instance.pk in fresh:
            adopt(instance, fresh[instance.pk])
