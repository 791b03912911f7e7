"""Plan: one compiled statement, and how a query's values and a driver's rows pass through it.

Plans are cached by dialect and shape, never by value, in a dictionary of bounded size.

Example, of the values `("x", 10, 20)` that the query holds: on SQLite the plan passes them as
they are, `bind` is None; a list becomes one value, which an encoder makes:

    >>> Article.objects.filter(title="x").values("id")[20:30]
    SELECT t0."id" FROM "article" AS t0 WHERE t0."title" = ? LIMIT ? OFFSET ?

    >>> Article.objects.filter(title="x", views__in=[1, 2]).values("id")
    SQLite: SELECT t0."id" FROM "article" AS t0 WHERE (t0."title" = ? AND t0."views" IN (SELECT
    value FROM json_each(?)))
    PostgreSQL: SELECT t0."id" FROM "article" AS t0 WHERE (t0."title" = $1 AND t0."views" =
    ANY($2::integer[]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL, Encoder, StatementBuilder

MAX_PLANS = 2048
"""Plans that one database keeps: shapes of queries, of which a program has some hundred; the bound
is for a program that builds ever new ones, such as filters with any number of terms.
"""

Bind = Callable[[Sequence[object]], Sequence[object]]


class Plan:
    """One compiled statement.

    `bind` turns the query's parameters into the driver's arguments, None where they are the same;
    `decode` turns rows into results; `decode_lazy` does so for sync code, where instances of one
    result may load missing attributes together; `decode_one` takes a single row, where one is all
    that is wanted. `locks` says that its rows stay locked until the transaction ends, `key_place`
    the place of the key in a row.
    """

    __slots__ = ("bind", "decode", "decode_lazy", "decode_one", "key_place", "locks", "sql")

    def __init__(
        self, sql: str, bind: Bind | None, *, decode: Any = None, decode_lazy: Any = None
    ) -> None:
        self.sql = sql
        self.bind = bind
        self.decode = decode
        self.decode_lazy = decode_lazy if decode_lazy is not None else decode
        self.decode_one: Any = None
        self.locks = False
        self.key_place = 0


def build_plan_from_statement(
    builder: StatementBuilder,
    statement: SQL,
    dialect: Dialect,
    *,
    given: int,
    decode: Any = None,
    decode_lazy: Any = None,
) -> Plan:
    """Make a plan of a finished statement; `given` is the number of the query's parameters."""
    text, slots = builder.finish_statement(statement, dialect)
    bind = make_binder(slots, builder.consts, given=given)
    return Plan(text, bind, decode=decode, decode_lazy=decode_lazy)


def make_binder(
    slots: list[tuple[int, Encoder | None]], consts: list[Any], *, given: int
) -> Bind | None:
    """Return the function that orders and encodes parameters; None where they pass unchanged."""
    indexes = [index for index, _ in slots]
    if any(encode for _, encode in slots):
        fixed = tuple(reversed(consts))  # -1 is the first constant, and the last item of the whole
        pairs = tuple(slots)

        def bind_params(params: Sequence[object]) -> list[Any]:
            values = (*params, *fixed)
            # encoders never meet None, which both drivers take for NULL
            return [values[i] if e is None or values[i] is None else e(values[i]) for i, e in pairs]

        return bind_params
    # nothing to order or to encode: an execution passes the tuple of the query on as it is
    if indexes == list(range(given)):
        return None
    if not consts:
        return _make_picker(indexes)
    fixed = tuple(reversed(consts))
    return lambda params: [(*params, *fixed)[i] for i in indexes]


def _make_picker(indexes: list[int]) -> Bind:
    # itemgetter() of one index gives the bare value and not a tuple, and of none is an error
    if len(indexes) == 1:
        only = indexes[0]
        return lambda params: (params[only],)
    return itemgetter(*indexes) if indexes else lambda params: ()


class PlanCache(dict[Any, Plan]):
    """Plans by shape; when full, the oldest makes room."""

    def keep_plan(self, key: Any, plan: Plan) -> Plan:
        """Add a plan and return it."""
        # No lock: two threads that compile one shape at once store equal plans, which costs one
        # compilation. Dictionaries keep their order, so that the first key is the oldest.
        while len(self) >= MAX_PLANS:
            try:
                del self[next(iter(self))]
            except (
                KeyError,
                StopIteration,
                RuntimeError,
            ):  # another thread made room at the same moment
                break
        self[key] = plan
        return plan
