"""Full text search to SQL: tsvector and tsquery on PostgreSQL, FTS5 on SQLite.

The vector of PostgreSQL is written as in the index, so that the index serves; its configuration is
a checked name of the declaration. On SQLite the table of the index is queried for row numbers,
with a text that `_search/search_text.py` writes.

Example, the table of the index on SQLite, the expression of the index on PostgreSQL:

    >>> Article.objects.filter(title__search="red fox").values("id")
    SQLite: SELECT t0."id" FROM "article" AS t0 WHERE t0."id" IN (SELECT rowid FROM
    "fts_article_title" WHERE "fts_article_title" MATCH ?)
    PostgreSQL: SELECT t0."id" FROM "article" AS t0 WHERE to_tsvector('simple'::regconfig,
    COALESCE((t0."title")::text, '')) @@ plainto_tsquery('simple'::regconfig, ($1)::text)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import LiteralString

from treefold_orm._compile.frame import Frame, Hops, NeedsJoin
from treefold_orm._dialects.sql import (
    SQL,
    join_sql,
    quote_column,
    quote_identifier,
    quote_table,
    render_integer,
    require_plain_word,
)
from treefold_orm._expressions.nodes import RankNode, SearchNode
from treefold_orm._fields.meta import Meta, find_owner_meta
from treefold_orm._search.search_index import build_search_index_name, list_indexed_fields
from treefold_orm._search.search_text import make_fts5_encoder, make_fts5_exclusion_encoder

_QUERIES: dict[str, LiteralString] = {
    # to_tsquery() is missing on purpose: it raises a syntax error for texts such as `fox &`
    "plain": "plainto_tsquery('{}'::regconfig, ({})::text)",
    "phrase": "phraseto_tsquery('{}'::regconfig, ({})::text)",
    "websearch": "websearch_to_tsquery('{}'::regconfig, ({})::text)",
}
# ten times what PostgreSQL counts for them (1.0, 0.4, 0.2, 0.1): bm25() takes any numbers, and only
# their ratio decides
_WEIGHTS = {"A": 10, "B": 4, "C": 2, "D": 1}


def build_match(frame: Frame, node: SearchNode, hops: Hops) -> SQL:
    """Test the text of the row at `hops` for the words of a search."""
    meta = find_owner_meta(node.columns[0])
    key = frame.build_column(hops, meta.pk)
    if frame.dialect.name == "sqlite":
        table = quote_identifier(build_search_index_name(node.index, meta))
        found = SQL(
            "SELECT rowid FROM {} WHERE {} MATCH {}", table, table, _bind_fts5_query(frame, node)
        )
        if node.kind == "websearch":
            found = SQL("{} UNION ALL {}", found, _build_excluding_search(frame, node, meta))
        return SQL("{} IN ({})", key, found)
    text = _build_tsvector_match(frame, node, hops)
    # a row that is missing has no text, not an empty one
    return SQL("({} IS NOT NULL AND {})", key, text) if frame.is_optional(hops) else text


def _build_excluding_search(frame: Frame, node: SearchNode, meta: Meta) -> SQL:
    """The rows that a websearch such as `-fish` finds: FTS5 has no query for the rows without."""
    table = quote_identifier(build_search_index_name(node.index, meta))
    encode = make_fts5_exclusion_encoder(_list_restricting_columns(node))
    mark = frame.builder.bind_param(node.text.index + frame.offset, encode)
    # of a text without such a branch, the mark is NULL: no row is read
    parts = quote_column(meta.pk), quote_table(meta), mark, quote_column(meta.pk)
    return SQL(
        "SELECT {} FROM {} WHERE {} IS NOT NULL AND {} NOT IN (SELECT rowid FROM {} WHERE {} "
        "MATCH {})",
        *parts,
        table,
        table,
        mark,
    )


def _build_tsvector_match(frame: Frame, node: SearchNode, hops: Hops) -> SQL:
    query = _build_tsquery(frame, node)
    part = SQL("{} @@ {}", _build_search_vector(frame, node, hops, searched_only=True), query)
    # `-word` of a websearch may stand in the rest of the whole, which would hide the row then
    if len(node.columns) == len(node.index.fields) or node.kind == "websearch":
        return part
    # what a part has, the whole has too: the index finds the rows, and the part decides
    vector = _build_search_vector(frame, node, hops, searched_only=False)
    return SQL("({} @@ {} AND {})", vector, query, part)


def build_rank(frame: Frame, node: RankNode) -> SQL:
    """How well the frame's own row fits."""
    search = node.search
    if frame.dialect.name != "sqlite":
        vector = _build_search_vector(frame, search, (), searched_only=True)
        query = _build_tsquery(frame, search)
        # alone, ts_rank() gives a little to rows that do not match
        template: LiteralString = "CASE WHEN {0} @@ {1} THEN ts_rank({0}, {1}) ELSE 0 END"
        return SQL("(" + template + ")::double precision", vector, query)
    alias = frame.ranks.get(search)
    if alias is None:
        alias = frame.ranks[search] = _join_ranked_rows(frame, search)
    return SQL("COALESCE({}.c1, 0.0)", alias)


def build_tsvector(columns: Sequence[SQL], config: str, weights: str) -> SQL:
    """The tsvector of some columns, one after the other."""
    parts: list[SQL] = []
    for i, column in enumerate(columns):
        part = SQL(
            # NULL in one column would make the vector of all columns NULL
            "to_tsvector('{}'::regconfig, COALESCE(({})::text, ''))",
            require_plain_word(config),
            column,
        )
        if weights:
            part = SQL("setweight({}, '{}')", part, require_plain_word(weights[i]))
        parts.append(part)
    return join_sql(" || ", parts) if len(parts) == 1 else SQL("({})", join_sql(" || ", parts))


def _build_search_vector(frame: Frame, node: SearchNode, hops: Hops, *, searched_only: bool) -> SQL:
    fields = list_indexed_fields(node.index, find_owner_meta(node.columns[0]))
    wanted = [i for i, field in enumerate(fields) if not searched_only or field in node.columns]
    columns = [frame.build_column(hops, fields[i]) for i in wanted]
    weights = "".join(node.index.weights[i] for i in wanted) if node.index.weights else ""
    return build_tsvector(columns, node.index.config, weights)


def _build_tsquery(frame: Frame, node: SearchNode) -> SQL:
    mark = frame.builder.bind_param(node.text.index + frame.offset, None)
    return SQL(_QUERIES[node.kind], require_plain_word(node.index.config), mark)


def _bind_fts5_query(frame: Frame, node: SearchNode) -> SQL:
    encode = make_fts5_encoder(node.kind, _list_restricting_columns(node))
    return frame.builder.bind_param(node.text.index + frame.offset, encode)


def _list_restricting_columns(node: SearchNode) -> list[str]:
    whole = len(node.columns) == len(node.index.fields)
    return [] if whole else [field.column_name for field in node.columns]


def _join_ranked_rows(frame: Frame, node: SearchNode) -> SQL:
    # bm25() works beside MATCH only, and counts the whole table at each start: it is asked once
    if not frame.joinable:
        raise NeedsJoin
    builder, meta = frame.builder, frame.meta
    table = quote_identifier(build_search_index_name(node.index, meta))
    name, alias = builder.generate_cte_name(), builder.generate_table_alias()
    counts = [SQL(", {}.0", render_integer(_WEIGHTS[letter])) for letter in node.index.weights]
    # bm25() is the smaller the better a row fits, ts_rank() the greater
    best = SQL("-bm25({}{})", table, join_sql("", counts))
    query = _bind_fts5_query(frame, node)
    body = SQL("SELECT rowid, {} FROM {} WHERE {} MATCH {}", best, table, table, query)
    builder.add_cte_text(SQL("{} (c0, c1) AS MATERIALIZED ({})", name, body))
    own = frame.build_own_column(meta.pk)
    frame.joins.append(SQL("LEFT JOIN {} AS {} ON {}.c0 = {}", name, alias, alias, own))
    return alias
