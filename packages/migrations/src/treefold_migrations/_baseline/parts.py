"""Constraints and indexes of a table, as proposals for its model.

| Catalog | Proposals, of which the caller keeps the first that the database prints alike |
|---|---|
| `UNIQUE (slug)`, called `uq_post_slug` | none: `unique=True` of the field makes it |
| unique index over `slug`, called `by_slug` | `UniqueConstraint(F("slug"), name="by_slug")` |
| index over `slug`, `rank DESC` | `Index("slug", "-rank")`, with its name if that differs |
| `CHECK (rank > 0)` | `CheckConstraint(SchemaSQL("({} > 0)", "rank"), name=...)`, or its bare SQL |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from treefold_migrations._baseline.drafts import LEFT_OUT, Draft, DraftKind, TableDraft
from treefold_migrations._baseline.names import is_quotable
from treefold_migrations._baseline.sql_parts import Columns, find_field_by_token, parse_schema_sql
from treefold_migrations._inspect.found import InspectedTable
from treefold_migrations._inspect.sql_text import Token, canonicalize_sql, tokenize_sql
from treefold_orm import F, ORMError, SearchIndex, schema

_CONFIG = re.compile(r"to_tsvector\('(\w+)'")
_WEIGHT = re.compile(r"'([A-D])'::\"char\"")


@dataclass(frozen=True, slots=True)
class UniqueAndIndexedColumns:
    """Columns whose uniqueness or index is an option of their field."""

    unique: frozenset[str]
    indexed: frozenset[str]


def find_unique_and_indexed_columns(
    found: InspectedTable, *, fold_case: bool
) -> UniqueAndIndexedColumns:
    """Return the columns of a table that are unique or indexed as a field makes them."""
    table = found.table
    unique, indexed = set[str](), set[str]()
    alone = table.primary_key if len(table.primary_key) == 1 else ()
    for column in table.columns:
        if column.name in alone:
            continue
        if any(
            _is_unique_made_by_field(u, table.name, column.name, fold_case=fold_case)
            for u in table.uniques
        ):
            unique.add(column.name)
        elif any(_is_index_made_by_field(found, index, column.name) for index in table.indexes):
            indexed.add(column.name)
    return UniqueAndIndexedColumns(frozenset(unique), frozenset(indexed))


def _is_unique_made_by_field(
    unique: schema.UniqueDef, table: str, column: str, *, fold_case: bool
) -> bool:
    names = {schema.constraint_name("uq", table, column), *([""] if fold_case else [])}
    columns = tuple(c.lower() if fold_case else c for c in unique.columns)
    plain = replace(unique, name="", columns=()) == schema.UniqueDef("")
    return plain and columns == (column.lower() if fold_case else column,) and unique.name in names


def _is_index_made_by_field(found: InspectedTable, index: schema.IndexDef, column: str) -> bool:
    name = schema.constraint_name("ix", found.table.name, column)
    if not is_quotable(column) or found.notes.get(("index", name)):
        return False
    return index == schema.IndexDef(name, (schema.quote(column),))


def add_constraints_and_indexes(
    draft: TableDraft, found: InspectedTable, *, fold_case: bool
) -> None:
    """Add the constraints and indexes to a draft that its fields do not make."""
    _ConstraintAndIndexDrafter(draft, found, folds=fold_case).draft_constraints_and_indexes()


class _ConstraintAndIndexDrafter:
    def __init__(self, draft: TableDraft, found: InspectedTable, *, folds: bool) -> None:
        self._draft = draft
        self._found = found
        self._folds = folds
        self._columns: Columns = {
            (column.lower() if folds else column): (f.name, f.plain.make_field())
            for column, f in draft.fields.items()
        }

    def draft_constraints_and_indexes(self) -> None:
        table = self._found.table
        marks = find_unique_and_indexed_columns(self._found, fold_case=self._folds)
        own = {column.lower() if self._folds else column for column in marks.unique}
        for unique in table.uniques:
            names = [c.lower() if self._folds else c for c in unique.columns]
            if len(names) == 1 and names[0] in own and not unique.is_index:
                own.discard(names[0])  # the field makes the first one
                continue
            self._add_draft("constraint", unique.name, self._propose_unique(unique))
        for number, check in enumerate(table.checks, 1):
            if not self._is_check_made_by_field(check):
                name = check.name or schema.constraint_name("ck", table.name, str(number))
                self._add_draft("constraint", name, self._propose_check(check, name))
        for index in table.indexes:
            if not any(_is_index_made_by_field(self._found, index, name) for name in marks.indexed):
                self._add_draft("index", index.name, self._propose_index(index))
        for exclusion in table.exclusions:
            self._add_draft("constraint", exclusion.name, self._propose_exclusion(exclusion))
        for search in table.searches:
            self._add_draft("index", search.name, self._propose_search_index(search))

    def _add_draft(self, kind: DraftKind, name: str, proposals: Sequence[Any]) -> None:
        notes = self._found.notes.get(("index", name), ())
        if notes:  # another method than a B-tree, of which the ORM has one
            proposals = [p for p in proposals if isinstance(p, SearchIndex)]
        kept = proposals if not name or is_quotable(name) else []
        made = [proposal for proposal in kept if proposal is not None]
        draft = Draft(kind, name, [*made, LEFT_OUT])
        if not self._folds:  # SQLite keeps text as it was written
            draft.first_verbatim = next(
                (n for n, part in enumerate(made) if _uses_only_catalog_sql(part)), -1
            )
        self._draft.parts.append(draft)

    def _is_check_made_by_field(self, check: schema.CheckDef) -> bool:
        table = self._found.table.name
        for column, field in self._draft.fields.items():
            if check.name in ("", schema.constraint_name("ck", table, column)):
                engine = "sqlite" if self._folds else "postgres"
                for text in field.plain.make_field().checks(engine):
                    if _is_same_sql(text.format(schema.quote(column)), check.sql):
                        return True
        return False

    def _find_field_name(self, column: str) -> str:
        found = self._columns.get(column.lower() if self._folds else column)
        if found is None:
            raise KeyError(column)
        return found[0]

    def _propose_unique(self, unique: schema.UniqueDef) -> list[Any]:
        derived = schema.constraint_name("uq", self._found.table.name, *unique.columns)
        named = unique.name and unique.name != derived
        options: dict[str, Any] = {"name": unique.name} if named else {}
        if unique.include:
            options["include"] = self._find_field_names(unique.include)
            if options["include"] is None:
                return []
        if unique.deferrable:
            options["deferrable"] = unique.deferrable
        if not unique.nulls_distinct:
            options["nulls_distinct"] = False
        found: list[Any] = []
        for where in self._propose_where_options(unique.where):
            given = {**options, **where}
            if unique.columns:
                names = self._find_field_names(unique.columns)
                found.append(_try_build(schema.UniqueConstraint, names, given))
                continue
            plain = [self._parse_column_term(term) for term in unique.terms]
            # a unique index is printed alike for columns and for expressions that are columns: both
            # are tried
            if all(p is not None and not p[1] and not p[2] for p in plain):
                names = [p[0] for p in plain if p is not None]
                if where:
                    found.append(_try_build(schema.UniqueConstraint, names, given))
                named, terms = {**given, "name": unique.name}, [F(name) for name in names]
                found.append(_try_build(schema.UniqueConstraint, terms, named))
            named, terms = {**given, "name": unique.name}, self._convert_index_terms(unique.terms)
            found.append(_try_build(schema.UniqueConstraint, terms, named))
        return found

    def _propose_check(self, check: schema.CheckDef, name: str) -> list[Any]:
        return [
            _try_build(schema.CheckConstraint, [given], {"name": name})
            for given in self._propose_conditions(check.sql)
        ]

    def _propose_index(self, index: schema.IndexDef) -> list[Any]:
        options: dict[str, Any] = {}
        if index.name != self._derive_default_index_name(index):
            options["name"] = index.name
        if index.include:
            options["include"] = self._find_field_names(index.include)
            if options["include"] is None:
                return []
        found: list[Any] = []
        for where in self._propose_where_options(index.where):
            given = {**options, **where}
            plain = [self._parse_column_term(term) for term in index.terms]
            if all(p is not None for p in plain):
                named = [("-" if p[2] else "") + p[0] for p in plain if p is not None]
                classes = [p[1] for p in plain if p is not None]
                if not any(classes):
                    found.append(_try_build(schema.Index, named, given))
                elif all(classes):
                    given = {**given, "opclasses": classes}
                    found.append(_try_build(schema.Index, named, given))
            terms, given = self._convert_index_terms(index.terms), {**options, **where}
            found.append(_try_build(schema.Index, terms, {**given, "name": index.name}))
        return [*found, *self._propose_text_search(index)]

    def _derive_default_index_name(self, index: schema.IndexDef) -> str:
        """The name that an index over these columns has without one of its own."""
        words: list[str] = []
        for term in index.terms:
            tokens = tokenize_sql(term)
            if tokens[0].kind in ("word", "quoted"):
                words.append(self._read_identifier(term, tokens[0]))
                words += ["desc"] if tokens[-1].value == "desc" else []
        return schema.constraint_name("ix", self._found.table.name, *words)

    def _propose_text_search(self, index: schema.IndexDef) -> list[Any]:
        """The index of a full text search, as PostgreSQL prints it."""
        text = " ".join(index.terms)
        config = _CONFIG.search(text)
        if config is None:
            return []
        found = (find_field_by_token(t, self._columns, fold_case=False) for t in tokenize_sql(text))
        names = list(dict.fromkeys(column[0] for column in found if column is not None))
        options = {"name": index.name, "config": config[1]}
        options |= {"weights": "".join(_WEIGHT.findall(text))} if _WEIGHT.search(text) else {}
        return [_try_build(SearchIndex, [names], options)] if names else []

    def _propose_exclusion(self, exclusion: schema.ExclusionDef) -> list[Any]:
        pairs: list[tuple[Any, str]] = []
        for text in exclusion.terms:
            term, _, operator = text.rpartition(" WITH ")
            plain = self._parse_column_term(term)
            is_column = plain is not None and not plain[1] and not plain[2]
            made = plain[0] if plain and is_column else self._convert_expression_term(term)
            if made is None:
                return []
            pairs.append((made, operator))
        options: dict[str, Any] = {"name": exclusion.name}
        if exclusion.deferrable:
            options["deferrable"] = exclusion.deferrable
        wheres = self._propose_where_options(exclusion.where)
        given = [{**options, **where} for where in wheres]
        return [_try_build(schema.ExclusionConstraint, [pairs], each) for each in given]

    def _propose_search_index(self, search: schema.SearchDef) -> list[Any]:
        names = self._find_field_names(search.columns)
        options = {"name": search.name, "config": search.config}
        return [_try_build(SearchIndex, None if names is None else [names], options)]

    def _find_field_names(self, columns: Sequence[str]) -> list[str] | None:
        try:
            return [self._find_field_name(column) for column in columns]
        except KeyError:
            return None

    def _propose_where_options(self, sql: str) -> list[dict[str, Any]]:
        return [{"condition": given} for given in self._propose_conditions(sql)] if sql else [{}]

    def _propose_conditions(self, sql: str) -> list[Any]:
        found = [
            parse_schema_sql(sql, self._columns, fold_case=self._folds),
            parse_schema_sql(sql, self._columns, fold_case=self._folds, keep_column_names=True),
        ]
        return [given for given in found if given is not None]

    def _parse_column_term(self, term: str) -> tuple[str, str, bool] | None:
        """The field, operator class and direction of a term over a column."""
        tokens, descending, opclass = tokenize_sql(term), False, ""
        if len(tokens) > 1 and tokens[-1].value in ("desc", "asc"):
            descending = tokens.pop().value == "desc"
        if len(tokens) == 2 and tokens[1].kind == "word" and not self._folds:
            opclass = tokens.pop().value
        if len(tokens) != 1 or tokens[0].kind not in ("word", "quoted"):
            return None
        names = self._find_field_names([self._read_identifier(term, tokens[0])])
        return None if names is None else (names[0], opclass, descending)

    def _read_identifier(self, sql: str, token: Token) -> str:
        return token.value if token.kind == "quoted" else sql[token.start : token.end]

    def _convert_index_terms(self, terms: Sequence[str]) -> list[Any] | None:
        found: list[Any] = []
        for term in terms:
            plain = self._parse_column_term(term)
            named = plain is not None and not plain[1]
            if plain and named:
                found.append(("-" if plain[2] else "") + plain[0])
            elif (made := self._convert_expression_term(term)) is not None:
                found.append(made)
            else:
                return None
        return found

    def _convert_expression_term(self, term: str) -> Any:
        tokens, nulls, descending = tokenize_sql(term), "", False
        if [t.value for t in tokens[-2:-1]] == ["nulls"]:
            nulls = tokens[-1].value
            tokens = tokens[:-2]
        if len(tokens) > 1 and tokens[-1].value in ("desc", "asc"):
            descending = tokens.pop().value == "desc"
        text = term[tokens[0].start : tokens[-1].end]
        if text.startswith("(") and text.endswith(")"):
            text = text[1:-1] if _is_enclosed_in_parentheses(text) else text
        made = parse_schema_sql(text, self._columns, fold_case=self._folds)
        if made is None or not (descending or nulls):
            return made
        options = {"nulls": nulls} if nulls else {}
        return made.desc(**options) if descending else made.asc(**options)


def _uses_only_catalog_sql(part: Any) -> bool:
    """True where all that a part says in SQL is the catalog's."""
    terms = (*getattr(part, "expressions", ()), *getattr(part, "fields", ()))
    other = isinstance(part, SearchIndex | schema.ExclusionConstraint)
    return not other and not any(isinstance(term, F) for term in terms)


def _is_enclosed_in_parentheses(text: str) -> bool:
    depth = 0
    # (a) + (b) begins and ends with a parenthesis, and is not within one pair
    for token in tokenize_sql(text)[:-1]:
        if token.kind == "sign":
            depth += (token.value == "(") - (token.value == ")")
        if not depth:
            return False
    return True


def _is_same_sql(one: str, other: str) -> bool:
    return canonicalize_sql(one) == canonicalize_sql(other)


def _try_build(kind: Any, terms: list[Any] | None, options: dict[str, Any]) -> Any:
    if terms is None:
        return None
    try:
        return kind(*terms, **options)
    except ORMError:
        return None
