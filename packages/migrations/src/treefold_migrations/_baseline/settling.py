"""Proposals are held against the database until it prints the same, or none is left.

Nothing is taken over because it looks right: tables are rendered as `create_all` would, and
compared as `drift` does. Remaining differences are written down with the table (`as_found`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from treefold_migrations._base.errors import StateError
from treefold_migrations._baseline.drafts import Draft, TableDraft
from treefold_migrations._baseline.reading import Database
from treefold_migrations._inspect.compare import Difference
from treefold_migrations._inspect.found import Catalog, InspectError
from treefold_migrations._inspect.live import make_comparison, read_catalog_and_expected
from treefold_migrations._inspect.postgres import create_tables_in_temporary_schema
from treefold_migrations._state.rendering import render_managed_tables, render_table
from treefold_migrations._state.schema_state import AsFound, SchemaState
from treefold_orm import DatabaseError, ORMError
from treefold_orm.schema import Dialect, Operation, Statement


def build_schema_state(drafts: Iterable[TableDraft]) -> SchemaState:
    """Return the state that drafts lead to."""
    return SchemaState({draft.name: draft.to_table_state() for draft in drafts})


def choose_proposals(
    drafts: Sequence[TableDraft], database: Database, dialect: Dialect
) -> Operation[None]:
    """Choose the proposals that the database confirms, and note remaining differences.

    Raises `InspectError` for a table that cannot be compared.
    """
    _refuse_unrenderable_proposals(drafts, dialect)
    yield from _refuse_uncreatable_proposals(drafts, database, dialect)
    while True:
        found, catalog = yield from _compare_drafts(drafts, database, dialect)
        # each round moves at least one draft on, and proposals are finite
        if not _refuse_mismatched_proposals(drafts, found, catalog):
            break
    for draft in drafts:
        own = [d for d in found if d.table == draft.name]
        draft.as_found = tuple(dict.fromkeys(AsFound(*difference.key) for difference in own))


def _compare_drafts(
    drafts: Sequence[TableDraft], database: Database, dialect: Dialect
) -> Operation[tuple[list[Difference], Catalog]]:
    wanted = render_managed_tables(build_schema_state(drafts), dialect)
    catalog, printed = yield from read_catalog_and_expected(database.engine, wanted)
    unmanaged = {draft.name for draft in drafts if not draft.managed}
    ignored = frozenset(unmanaged)
    return list(
        make_comparison(database.engine).compare_tables(printed, catalog, ignored=ignored)
    ), catalog


def _refuse_mismatched_proposals(
    drafts: Sequence[TableDraft], differences: Sequence[Difference], catalog: Catalog
) -> bool:
    moved = False
    for draft in drafts:
        notes = catalog.tables[draft.name].notes.values() if draft.managed else ()
        noted = {note for several in notes for note in several}
        # NOT VALID, a collation and the like belong to no proposal: another one would differ as
        # well
        own = [d for d in differences if d.table == draft.name and d.found not in noted]
        for part in draft.list_part_and_default_drafts():
            kinds = ("default",) if part.kind == "default" else _PARTS
            wrong = any(d.name == part.name and d.kind in kinds for d in own)
            # the words of the catalog cannot be improved: what still differs is noted
            moved = (
                wrong and not part.uses_catalog_sql and part.advance_to_next_proposal()
            ) or moved
    return moved


_PARTS = ("unique", "check", "index", "search index", "exclusion", "name")


def _refuse_unrenderable_proposals(drafts: Sequence[TableDraft], dialect: Dialect) -> None:
    """Pass over proposals that the ORM itself refuses."""
    managed = [draft for draft in drafts if draft.managed]
    others = build_schema_state(replace(draft, parts=[]) for draft in managed)
    for draft in managed:
        kept, draft.parts = draft.parts, []
        defaults = [f.default for f in draft.fields.values() if len(f.default.proposals) > 1]
        # one that is refused would cost those before it: each is tried beside the last proposals
        # of the defaults after it
        for default in defaults:
            default.chosen = len(default.proposals) - 1
        for default in defaults:
            default.chosen = 0
            _advance_part_until_renderable(default, others, draft, dialect)
        for part in kept:
            draft.parts.append(part)
            _advance_part_until_renderable(part, others, draft, dialect)


def _advance_part_until_renderable(
    part: Draft, others: SchemaState, draft: TableDraft, dialect: Dialect
) -> None:
    while not _is_renderable(others, draft, dialect):
        if not part.advance_to_next_proposal():
            return


def _is_renderable(others: SchemaState, draft: TableDraft, dialect: Dialect) -> bool:
    try:
        render_table(others.with_table(draft.to_table_state()), draft.name, dialect)
    except (ORMError, StateError):
        return False
    return True


def _refuse_uncreatable_proposals(
    drafts: Sequence[TableDraft], database: Database, dialect: Dialect
) -> Operation[None]:
    """Pass over proposals that the database refuses to create."""
    try:
        yield from _compare_drafts(drafts, database, dialect)
    # one refused table stops all of them: only then each is tried alone
    except InspectError:
        pass
    else:
        return
    for draft in drafts:
        if draft.managed and not (yield from _try_create_temporary_table(draft, drafts, dialect)):
            yield from _choose_creatable_parts(draft, drafts, dialect)


def _try_create_temporary_table(
    draft: TableDraft, drafts: Sequence[TableDraft], dialect: Dialect
) -> Operation[bool]:
    table = render_table(build_schema_state(drafts), draft.name, dialect)
    # a statement that failed ends the whole transaction on PostgreSQL: one for each try
    yield Statement("script", "BEGIN")
    try:
        yield from create_tables_in_temporary_schema([table])
    except DatabaseError:
        return False
    finally:
        yield Statement("script", "ROLLBACK")
    return True


def _choose_creatable_parts(
    draft: TableDraft, drafts: Sequence[TableDraft], dialect: Dialect
) -> Operation[None]:
    """Leave out the parts of a table that the database refuses, such as those over columns that no
    field holds.
    """
    first_choices = [(part, part.chosen) for part in draft.list_part_and_default_drafts()]
    for part, _ in first_choices:
        # all parts left out at first, which the database takes; then one by one
        part.chosen = len(part.proposals) - 1
    for part, first in first_choices:
        for chosen in range(first, len(part.proposals)):
            part.chosen = chosen
            if (yield from _try_create_temporary_table(draft, drafts, dialect)):
                break
