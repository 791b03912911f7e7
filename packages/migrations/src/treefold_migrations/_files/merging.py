"""Merging a fork: branches that commute meet in one file; others name the clashing operations.

Branches commute if no two operations of different branches touch the same part, and both
orders lead to the same state, which is tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from treefold_migrations._base.errors import HistoryError, StateError
from treefold_migrations._files.history import History, LoadedMigration, apply_migration_to_state
from treefold_migrations._operations.base import Operation
from treefold_migrations._state.schema_state import SchemaState, is_same_state


def require_mergeable_heads(history: History) -> list[LoadedMigration]:
    """Return the heads of a fork that can be merged.

    Raises `HistoryError` without a fork, and for branches that clash, with the operations.
    """
    heads = history.heads()
    if len(heads) < 2:
        raise HistoryError("There is nothing to merge: the migrations have one head")
    ancestors = [history.ancestors(head.name) for head in heads]
    shared = set[str].intersection(*ancestors)
    names = [item.name for item in history.order()]
    branches = [[n for n in names if n in found and n not in shared] for found in ancestors]
    for one, other in itertools.combinations(branches, 2):
        own = [name for name in one if name not in other]
        theirs = [name for name in other if name not in one]
        _refuse_clashing_branches(history, own, theirs)
    start = history.replay_migrations([name for name in names if name in shared])
    _refuse_order_dependence(history, branches, start)
    return heads


def _refuse_clashing_branches(
    history: History, branch: Sequence[str], other_branch: Sequence[str]
) -> None:
    pairs = (_list_operations(history, one) for one in (branch, other_branch))
    for mine, theirs in itertools.product(*pairs):
        clash = _describe_clash(mine[1], theirs[1])
        if clash:
            raise HistoryError(
                f"{mine[0]} ({mine[1].describe()}) and {theirs[0]} ({theirs[1].describe()}) clash: "
                f"{clash}; rewrite one of them after the other"
            )


def _list_operations(history: History, names: Iterable[str]) -> list[tuple[str, Operation]]:
    return [(name, operation) for name in names for operation in history[name].operations]


def _describe_clash(one: Operation, other: Operation) -> str:
    mine, theirs = one.touches(), other.touches()
    if mine is None or theirs is None:
        unknown = one if mine is None else other
        return f"what `{unknown.describe()}` touches is not known; give it tables=[...]"
    for first, second in itertools.product(sorted(mine), sorted(theirs)):
        tables = _extract_table_name(first), _extract_table_name(second)
        if first == second or first == tables[1] or second == tables[0]:
            return f"both change {first if len(first) > len(second) else second}"
    for changed, read in ((mine, other.relies_on()), (theirs, one.relies_on())):
        for first, second in itertools.product(sorted(changed), sorted(read)):
            if first in (second, _extract_table_name(second)):
                return f"one changes {first}, which the other relies on"
    return ""


def _extract_table_name(name: str) -> str:
    return name.partition(".")[0].partition("#")[0]


def _refuse_order_dependence(
    history: History, branches: Sequence[Sequence[str]], start: SchemaState
) -> None:
    found: list[SchemaState] = []
    for order in itertools.islice(itertools.permutations(branches), 24):
        state = start
        done: set[str] = set()
        try:
            for name in itertools.chain.from_iterable(order):
                if name not in done:
                    state = apply_migration_to_state(history[name], state)
                    done.add(name)
        except StateError as error:
            raise HistoryError(f"The branches cannot follow each other: {error}") from error
        found.append(state)
    if not all(is_same_state(found[0], state) for state in found[1:]):
        raise HistoryError(
            "The branches lead to different schemas when they are applied in another order; "
            "rewrite one of them after the other"
        )
