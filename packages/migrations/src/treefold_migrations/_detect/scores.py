"""How likely it is that one table or field is another one under a new name, from 0 to 1.

A score never decides. It says which renames are worth a question; what scores below `CANDIDATE` is
another thing.
"""

from __future__ import annotations

import difflib

from treefold_migrations._state.schema_state import AnyField, TableState, same_parts
from treefold_orm.schema import is_foreign_key

CANDIDATE = 0.5


def field_score(old_name: str, old: AnyField, new_name: str, new: AnyField) -> float:
    """Score two fields by definition first, then by name."""
    if same_parts(old, new):
        kind = 1.0
    elif type(old) is type(new):
        other = is_foreign_key(old) and is_foreign_key(new) and old.to != new.to
        kind = 0.2 if other else 0.7
    else:
        kind = 0.2
    return 0.6 * kind + 0.4 * _likeness(old_name, new_name)


def table_score(old: TableState, new: TableState) -> float:
    """Score two tables by the fields that they share, then by the names of model and table."""
    shared = old.fields.keys() & new.fields.keys()
    equal = [name for name in shared if _equal(old, new, name)]
    most = max(len(old.fields), len(new.fields), 1)
    alike = (len(equal) + 0.5 * (len(shared) - len(equal))) / most
    names = max(_likeness(old.name, new.name), _likeness(old.model, new.model))
    return 0.75 * alike + 0.25 * names


def _equal(old: TableState, new: TableState, name: str) -> bool:
    one, other = old.fields[name], new.fields[name]
    if is_foreign_key(one) and is_foreign_key(other) and one.to == old.name:
        return other.to == new.name  # each points to itself
    return same_parts(one, other)


def _likeness(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()
