"""Several queries as one, by UNION and its like, and queries that lock their rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Self

from treefold_orm._base.errors import FieldError
from treefold_orm._building.combining import unify_combined_column_types
from treefold_orm._building.conjunctions import intersect_rows, unite_rows
from treefold_orm._building.one_database import require_common_database
from treefold_orm._building.query import AnyQuery, M, QueryBuilder, R
from treefold_orm._building.sources import convert_manager_to_query
from treefold_orm._building.steps import build_nesting_error
from treefold_orm._expressions.nodes import Key
from treefold_orm._expressions.steps import Combine, Common, DistinctOn, Lock, Values

MAX_PARTS = 500  # of SQLite


def _build_combine_steps(op: str, key: Key, param_offset: int) -> list[Combine]:
    """The steps that add a query to others of one operation, its parameters starting at
    `param_offset`.

    `b.union(c)` is added to `a` as b and c: the result of a loop stays flat. EXCEPT cannot be: the
    rows of b without those of c are others than what is left without both.
    """
    combined = [step for step in key[1:] if isinstance(step, Combine)]
    if not combined or op == "except" or any(step.op != op for step in combined):
        return [Combine(op, key, param_offset)]
    own = (key[0], *(step for step in key[1:] if not isinstance(step, (Combine, Common))))
    return [
        Combine(op, own, param_offset),
        *(Combine(op, step.key, param_offset + step.base) for step in combined),
    ]


class SetOperations(QueryBuilder[M, R], Generic[M, R]):
    """The part of a query that meets other queries and transactions."""

    __slots__ = ()

    def union(self, *others: AnyQuery, all: bool = False) -> Self:
        """Rows of this query and the others, each once; with `all`, as often as they come."""
        return self._combine_with("union all" if all else "union", others)

    def intersection(self, *others: AnyQuery) -> Self:
        """Rows that are in this query and in all others."""
        return self._combine_with("intersect", others)

    def difference(self, *others: AnyQuery) -> Self:
        """Rows of this query that are in none of the others."""
        return self._combine_with("except", others)

    def __and__(self, other: AnyQuery) -> Self:
        """Rows that are in both queries. What is loaded, and how, is as in the first; so is the
        order where the second has none.
        """
        return intersect_rows(self, other)

    def __or__(self, other: AnyQuery) -> Self:
        """Rows that are in at least one of the queries, each once; otherwise as `&`."""
        return unite_rows(self, other)

    def _combine_with(self, op: str, others: Sequence[AnyQuery]) -> Self:
        made = self
        last = self._key[-1]
        if isinstance(last, Combine) and last.op != op:
            raise FieldError(
                "Different set operations cannot be mixed: combine in one kind, or filter by key"
            )
        count = sum(isinstance(step, Combine) for step in self._key[1:])
        for other in map(convert_manager_to_query, others):
            alias = require_common_database(other._alias, made._alias, made._meta)
            for part in (made, other):
                if part._low or part._high is not None:
                    raise FieldError("A sliced query cannot be combined: slice the result")
                if part._has_step(DistinctOn):
                    raise FieldError(
                        "distinct(fields) cannot be combined: filter by the keys of its rows"
                    )
            key = other._key
            if key[0] is not self._meta and not other._has_step(Values):
                raise FieldError(
                    f"{other._meta.name} cannot be combined with {self._meta.name}: use "
                    "values() on both"
                )
            parts = _build_combine_steps(op, key, len(made._params))
            count += len(parts)
            if count >= MAX_PARTS:
                raise FieldError(
                    f"At most {MAX_PARTS} queries can be combined by {op.upper()}; combine their "
                    "conditions with |, or run them in several queries"
                )
            made = made._add_step(parts[0], other._params)
            for part in parts[1:]:
                made = made._add_step(part)
            made._alias = alias
        try:
            made._key = unify_combined_column_types(made._key)
        # q = other.difference(q) in a loop puts queries inside of each other, hundreds deep
        except RecursionError:
            raise build_nesting_error() from None
        return made

    def select_for_update(
        self,
        *,
        skip_locked: bool = False,
        nowait: bool = False,
        share: bool = False,
        no_key: bool = False,
        of: Sequence[str] = ("self",),
    ) -> Self:
        """Lock the rows until the transaction ends (on SQLite the transaction holds the lock
        already); `TransactionRequired` where none is open.

        Args:
            skip_locked: leave out rows that another transaction has locked.
            nowait: raise `DatabaseLocked` rather than wait for another transaction.
            share: let others lock the rows in this way too, but not change them.
            no_key: let others insert rows that refer to these.
            of: the model's own rows, the only ones that are locked.
        """
        self._require_unsliced_and_uncombined("select_for_update()")
        if tuple(of) != ("self",):
            raise FieldError(
                f"select_for_update() locks the rows of the model alone, got of={of!r}; lock "
                "others by a query of their own"
            )
        if share and no_key:
            raise FieldError("select_for_update() takes share or no_key, got both")
        strength = "share" if share else "no_key" if no_key else ""
        return self._add_step(Lock(bool(skip_locked), bool(nowait), strength))


ModelQuery = SetOperations[Any, Any]
"""A query without the calls that run it."""
