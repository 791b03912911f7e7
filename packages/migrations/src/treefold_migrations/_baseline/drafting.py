"""From a database to drafts of its tables: names, fields, keys, and how tables refer to others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from treefold_migrations._baseline.columns import FieldKind, accepts_options, find_field_kind
from treefold_migrations._baseline.drafts import Draft, FieldDraft, TableDraft
from treefold_migrations._baseline.names import (
    derive_class_name,
    derive_field_name,
    is_quotable,
    sanitize_for_comment,
)
from treefold_migrations._baseline.parts import (
    UniqueAndIndexedColumns,
    add_constraints_and_indexes,
    find_unique_and_indexed_columns,
)
from treefold_migrations._baseline.reading import Database, View
from treefold_migrations._baseline.sql_parts import (
    build_now_expression,
    is_now_expression,
    parse_constant,
    parse_schema_sql,
)
from treefold_migrations._inspect.compare import list_own_tables
from treefold_migrations._inspect.found import InspectedTable, InspectError
from treefold_orm import fields
from treefold_orm.schema import ColumnDef, ForeignKeyDef, TableDef, constraint_name

_NO_KEYS = frozenset({"array", "binary", "json"})
_FAMILIES = {"integer": "integer", "bigint": "integer"}


def draft_tables(database: Database) -> list[TableDraft]:
    """Return a draft of each table and view.

    Raises `InspectError` for a table whose name no model can have.
    """
    own = list_own_tables()
    found = {n: f for n, f in database.catalog.tables.items() if n not in own}
    names = (*found, *(view.name for view in database.views))
    refused = [name for name in names if not is_quotable(name)]
    if refused:
        raise InspectError(
            f"The table {refused[0]!r} must have another name, without control characters and of "
            "at most 63 bytes; rename it with ALTER TABLE, and begin again"
        )
    taken: set[str] = set()
    drafts: dict[str, TableDraft] = {}
    for name, table in found.items():
        drafts[name] = _create_draft(name, table, taken, database.alias)
    # all drafts are there before one is filled: a reference may point to a later table
    for name, draft in drafts.items():
        _TableDraftFiller(draft, found[name], drafts, found, database).fill_draft()
    views = [_draft_view(view, database, taken) for view in database.views if view.columns]
    return [*drafts.values(), *(view for view in views if view.fields)]


def _create_draft(
    name: str, found: InspectedTable | None, taken_class_names: set[str], alias: str
) -> TableDraft:
    model = derive_class_name(name, taken_class_names)
    taken_class_names.add(model)
    return TableDraft(name, model, found, database=alias)


class _TableDraftFiller:
    """Fills one draft."""

    def __init__(
        self,
        draft: TableDraft,
        found: InspectedTable,
        drafts: dict[str, TableDraft],
        tables: dict[str, InspectedTable],
        database: Database,
    ) -> None:
        self._draft = draft
        self._found = found
        self._drafts = drafts
        self._tables = tables
        self._database = database
        self._folds = database.engine == "sqlite"
        self._taken: set[str] = set()

    def fill_draft(self) -> None:
        table, draft = self._found.table, self._draft
        held: dict[str, FieldKind] = {}
        for column in table.columns:
            note, kind = self._explain_unsupported(column), None
            if not note:
                kind = find_field_kind(column, table.checks, table.name, self._database)
            if kind is None:
                what = note or "no field reads and writes its values"
                shown = " ".join(map(sanitize_for_comment, (column.name, column.type))).rstrip()
                draft.notes.append(f"the column {shown} ({sanitize_for_comment(what)})")
                continue
            held[column.name] = kind
        if not self._can_map_primary_key(held):
            columns = [(c, held[c.name]) for c in table.columns if c.name in held]
            fill_unmanaged_draft(draft, columns)
            return
        marks = find_unique_and_indexed_columns(self._found, fold_case=self._folds)
        keys = self._find_mappable_foreign_keys()
        for column in table.columns:
            if column.name in held:
                made = self._draft_field(column, held[column.name], keys.get(column.name), marks)
                draft.fields[column.name] = made
                # a reference also has the attribute with its raw key
                self._taken |= {made.name, f"{made.name}_id"}
        if len(table.primary_key) > 1:
            same = self._is_same_name
            places = [next(n for n in held if same(n, key)) for key in table.primary_key]
            draft.primary_key = tuple(draft.fields[name].name for name in places)
        add_constraints_and_indexes(draft, self._found, fold_case=self._folds)

    def _can_map_primary_key(self, kinds_by_column: Mapping[str, FieldKind]) -> bool:
        key = self._found.table.primary_key
        held = kinds_by_column.items()
        kinds = [kind for name, kind in held if any(self._is_same_name(name, k) for k in key)]
        if len(key) == 1 and kinds:
            return accepts_options(kinds[0], primary_key=True)
        ordered = all(kind.make_field().internal not in _NO_KEYS for kind in kinds)
        return bool(key) and len(kinds) == len(key) and ordered

    def _is_same_name(self, one: str, other: str) -> bool:
        return one.lower() == other.lower() if self._folds else one == other

    def _is_in_primary_key(self, column: ColumnDef) -> bool:
        key = self._found.table.primary_key
        return any(self._is_same_name(name, column.name) for name in key)

    def _find_mappable_foreign_keys(self) -> dict[str, ForeignKeyDef]:
        """The foreign keys that a field can be, by column."""
        found: dict[str, ForeignKeyDef] = {}
        for key in self._found.table.foreign_keys:
            there = self._found.table.columns
            columns = [c.name for c in there if self._is_same_name(c.name, key.column)]
            if columns and columns[0] not in found and self._can_be_reference(columns[0], key):
                found[columns[0]] = key
        return found

    def _can_be_reference(self, column: str, key: ForeignKeyDef) -> bool:
        target = self._tables.get(key.target)
        # a ForeignKey holds one value, and finds its row by the primary key
        if target is None or not _has_single_column_primary_key(target.table):
            return False
        own = next(c for c in self._found.table.columns if c.name == column)
        there, (key_name,) = target.table.columns, target.table.primary_key
        theirs = next((c for c in there if self._is_same_name(c.name, key_name)), None)
        # a reference to another unique column stays a plain field, and its constraint in `as_found`
        if theirs is None or not self._is_same_name(theirs.name, key.target_column):
            return False
        if not is_quotable(theirs.name):
            return False
        family = self._find_type_family(own, self._found)
        return family != "" and family == self._find_type_family(theirs, target)

    def _find_type_family(self, column: ColumnDef, found: InspectedTable) -> str:
        if not is_quotable(column.name):
            return ""
        kind = find_field_kind(column, found.table.checks, found.table.name, self._database)
        if kind is None:
            return ""
        internal = kind.make_field().internal
        return _FAMILIES.get(internal, internal)

    def _explain_unsupported(self, column: ColumnDef) -> str:
        """The reason why no field holds a column, for any type."""
        if not is_quotable(column.name):
            return "its name has control characters or more than 63 bytes"
        notes = self._found.notes.get(("column", column.name), ())
        generated = next((note for note in notes if note.startswith("generated as")), "")
        in_key = self._is_in_primary_key(column)
        # an INSERT of the ORM would send a value for it
        if column.identity and not in_key:
            return "the database fills it"
        return generated

    def _draft_field(
        self,
        column: ColumnDef,
        kind: FieldKind,
        key: ForeignKeyDef | None,
        marks: UniqueAndIndexedColumns,
    ) -> FieldDraft:
        table = self._found.table
        in_key = [n for n in table.primary_key if self._is_same_name(n, column.name)]
        alone = bool(in_key) and len(table.primary_key) == 1
        options: dict[str, Any] = {}
        name, plain = derive_field_name(column.name, self._taken), kind
        if key is not None:
            kind = self._build_reference_kind(key, column, marks, is_sole_primary_key=alone)
            name = self._derive_foreign_key_field_name(column.name)
        elif alone and (column.identity or self._is_rowid(column)):
            small = column.type == "integer"
            kind = plain = FieldKind(fields.AutoField if small else fields.BigAutoField)
        if column.null and not in_key:
            options["null"] = True
        if alone and kind.type not in (fields.AutoField, fields.BigAutoField):
            options["primary_key"] = True
        if column.name in marks.unique and not alone and kind.type is not fields.OneToOneField:
            options["unique"] = True
        if key is None and column.name in marks.indexed and "unique" not in options:
            options["db_index"] = True
        if (f"{name}_id" if key is not None else name) != column.name:
            options["db_column"] = column.name
        default = Draft("default", column.name, [{}])
        draft = FieldDraft(name, column, kind, plain, options, default)
        self._propose_defaults(draft)
        return draft

    def _is_rowid(self, column: ColumnDef) -> bool:
        """True for a key that SQLite fills, although its definition says NOT NULL."""
        notes = self._found.notes
        table = notes.get(("table", self._draft.name), ())
        kept = {"STRICT", "WITHOUT ROWID"} & set(table)  # the ORM's own tables are STRICT
        odd = notes.get(("column", column.name), ())
        return self._folds and not kept and not odd and column.type.upper() == "INTEGER"

    def _build_reference_kind(
        self,
        key: ForeignKeyDef,
        column: ColumnDef,
        marks: UniqueAndIndexedColumns,
        *,
        is_sole_primary_key: bool,
    ) -> FieldKind:
        target = next(name for name in self._drafts if name == key.target)
        one = (column.name in marks.unique and not is_sole_primary_key) or is_sole_primary_key
        kind = FieldKind(fields.OneToOneField if one else fields.ForeignKey, (target,))
        action = key.on_delete.replace("NO_ACTION", "RESTRICT")
        in_key = self._is_in_primary_key(column)
        if action == "CASCADE" or (action == "SET_NULL" and column.null and not in_key):
            kind = FieldKind(kind.type, (target, action))
        if not one and column.name not in marks.indexed:
            kind = kind.with_options(db_index=False)
        if one and column.name in marks.indexed:
            kind = kind.with_options(db_index=True)
        if not self._folds and key.name != constraint_name("fk", self._draft.name, column.name):
            kind = kind.with_options(constraint_name=key.name)
        return kind

    def _derive_foreign_key_field_name(self, column: str) -> str:
        plain = derive_field_name(column, ())
        short = plain.removesuffix("_id") or plain
        name = derive_field_name(short, self._taken)
        while f"{name}_id" in self._taken:
            name = derive_field_name(f"{name}_key", self._taken)
        return name

    def _propose_defaults(self, draft: FieldDraft) -> None:
        text = draft.column.default
        if not text:
            return
        proposals: list[dict[str, Any]] = []
        is_key = draft.kind.type in (fields.AutoField, fields.BigAutoField)
        is_reference = draft.kind.type in (fields.ForeignKey, fields.OneToOneField)
        value = None if is_key else parse_constant(text, draft.plain.make_field())
        if value is not None:
            proposals.append({"db_default": value})
        if is_now_expression(text) and not is_reference:
            proposals.append({"db_default": build_now_expression()})
        sql = parse_schema_sql(text, {}, fold_case=self._folds)
        if sql is not None and not is_key:
            proposals.append({"db_default": sql})
        if value is not None and not isinstance(value, (dict, list)):
            proposals.append({"default": value})
        proposals.append({})
        if draft.column.type in (*self._database.enums, *self._database.domains):
            proposals = proposals[:1] if value is not None else [{}]  # the type is not the field's
        kept = [p for p in proposals if accepts_options(draft.kind, **draft.options, **p)]
        draft.default.proposals = kept or [{}]


def _has_single_column_primary_key(table: TableDef) -> bool:
    return len(table.primary_key) == 1


def fill_unmanaged_draft(draft: TableDraft, columns: Sequence[tuple[ColumnDef, FieldKind]]) -> None:
    """Make a model of rows without a key: it reads them, and migrations leave the table alone."""
    draft.managed = False
    names: set[str] = set()
    for column, kind in columns:
        name = derive_field_name(column.name, names)
        names.add(name)
        options: dict[str, Any] = {"null": True} if column.null else {}
        if name != column.name:
            options["db_column"] = column.name
        default = Draft("default", column.name, [{}])
        draft.fields[column.name] = FieldDraft(name, column, kind, kind, options, default)
    chosen = _choose_substitute_key(draft.fields.values())
    if chosen is None:
        return
    # a key cannot allow NULL; the model only reads
    chosen.options.pop("null", None)
    chosen.options["primary_key"] = True
    draft.stand_in = chosen.name


def _choose_substitute_key(drafts: Iterable[FieldDraft]) -> FieldDraft | None:
    able = [d for d in drafts if accepts_options(d.kind, primary_key=True)]
    return next((d for d in able if d.name == "id"), able[0] if able else None)


def _draft_view(view: View, database: Database, taken_class_names: set[str]) -> TableDraft:
    draft = _create_draft(view.name, None, taken_class_names, database.alias)
    draft.kind = view.kind
    held: list[tuple[ColumnDef, FieldKind]] = []
    for column in view.columns:
        readable = is_quotable(column.name)
        kind = find_field_kind(column, (), view.name, database) if readable else None
        if kind is None:
            draft.notes.append(f"the column {sanitize_for_comment(f'{column.name} {column.type}')}")
        else:
            held.append((column, kind))
    fill_unmanaged_draft(draft, held)
    return draft
