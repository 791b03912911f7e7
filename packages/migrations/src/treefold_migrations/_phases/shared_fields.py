"""The field that two releases share while both run, from the one before and the one after.

| Changed | The shared field | Waits for contract |
|---|---|---|
| NULL allowed, or no more | allows NULL | NOT NULL |
| unique, or no more | not unique | the constraint |
| a longer or wider type, no row written again | the new type | |
| a shorter or narrower type | the old type | the new type |
| `db_default` removed | keeps it | its removal |
| `db_default` added | has it | |
| an index removed | keeps it | its removal |

A change outside of this table is refused: one of the releases would fail, or read another value
than the other one wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treefold_migrations._base.errors import PlanError
from treefold_migrations._conversions.conversion import find_value_kind
from treefold_migrations._conversions.converting import find_conversion
from treefold_migrations._detect.losses import is_stricter_field
from treefold_migrations._plan.postgres_rewrites import type_change_rewrites_rows
from treefold_migrations._state.schema_state import AnyField, is_same_declaration
from treefold_orm.fields import EnumField
from treefold_orm.schema import MISSING, Dialect, is_foreign_key

LATER = "apply the file with `migrate` while no process of the running release is left"
REWRITTEN = "every row is written again under a lock that stops the running release"
NEW_FIELD = (
    "add a field of the new type, fill it, and drop the old one in a later release; or apply the "
    "file with `migrate` while no process of the running release is left"
)


@dataclass(frozen=True, slots=True)
class Refused:
    """A change that no running release bears: the reason, and the way without it."""

    reason: str
    way: str


def with_options(field: AnyField, **options: Any) -> AnyField:
    """Return a field with some arguments of its constructor replaced."""
    args, given = field.declared
    made: AnyField = type(field)(*args, **{**given, **options})
    return made


def build_field_for_both_releases(
    old: AnyField, new: AnyField, dialect: Dialect
) -> AnyField | Refused:
    """Return the field that rows of both releases fit."""
    if old.primary_key != new.primary_key:
        return Refused("the running release still uses the old key", LATER)
    if old.primary_key and not is_same_declaration(old, new):
        return new if _is_same_column(old, new, dialect) else Refused(REWRITTEN, NEW_FIELD)
    base = _choose_base_field(old, new, dialect)
    if isinstance(base, Refused):
        return base
    default = _choose_shared_default(old, new)
    if isinstance(default, Refused):
        return default
    wanted: dict[str, Any] = {
        "null": old.null or new.null,
        "unique": old.unique and new.unique,
        "db_index": old.db_index or new.db_index,
        "db_default": default,
    }
    changed = {key: value for key, value in wanted.items() if getattr(base, key) is not value}
    return with_options(base, **changed) if changed else base


def _choose_base_field(old: AnyField, new: AnyField, dialect: Dialect) -> AnyField | Refused:
    if is_foreign_key(old) and is_foreign_key(new):
        if (old.to, old.on_delete) != (new.to, new.on_delete):
            return Refused("the running release still relies on the old reference", LATER)
        # unique in contract: the running release may give two rows one target
        return old if new.one_to_one and not old.one_to_one else new
    if is_foreign_key(old) or is_foreign_key(new) or find_value_kind(old) != find_value_kind(new):
        return Refused("the running release still reads and writes the old type", NEW_FIELD)
    if isinstance(old, EnumField) and isinstance(new, EnumField):
        gone = _list_enum_values(old) - _list_enum_values(new)
        if gone:
            return Refused(
                "the running release still writes values that the new one cannot read",
                "keep the members in a release that writes them no more and changes their rows, "
                "then apply the file with `migrate` before the release without them",
            )
    if _is_same_column(old, new, dialect):
        return new
    back = _keeps_stored_values(new, old, dialect)
    if _keeps_stored_values(old, new, dialect):
        return new if _is_instant_change(old, new, dialect) else Refused(REWRITTEN, NEW_FIELD)
    return old if back else Refused("its values are stored in another form", NEW_FIELD)


def _keeps_stored_values(old: AnyField, new: AnyField, dialect: Dialect) -> bool:
    """True where every stored value of a field stays as it is under another one."""
    # null and unique have rules of their own
    bare = with_options(old, null=False), with_options(new, null=False)
    if is_stricter_field(*(with_options(field, unique=False) for field in bare)):
        return False
    try:
        made = find_conversion(old, new, dialect, field_path="")
    except PlanError:
        return False
    return made is None or (made.keeps_values and not (made.misfit or made.castable))


def _is_instant_change(old: AnyField, new: AnyField, dialect: Dialect) -> bool:
    one, two = old.column_type(dialect.name), new.column_type(dialect.name)
    # SQLite has one writer at a time in any case
    return dialect.name == "sqlite" or one == two or not type_change_rewrites_rows(one, two)


def _is_same_column(old: AnyField, new: AnyField, dialect: Dialect) -> bool:
    if is_foreign_key(old) or is_foreign_key(new):
        return type(old) is type(new)
    types = old.column_type(dialect.name), new.column_type(dialect.name)
    if types[0] != types[1] or old.checks(dialect.name) != new.checks(dialect.name):
        return False
    try:
        return find_conversion(old, new, dialect, field_path="") is None
    except PlanError:
        return False


def _choose_shared_default(old: AnyField, new: AnyField) -> Any:
    if old.db_default is MISSING:
        return new.db_default
    if new.db_default is MISSING:
        return old.db_default
    given = with_options(new, db_default=old.db_default)
    if is_same_declaration(given, new) or not new.db_fills:
        return old.db_default  # the new release sends its own value
    if not old.db_fills:
        return new.db_default  # the running release does
    return Refused(
        "both releases leave its value to the database, and expect another one",
        "give the field the new value as its default, too: default= beside db_default=",
    )


def _list_enum_values(field: Any) -> set[Any]:
    return {member.value for member in field.enum_class}
