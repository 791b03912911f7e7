"""Conditions to SQL.

Conditions on to-many relations become EXISTS, one for each relation and `filter()` call, so that
no row is ever repeated. Negation selects exactly the rows its inside does not: unknown counts as
not selected.

Example, `_build_exists_condition` receives both comparisons of a `filter()`; a negation encloses
the whole row, so that unknown is not selected:

    >>> Writer.objects.filter(articles__title="x", articles__views__gt=5).values("name")
    SELECT t0."name" FROM "writer" AS t0 WHERE (EXISTS (SELECT 1 FROM "article" AS t1 WHERE
    t1."writer_id" = t0."id" AND t1."title" = ? AND t1."views" > ?))

A condition has two frames. Its lookups are columns of `frame`, and its right sides are written in
`right_frame`: where `F` and `OuterRef` start, and whose parameters it takes. Both are the frame of
the query, until a lookup enters an EXISTS: there `frame` becomes that of `article AS t1`, while
`F("name")` is still the name of `writer AS t0`:

    >>> Writer.objects.filter(articles__title=F("name")).values("name")
    SELECT t0."name" FROM "writer" AS t0 WHERE EXISTS (SELECT 1 FROM "article" AS t1 WHERE
    t1."writer_id" = t0."id" AND t1."title" = t0."name")

A rule returns a `ConditionSQL`: the SQL, and whether it can be NULL. `_build_negation` needs that.
`t1."name" = ?` is NULL for a writer without a boss, and `NOT NULL` would lose that writer; EXISTS
is never NULL:

    >>> Writer.objects.exclude(boss__name="x").values("name")
    SELECT t0."name" FROM "writer" AS t0 LEFT JOIN "writer" AS t1 ON t1."id" = t0."boss_id" WHERE
    (t1."name" = ?) IS NOT TRUE

    >>> Writer.objects.exclude(articles__title="x").values("name")
    SELECT t0."name" FROM "writer" AS t0 WHERE NOT (EXISTS (SELECT 1 FROM "article" AS t1 WHERE
    t1."writer_id" = t0."id" AND t1."title" = ?))
"""

from __future__ import annotations

from typing import Any, LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._compile import placing
from treefold_orm._compile.frame import Frame, Hops
from treefold_orm._compile.rules import (
    CONDITIONS,
    ConditionSQL,
    build_condition,
    build_expression,
    join_conditions,
)
from treefold_orm._compile.search import build_match
from treefold_orm._compile.select import build_subquery
from treefold_orm._compile.values import build_param
from treefold_orm._dialects.dialect import OPERATORS, build_plain_comparison
from treefold_orm._dialects.sql import SQL, Encoder, join_sql, wrap_declared_sql
from treefold_orm._expressions import nodes
from treefold_orm._expressions.lookups import TEXTUAL, Lookup
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import find_owner_meta
from treefold_orm._fields.structured import ArrayField
from treefold_orm._search.search_index import require_search_index

_NULL_TESTS = frozenset(("null", "notnull"))


def build_comparison(
    frame: Frame, node: nodes.Compare, hops: Hops, *, right_frame: Frame, joined_hops: int = 0
) -> ConditionSQL:
    """Return the SQL of one lookup: a column at the end of `hops`, compared with the right side.

    `hops` is what is left of the lookup's way from the model of `frame`: () inside the EXISTS of
    `articles__title`. The first `joined_hops` of them are taken by joins whatever they lead to; a
    relation to many after them becomes an EXISTS. The right side is written in `right_frame`.
    """
    split = placing.find_first_to_many(hops, joined_hops)
    if split is not None:
        return _build_exists_condition(
            frame, hops[: split + 1], [(node, hops[split + 1 :])], right_frame
        )
    lookup: Lookup = node.lookup
    if lookup.op in _NULL_TESTS:
        return _build_null_lookup(frame, lookup, hops)
    if lookup.search is not None:
        return _build_search_lookup(frame, lookup, hops, node.right)
    if lookup.op.startswith("json:"):
        return _build_json_lookup(frame, lookup, hops, node.right, right_frame)
    return _build_value_lookup(frame, node, hops, right_frame)


def _build_null_lookup(frame: Frame, lookup: Lookup, hops: Hops) -> ConditionSQL:
    """`boss=None`, `born__isnull=False`; of the key of a one-to-one's way back, it asks if there
    is a row at all.
    """
    column = _build_transformed_column(frame, lookup, hops)
    return ConditionSQL(_build_null_test(lookup.op, column), nullable=False)


def _build_null_test(op: str, value: SQL) -> SQL:
    return SQL("{} IS NULL" if op == "null" else "{} IS NOT NULL", value)


def _build_transformed_column(frame: Frame, lookup: Lookup, hops: Hops) -> SQL:
    """The left side of a lookup: of `born__year`, the year of the column."""
    column, field = frame.build_column(hops, lookup.column), lookup.column
    for transform in lookup.transforms:
        column = frame.dialect.extract(transform, column, field)
        field = lookup.field
    return column


def _build_search_lookup(
    frame: Frame, lookup: Lookup, hops: Hops, right: nodes.Expr | None
) -> ConditionSQL:
    """`title__search="ants"`: through the search index of the model."""
    if not isinstance(right, nodes.ParamNode) or lookup.search is None:
        raise FieldError(f"{lookup.name}__search takes text or a SearchQuery, not an expression")
    index = require_search_index(find_owner_meta(lookup.column), [lookup.column])
    node = nodes.SearchNode((), index, (lookup.column,), lookup.search, right)
    return ConditionSQL(build_match(frame, node, hops), nullable=any(hop.nullable for hop in hops))


def _build_value_lookup(
    frame: Frame, node: nodes.Compare, hops: Hops, right_frame: Frame
) -> ConditionSQL:
    """`title="x"`, `views__gt=F("writer_id")`: every comparison of a column with a value."""
    lookup: Lookup = node.lookup
    column = _build_transformed_column(frame, lookup, hops)
    if node.field is not None:
        column = frame.dialect.build_conversion(column, lookup.field, node.field, "operand")
    nullable = (
        lookup.column.null
        or any(hop.nullable for hop in hops)
        # an expression may be NULL, a parameter of a comparison is never None
        or not isinstance(node.right, nodes.ParamNode)
        or lookup.custom is not None
    )
    return ConditionSQL(_compare_lookup(right_frame, lookup, column, node.right), nullable=nullable)


def _compare_lookup(frame: Frame, lookup: Lookup, left: SQL, right: nodes.Expr | None) -> SQL:
    """Compare `left`, which is finished, with the right side, which is written in `frame`."""
    op, dialect, field = lookup.op, frame.dialect, lookup.field
    if right is None:
        raise FieldError(f"{lookup.name}__{op} needs a value")
    if lookup.custom is not None:
        value = _build_operand(frame, right, cast=True)
        declared = lookup.custom.template.require_dialect_sql(dialect.name)
        return SQL("({})", wrap_declared_sql(declared).fill_template([left, value]))
    if op == "in":
        return _build_membership(frame, left, right, lookup)
    if op == "range" and isinstance(right, nodes.ParamNode):
        return _build_range(frame, left, right)
    if isinstance(field, ArrayField) and op in {"contains", "contained_by", "overlap"}:
        return dialect.build_array_comparison(op, left, _build_operand(frame, right, cast=True))
    if op in TEXTUAL:
        _require_regex_enabled(frame, op)
        return dialect.text(op, left, _build_operand(frame, right, cast=False))
    if lookup.json and op == "exact" and _is_json(right):
        return dialect.build_json_equality(left, _build_operand(frame, right, cast=True))
    # the column states the type of its own value, but not the type of another
    cast = bool(lookup.transforms) or right.field is not field
    return build_plain_comparison(op, left, _build_operand(frame, right, cast=cast))


def _is_json(node: nodes.Expr) -> bool:
    return node.field is not None and node.field.internal == "json"


def _build_operand(frame: Frame, node: nodes.Expr | None, *, cast: bool) -> SQL:
    """The right side; with `cast`, a parameter states its type, which PostgreSQL cannot guess."""
    if isinstance(node, nodes.ParamNode):
        return build_param(frame, node, cast=cast)
    if node is None:
        raise FieldError("The comparison needs a value")
    return build_expression(frame, node)


def _build_membership(frame: Frame, left: SQL, right: nodes.Expr, lookup: Lookup) -> SQL:
    """`views__in=[1, 2]` or `views__in=Article.objects.values("views")`."""
    if isinstance(lookup.field, KeyColumns):
        return _build_key_membership(frame, left, right, lookup.field)
    query, converts = right, list[nodes.ConvertNode]()
    # a conversion takes a value and not a query: it moves inside, over the column of the query
    while isinstance(query, nodes.ConvertNode):
        converts.append(query)
        query = query.arg
    if isinstance(query, nodes.SubqueryNode):
        return SQL("{} IN {}", left, build_subquery(frame, query, converts=converts))
    if not isinstance(right, nodes.ParamNode):
        raise FieldError(f"{lookup.name}__in takes a list or a query")
    # the list is one parameter: lists of all lengths share a plan, and no limit is met
    mark = frame.builder.bind_param(
        right.index + frame.offset, frame.dialect.list_encoder(lookup.field)
    )
    return frame.dialect.build_in_list(left, mark, lookup.field)


def _build_key_membership(frame: Frame, left: SQL, right: nodes.Expr, key: KeyColumns) -> SQL:
    """The same of a key of several columns, which is compared as a row: `(a, b) IN (...)`."""
    if isinstance(right, nodes.SubqueryNode):
        return SQL("{} IN {}", left, build_subquery(frame, right, width=len(key.parts)))
    if not isinstance(right, nodes.ParamNode):
        raise FieldError("A key is compared with a list of tuples or a query")
    place = right.index + frame.offset
    bind = frame.builder.bind_param
    rows = frame.dialect.build_key_rows_query(key.parts, lambda encode: bind(place, encode))
    return SQL("{} IN ({})", left, rows)


def _build_range(frame: Frame, left: SQL, right: nodes.ParamNode) -> SQL:
    encode = right.field.encoder(frame.dialect.name) if right.field is not None else None
    place, mark = right.index + frame.offset, frame.builder.bind_param
    # a pair is one parameter of the query, which travels as two: one encoder for each bound
    low = mark(place, lambda pair: encode(pair[0]) if encode else pair[0])
    high = mark(place, lambda pair: encode(pair[1]) if encode else pair[1])
    return SQL("{} BETWEEN {} AND {}", left, low, high)


def _build_expression_test(frame: Frame, node: nodes.ExpressionCompare) -> SQL:
    """A comparison whose left side is no column: `n__gt=3` of an annotation `n`."""
    left = build_expression(frame, node.left)
    if node.op in _NULL_TESTS:
        return _build_null_test(node.op, left)
    right = node.right
    if right is None:
        raise FieldError("The comparison needs a value")
    if _is_json(node.left) and node.op == "exact":
        return frame.dialect.build_json_equality(left, _build_operand(frame, right, cast=True))
    if node.op in OPERATORS:
        return build_plain_comparison(node.op, left, _build_operand(frame, right, cast=True))
    if node.op in {"in", "range"} and node.left.field is not None:
        lookup = Lookup("annotation", (), node.left.field, node.op, node.left.field)
        if node.op == "in" or not isinstance(right, nodes.ParamNode):
            return _build_membership(frame, left, right, lookup)
        return _build_range(frame, left, right)
    _require_regex_enabled(frame, node.op)
    return frame.dialect.text(node.op, left, _build_operand(frame, right, cast=False))


def _build_row_comparison(frame: Frame, node: nodes.RowCompare) -> SQL:
    """`(views, id) > (?, ?)`, which one index serves; an OR would read it from its start."""
    left = join_sql(", ", [build_expression(frame, each) for each in node.left])
    right = join_sql(", ", [_build_operand(frame, each, cast=True) for each in node.right])
    return build_plain_comparison(node.op, SQL("({})", left), SQL("({})", right))


def _build_json_lookup(
    frame: Frame, lookup: Lookup, hops: Hops, right: nodes.Expr | None, right_frame: Frame
) -> ConditionSQL:
    """`data__size__gt=3`, `data__has_key="size"`; NULL where the path leads to nothing."""
    column = frame.build_column(hops, lookup.column)
    name = lookup.op.removeprefix("json:")
    marks: list[SQL] = []
    if isinstance(right, nodes.ParamNode):
        encode = frame.dialect.json.select_json_test_encoder(name)
        place = right.index + right_frame.offset
        mark = right_frame.builder.bind_param
        marks = [mark(place, encode)]
        if name.endswith(":range"):
            # `i=i` keeps the number of this turn: called later, both would read the last one
            marks = [
                mark(place, lambda pair, i=i: _encode_range_bounds(encode, pair)[i]) for i in (0, 1)
            ]
    keys, bind = lookup.keys or (), frame.builder.bind_const
    text = frame.dialect.text
    build = frame.dialect.json.build_json_path_condition
    made = build(name, column, keys, bind=bind, right=marks, build_text_lookup=text)
    return ConditionSQL(made, nullable=True)


def _encode_range_bounds(encode: Encoder | None, pair: list[Any]) -> list[Any]:
    return pair if encode is None else encode(pair)


def _build_conjunction(
    frame: Frame, children: list[nodes.Node], right_frame: Frame
) -> ConditionSQL:
    """The conditions of one `filter()`: those over one relation to many share an EXISTS, so that
    one related row has to meet them all.
    """
    parts: list[ConditionSQL] = []
    found: dict[placing.RelatedRowsKey, list[tuple[nodes.Compare, Hops]]] = {}
    children = _flatten_conjunction(children)
    shared = placing.identify_rows_shared_with_or(frame, children)
    if shared is not None:
        inside, children = placing.split_conditions_by_related_rows(frame, children, shared)
        parts.append(_build_shared_row_condition(frame, inside, shared, right_frame))
    for child in children:
        key = placing.identify_related_rows(frame, child)
        if key is None or not isinstance(child, (nodes.Compare, placing.ComparisonInFrame)):
            parts.append(build_condition(frame, child, right_frame=right_frame))
        else:
            compared, hops = placing.unwrap_lookup(child)
            found.setdefault(key, []).append((compared, hops[len(key.hops) :]))
    for (owner, prefix), tests in found.items():
        parts.append(_build_exists_condition(owner, prefix, tests, right_frame))
    return _join_parts(" AND ", parts)


def _join_parts(word: LiteralString, parts: list[ConditionSQL]) -> ConditionSQL:
    if not parts:
        return ConditionSQL(SQL("1 = 1"), nullable=False)
    return ConditionSQL(
        SQL("({})", join_conditions(word, [part.sql for part in parts])),
        nullable=any(part.nullable for part in parts),
    )


def _build_shared_row_condition(
    frame: Frame, children: list[nodes.Node], key: placing.RelatedRowsKey, right_frame: Frame
) -> ConditionSQL:
    """One EXISTS around conditions of which some are in an OR.

    `Q(articles__title="x") | Q(articles__title="y"), articles__views__gt=5` asks for one article
    that meets all of it, and an EXISTS for each of the three could find three.
    """
    owner, prefix = key
    inner, correlation = owner.build_correlated_frame(prefix[-1], prefix[:-1])
    rebound = [placing.rebind_condition(frame, child, key, inner) for child in children]
    body = _build_conjunction(frame, rebound, right_frame).sql
    found = SQL("EXISTS (SELECT 1 FROM {} WHERE {} AND {})", inner.build_from(), correlation, body)
    without = placing.evaluate_without_related_row(frame, nodes.And(tuple(children)), key)
    if without is False:
        return ConditionSQL(found, nullable=False)
    # a row without related ones may meet the condition as well, as in `Q(articles=None) | ...`
    inner, correlation = owner.build_correlated_frame(prefix[-1], prefix[:-1])
    none = SQL("NOT EXISTS (SELECT 1 FROM {} WHERE {})", inner.build_from(), correlation)
    if not isinstance(without, bool):
        rest = build_condition(frame, without, right_frame=right_frame)
        none = SQL("({} AND {})", none, rest.sql)
    return ConditionSQL(SQL("({} OR {})", found, none), nullable=True)


def _flatten_conjunction(children: list[nodes.Node]) -> list[nodes.Node]:
    """An And inside an And is no group of its own: `filter(Q(a) & Q(b), c)` is three conditions."""
    found: list[nodes.Node] = []
    for child in children:
        found.extend(
            _flatten_conjunction(list(child.children)) if isinstance(child, nodes.And) else [child]
        )
    return found


def _build_exists_condition(
    frame: Frame,
    prefix: Hops,
    related_comparisons: list[tuple[nodes.Compare, Hops]],
    right_frame: Frame,
) -> ConditionSQL:
    """The EXISTS over the relation at the end of `prefix`, for all comparisons of its row.

    Each comes with the rest of its way from that row, on which the next relation to many is an
    EXISTS inside. `articles=None` asks for no row at all, and is a NOT EXISTS.
    """
    relation = prefix[-1]
    missing = [
        c for c, rest in related_comparisons if placing.matches_missing_row(c, rest, relation)
    ]
    if 0 < len(missing) < len(related_comparisons):  # a row that is not there meets nothing
        return ConditionSQL(SQL("1 = 0"), nullable=False)
    inner, correlation = frame.build_correlated_frame(relation, prefix[:-1])
    tests = [correlation]
    deeper: dict[Hops, list[tuple[nodes.Compare, Hops]]] = {}
    for child, rest in related_comparisons:
        if child in missing:
            continue
        split = placing.find_first_to_many(rest)
        if split is not None:
            deeper.setdefault(rest[: split + 1], []).append((child, rest[split + 1 :]))
        else:
            # EXISTS takes unknown for no match: what may be NULL inside is decided here
            tests.append(build_comparison(inner, child, rest, right_frame=right_frame).sql)
    for nested, below in deeper.items():
        tests.append(_build_exists_condition(inner, nested, below, right_frame).sql)
    text = SQL("EXISTS (SELECT 1 FROM {} WHERE {})", inner.build_from(), join_sql(" AND ", tests))
    return ConditionSQL(SQL("NOT {}", text) if missing else text, nullable=False)


def _build_related_exists(frame: Frame, node: nodes.RelatedNode) -> ConditionSQL:
    """`any_of()`, `all_of()`, `none_of()`: a row at the end of relations that meets `where`.

    `where` is resolved against that row, so that both of its frames are that of the row.
    """
    relation, rest = node.hops[0], node.hops[1:]
    inner, correlation = frame.build_correlated_frame(relation, ())
    tests = [correlation]
    if rest:
        tests.append(_build_related_exists(inner, nodes.RelatedNode(rest, node.where)).sql)
    elif node.where is not None:
        tests.append(build_condition(inner, node.where, right_frame=inner).sql)
    text = SQL("EXISTS (SELECT 1 FROM {} WHERE {})", inner.build_from(), join_sql(" AND ", tests))
    return ConditionSQL(text, nullable=False)


def _require_regex_enabled(frame: Frame, op: str) -> None:
    # a hostile pattern can backtrack for hours: SQLite runs it in Python's `re`, without a limit
    if op in {"regex", "iregex"} and not getattr(frame.dialect, "regex", False):
        raise FieldError(
            f"{op!r} is off: call configure(..., regex=True) if patterns never come from requests"
        )


# -- rules ----------------------------------------------------------------------------------------


def _build_and_or_condition(
    frame: Frame, node: nodes.UnsharedAnd | nodes.Or, right_frame: Frame
) -> ConditionSQL:
    parts = [build_condition(frame, child, right_frame=right_frame) for child in node.children]
    return _join_parts(" OR " if isinstance(node, nodes.Or) else " AND ", parts)


def _build_negation(frame: Frame, node: nodes.Not, right_frame: Frame) -> ConditionSQL:
    inside = build_condition(frame, node.child, right_frame=right_frame)
    # NOT of unknown is unknown: `exclude(title="x")` would lose the rows whose title is NULL
    text = SQL("({}) IS NOT TRUE" if inside.nullable else "NOT ({})", inside.sql)
    return ConditionSQL(text, nullable=False)


def _build_comparison_in_frame(
    _: Frame, node: placing.ComparisonInFrame, right_frame: Frame
) -> ConditionSQL:
    return build_comparison(
        node.frame, node.compare, node.hops, right_frame=right_frame, joined_hops=node.joined
    )


CONDITIONS.update(
    {
        nodes.And: lambda frame, node, right: _build_conjunction(frame, list(node.children), right),
        nodes.UnsharedAnd: _build_and_or_condition,
        nodes.Or: _build_and_or_condition,
        nodes.Not: _build_negation,
        nodes.Compare: lambda frame, node, right: build_comparison(
            frame, node, node.lookup.hops, right_frame=right
        ),
        placing.ComparisonInFrame: _build_comparison_in_frame,
        nodes.ExpressionCompare: lambda _, node, right: ConditionSQL(
            _build_expression_test(right, node), nullable=True
        ),
        nodes.RowCompare: lambda _, node, right: ConditionSQL(
            _build_row_comparison(right, node), nullable=True
        ),
        nodes.ExistsNode: lambda _, node, right: ConditionSQL(
            SQL("EXISTS {}", build_subquery(right, node.query, exists=True)), nullable=False
        ),
        nodes.RelatedNode: lambda frame, node, _: _build_related_exists(frame, node),
        nodes.SearchNode: lambda frame, node, _: ConditionSQL(
            build_match(frame, node, ()), nullable=False
        ),
        nodes.SchemaSQLNode: lambda frame, node, _: ConditionSQL(
            build_expression(frame, node), nullable=True
        ),
    }
)
