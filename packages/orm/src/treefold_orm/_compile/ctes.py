"""CTEs to SQL: WITH clauses, and what a query joins or selects from.

A CTE and its columns have generated names (`w0`, `c0`). One that a statement uses several times is
written once. A recursive one ends by itself: UNION drops what it has seen, and where rows are kept
apart by their depth, either the depth is limited or no way meets a row twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from treefold_orm._compile.clauses import output_columns, set_grouping
from treefold_orm._compile.conditions import condition
from treefold_orm._compile.cte import Join, Recursion, Source
from treefold_orm._compile.frame import Frame, Hops
from treefold_orm._compile.sql import SQL, join, number
from treefold_orm._compile.values import expression
from treefold_orm._expressions.nodes import PREVIOUS, SELECTED, CTENode
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import INTEGER

if TYPE_CHECKING:
    from treefold_orm._compile.state import State

# the way to a row: where it begins, how it goes on, and whether a key is not on it yet
_WAYS: dict[str, tuple[LiteralString, LiteralString, LiteralString]] = {
    "postgres": (
        "ARRAY[({})::text]",
        "{} || ({})::text",
        "({})::text <> ALL({})",
    ),
    "sqlite": (
        "',' || hex({}) || ','",
        "{} || hex({}) || ','",
        "instr({1}, ',' || hex({0}) || ',') = 0",
    ),
}


def attach(
    frame: Frame, state: State, *, shared: tuple[tuple[int, int, int], ...] = (), outer: int = 0
) -> None:
    """Attach the CTEs of a query to its frame; `shared` ones are those of the query at `outer`."""
    if state.source is None and not state.joins:
        return
    same = frame.builder.same
    for here, size, there in shared:
        place = outer + there
        same[frame.offset + here, size] = same.get((place, size), place)

    def give(frame: Frame) -> None:
        if state.source is not None:
            frame.table = _named(frame, state.source, 0)
            frame.ctes[SELECTED] = frame.alias
            for i, (name, field) in enumerate(state.source.columns):
                frame.cte_columns[name] = CTENode(field, SELECTED, i)
        for place, added in enumerate(state.joins):
            _join(frame, added, place)

    frame.attach = give
    give(frame)


def _join(frame: Frame, added: Join, place: int) -> None:
    alias = frame.builder.alias()
    name = _named(frame, added.source, added.base)
    frame.ctes[place] = alias
    tests = [condition(frame, node, right=frame)[0] for node in added.on]
    kind = SQL("LEFT JOIN" if added.optional else "JOIN")
    frame.joins.append(SQL("{} {} AS {} ON {}", kind, name, alias, join(" AND ", tests)))
    for known, node in added.names:
        if isinstance(node, CTENode):
            frame.cte_columns[known] = node


def _named(frame: Frame, source: Source, base: int) -> SQL:
    """The name of a CTE, which is written when it is first asked for."""
    builder = frame.builder
    start = frame.offset + base
    start = builder.same.get((start, source.size), start)
    key = (source, start if source.size else None)
    found = builder.ctes.get(key)
    if found is None:
        write = _plain if source.recursion is None else _recursive
        found = write(frame, source, start)
        builder.ctes[key] = found
    return found


def _start(frame: Frame, source: Source, start: int) -> tuple[Frame, State]:
    from treefold_orm._compile.state import replay

    state = replay(source.key)
    if not state.sliced and not state.distinct_on:
        state.order = ()
    made = Frame(frame.builder, frame.dialect, state.meta, offset=start)
    attach(made, state)
    set_grouping(made, state)
    return made, state


def _plain(frame: Frame, source: Source, start: int) -> SQL:
    from treefold_orm._compile.select import select

    inner, state = _start(frame, source, start)
    body = select(inner, state, output_columns(inner, state))
    return _define(frame, frame.builder.cte_name(), len(source.columns), body)


def _define(frame: Frame, name: SQL, size: int, body: SQL, *, recursive: bool = False) -> SQL:
    columns = join(", ", [SQL("c{}", number(i)) for i in range(size)])
    frame.builder.define(SQL("{} ({}) AS ({})", name, columns, body), recursive=recursive)
    return name


# -- recursion ------------------------------------------------------------------------------------


class _Previous(Frame):
    """The row before as the step of a recursion knows it: its key, and what leads on from it."""

    link_column = 0

    def column(self, hops: Hops, field: Field[object]) -> SQL:
        place = 0 if field is self.meta.pk else self.link_column
        return SQL("{}.c{}", self.alias, number(place))


def _recursive(frame: Frame, source: Source, start: int) -> SQL:
    from treefold_orm._compile.select import select

    recursion = source.recursion
    assert recursion is not None  # noqa: S101 - callers have looked
    name = frame.builder.cte_name()
    inner, state = _start(frame, source, start)
    body = SQL(
        "{} UNION{} {}",
        select(inner, state, _first(inner, recursion)),
        SQL(" ALL" if _keeps_way(recursion) else ""),
        _step(frame, name, source, start),
    )
    size = len(source.columns) + _leads_on(recursion) + _keeps_way(recursion)
    _define(frame, name, size, body, recursive=True)
    if not recursion.depth or recursion.carried:
        return name
    nearest = SQL("SELECT c0, MIN(c1) FROM {} GROUP BY c0", name)
    return _define(frame, frame.builder.cte_name(), 2, nearest)


def _keeps_way(recursion: Recursion) -> bool:
    return bool(recursion.carried) or (recursion.depth and recursion.limit is None)


def _leads_on(recursion: Recursion) -> bool:
    relation = recursion.relation
    return relation.kind != "many" and relation.source_field is not relation.source.pk


def _first(frame: Frame, recursion: Recursion) -> list[SQL]:
    key = frame.own(frame.meta.pk)
    columns = [key]
    if recursion.depth:
        columns.append(frame.dialect.cast(SQL("0"), INTEGER))
    for begin, _ in recursion.carried:
        columns.append(frame.dialect.cast(expression(frame, begin), begin.field))
    if _leads_on(recursion):
        columns.append(frame.own(recursion.relation.source_field))
    if _keeps_way(recursion):
        columns.append(SQL(_WAYS[frame.dialect.name][0], key))
    return columns


def _step(frame: Frame, name: SQL, source: Source, start: int) -> SQL:
    recursion = source.recursion
    assert recursion is not None  # noqa: S101 - callers have looked
    relation, dialect = recursion.relation, frame.dialect
    public = len(source.columns)
    before = _Previous(frame.builder, dialect, relation.source, offset=start)
    before.link_column = public
    inner, tie = before.open_related(relation, ())
    inner.ctes[PREVIOUS] = before.alias
    key = inner.own(inner.meta.pk)
    columns, tests = [key], [tie]
    if recursion.depth:
        depth = SQL("{}.c1", before.alias)
        columns.append(SQL("{} + 1", depth))
        if recursion.limit is not None:
            limit = frame.builder.param(start + recursion.limit, None)
            tests.append(SQL("{} < {}", depth, dialect.cast(limit, INTEGER)))
    columns += [dialect.cast(expression(inner, then), then.field) for _, then in recursion.carried]
    if _leads_on(recursion):
        columns.append(inner.own(relation.source_field))
    if _keeps_way(recursion):
        way = SQL("{}.c{}", before.alias, number(len(columns)))
        columns.append(SQL(_WAYS[dialect.name][1], way, key))
        tests.append(SQL(_WAYS[dialect.name][2], key, way))
    if recursion.where is not None:
        tests.append(condition(inner, recursion.where, right=inner)[0])
    return SQL(
        "SELECT {} FROM {} AS {}, {} WHERE {}",
        join(", ", columns),
        name,
        before.alias,
        inner.source(),
        join(" AND ", tests),
    )
