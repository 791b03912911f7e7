"""Renames: certain ones are taken, likely ones are asked for, none is guessed.

A pair of names is worth a question from a score of `CANDIDATE` on. For two fields that means:

| Their definitions | Their names must be alike by |
|---|---|
| the same | 0: any two |
| of one type, with other options | 0.2 |
| of two types, or keys to two tables | 0.95: nearly the same |

Two tables of which each has only equal fields are a question whatever their names, and so are two
that share two thirds of their fields.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from treefold_migrations._base.errors import MigrationError
from treefold_migrations._detect.answers import Answers, Question
from treefold_migrations._detect.walk import OperationsBuilder
from treefold_migrations._operations.columns import AlterField, RenameField
from treefold_migrations._operations.tables import RenameTable
from treefold_migrations._state.schema_state import (
    AnyField,
    TableState,
    derive_column_name,
    is_same_declaration,
)
from treefold_orm.schema import is_foreign_key, unbound_copy

Score = Callable[[str, str], float]
"""How likely it is that one name is another one now, from 0 to 1. A score never decides."""
CANDIDATE = 0.5
"""The score from which on a pair is worth a question."""
SAME_DEFINITION, SAME_TYPE, OTHER_TYPE = 1.0, 0.7, 0.2
"""How alike two fields are without their names. Not 0 for the last: a field may get another type
with its new name.
"""
DEFINITION_SHARE = 0.6
"""The part of the score of two fields that their definitions decide, and not their names."""
FIELDS_SHARE = 0.75
"""The part of the score of two tables that their fields decide, and not their names."""


def detect_table_renames(walk: OperationsBuilder) -> None:
    """Add the renames of tables, and of the tables between models that follow them."""
    old, new = walk.state.tables, walk.wanted.tables
    gone = [n for n, t in old.items() if n not in new and t.options.managed]
    # tables of a many-to-many follow the model, and are no question of their own
    owned = [n for n in gone if any(is_link_table(old[n], owner) for owner in gone)]
    _emit_table_renames(walk, [n for n in gone if n not in owned])
    # a table that has not followed its model is asked for like any other
    _emit_table_renames(walk, [n for n in owned if n in walk.state])


def _emit_table_renames(walk: OperationsBuilder, removed_tables: Sequence[str]) -> None:
    old, new = walk.state.tables, walk.wanted.tables
    added = [n for n, t in new.items() if n not in old and t.options.managed]

    def score_tables(before: str, after: str) -> float:
        return score_table_rename(old[before], new[after])

    for before, after in _resolve_renames_by_answers(
        "table", "", removed_tables, added, walk.answers, score_tables
    ).items():
        links = _find_link_table_renames(walk, before, after)
        walk.append_and_apply_operation(RenameTable(before, after))
        for link, renamed in links.items():
            walk.append_and_apply_operation(RenameTable(link, renamed))


def is_link_table(table: TableState, owner: str) -> bool:
    """Return True for a table that a many-to-many field of the model of `owner` makes."""
    own = any(is_foreign_key(f) and f.to == owner for f in table.fields.values())
    return own and table.name.startswith(f"{owner}_")


def _find_link_table_renames(walk: OperationsBuilder, before: str, after: str) -> dict[str, str]:
    """The tables between models that are called after a renamed one, with their new names."""
    moved = {
        name: f"{after}{name[len(before) :]}"
        for name, table in walk.state.tables.items()
        if name not in walk.wanted and is_link_table(table, before)
    }
    return {name: new for name, new in moved.items() if new in walk.wanted and new != name}


def detect_field_renames(walk: OperationsBuilder) -> None:
    """Add the renames of fields in the tables that are in both states."""
    for name in walk.list_changed_tables():
        _emit_field_renames(walk, name)


def _emit_field_renames(walk: OperationsBuilder, name: str) -> None:
    certain = _find_certain_field_renames(walk.state.table(name), walk.wanted.table(name))
    for old, new in certain.items():
        _emit_rename_keeping_column(walk, name, old, new)
    before, after = walk.state.table(name), walk.wanted.table(name)
    gone = [n for n in before.fields if n not in after.fields]
    added = [n for n in after.fields if n not in before.fields]

    def score_fields(old: str, new: str) -> float:
        return score_field_rename(old, before.fields[old], new, after.fields[new])

    for old, new in _resolve_renames_by_answers(
        "field", f"{name}.", gone, added, walk.answers, score_fields
    ).items():
        walk.append_and_apply_operation(RenameField(name, old, new))


def _find_certain_field_renames(before: TableState, after: TableState) -> dict[str, str]:
    """Fields that keep their column, and ends of a table between models whose target was
    renamed.
    """
    gone = {n: f for n, f in before.fields.items() if n not in after.fields}
    added = {n: f for n, f in after.fields.items() if n not in before.fields}
    found: dict[str, str] = {}
    for old, field in gone.items():
        for new, other in added.items():
            same_column = derive_column_name(old, field) == derive_column_name(new, other)
            if same_column or (
                _is_link_foreign_key(old, field, before)
                and _is_link_foreign_key(new, other, after, field)
            ):
                found.setdefault(old, new)
    return found


def _is_link_foreign_key(
    name: str, field: AnyField, table: TableState, same_target_as: AnyField | None = None
) -> bool:
    """True for the foreign key of an automatic table, whose name is that of its target's model."""
    if not is_foreign_key(field) or len(table.fields) != 3 or "_" not in table.name:
        return False
    same_target = same_target_as is None or (
        is_foreign_key(same_target_as) and same_target_as.to == field.to
    )
    automatic = "_" in table.model and name == name.lower()
    return same_target and automatic


def _emit_rename_keeping_column(walk: OperationsBuilder, table: str, old: str, new: str) -> None:
    """Rename a field whose column stays, or whose column follows by a rename of its own."""
    before = walk.state.table(table).field(old)
    wanted = walk.wanted.table(table).field(new)
    column = derive_column_name(old, before)
    if derive_column_name(new, wanted) == column:
        pinned = _with_db_column(before, column)
        if not is_same_declaration(pinned, before):
            walk.append_and_apply_operation(AlterField(table, old, pinned))
    walk.append_and_apply_operation(RenameField(table, old, new))


def _with_db_column(field: AnyField, column: str) -> AnyField:
    made = unbound_copy(field)
    args, options = made.declared
    kept: AnyField = type(made)(*args, **{**options, "db_column": column})
    return kept


def _resolve_renames_by_answers(
    kind: Literal["table", "field"],
    prefix: str,
    removed_names: Sequence[str],
    added: Sequence[str],
    answers: Answers,
    score: Score,
) -> dict[str, str]:
    chosen: dict[str, str] = {}
    free = list(added)
    for old in removed_names:
        if f"{prefix}{old}" in answers.renames:
            chosen[old] = _read_rename_answer(prefix, old, free, answers)
            free.remove(chosen[old])
    for old in removed_names:
        subject = f"{prefix}{old}"
        if old in chosen:
            continue
        if subject in answers.drops:
            answers.used.add(f"--drop {subject}")
            continue
        scores = {new: score(old, new) for new in free}
        likely = sorted((n for n in free if scores[n] >= CANDIDATE), key=lambda n: -scores[n])
        if not likely:
            continue
        answers.record_flag(
            answers.ask_for_flag(_build_question(kind, prefix, old, {n: scores[n] for n in likely}))
        )
        if subject in answers.renames:
            chosen[old] = _read_rename_answer(prefix, old, free, answers)
            free.remove(chosen[old])
        answers.used.add(f"--drop {subject}")
    return chosen


def _read_rename_answer(prefix: str, old: str, free: Sequence[str], answers: Answers) -> str:
    subject = f"{prefix}{old}"
    new = answers.renames[subject]
    if new not in free:
        known = ", ".join(f"{prefix}{name}" for name in free) or "none"
        raise MigrationError(
            f"--rename {subject}:{new} does not fit: {prefix}{new} must be new in the models; "
            f"new ones are {known}"
        )
    answers.used.add(f"--rename {subject}")
    return new


def _build_question(
    kind: Literal["table", "field"], prefix: str, old: str, scores: Mapping[str, float]
) -> Question:
    subject = f"{prefix}{old}"
    flags = [f"--rename {subject}:{new}" for new in scores] + [f"--drop {subject}"]
    shown = ", ".join(f"{new} ({score:.0%} alike)" for new, score in scores.items())
    return Question(
        kind,
        subject,
        tuple(scores),
        tuple(flags),
        f"The {kind} {subject} is gone, and there are new ones: {shown}; was it renamed? Give one "
        f"of: {', or '.join(flags)}",
    )


# -- scores ---------------------------------------------------------------------------------------


def score_field_rename(old_name: str, old: AnyField, new_name: str, new: AnyField) -> float:
    """Score two fields by definition first, then by name."""
    if is_same_declaration(old, new):
        alike = SAME_DEFINITION
    elif type(old) is type(new):
        # keys to two tables are rarely the same field
        other = is_foreign_key(old) and is_foreign_key(new) and old.to != new.to
        alike = OTHER_TYPE if other else SAME_TYPE
    else:
        alike = OTHER_TYPE
    names = _compute_similarity(old_name, new_name)
    return DEFINITION_SHARE * alike + (1 - DEFINITION_SHARE) * names


def score_table_rename(old: TableState, new: TableState) -> float:
    """Score two tables by the fields that they share, then by the names of model and table. A table
    does not move to another database.
    """
    if old.options.database != new.options.database:
        return 0.0
    shared = old.fields.keys() & new.fields.keys()
    equal = [name for name in shared if _is_equal_field(old, new, name)]
    most = max(len(old.fields), len(new.fields), 1)
    # a field of the same name with another definition counts half
    alike = (len(equal) + 0.5 * (len(shared) - len(equal))) / most
    names = max(_compute_similarity(old.name, new.name), _compute_similarity(old.model, new.model))
    return FIELDS_SHARE * alike + (1 - FIELDS_SHARE) * names


def _is_equal_field(old: TableState, new: TableState, name: str) -> bool:
    one, other = old.fields[name], new.fields[name]
    if is_foreign_key(one) and is_foreign_key(other) and one.to == old.name:
        return other.to == new.name  # each points to itself
    return is_same_declaration(one, other)


def _compute_similarity(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()
