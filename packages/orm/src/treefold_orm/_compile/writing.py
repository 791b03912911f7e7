"""Trees of nodes as SQL, with all rules of this room loaded."""

from __future__ import annotations

from treefold_orm._compile import aggregates, conditions, cte_definitions, values, windows
from treefold_orm._compile.rules import build_condition, build_expression
from treefold_orm._compile.select import (
    build_aliased_select,
    build_partitioned_select,
    build_primary_key_select,
    build_select,
)

RULES = (aggregates, conditions, cte_definitions, values, windows)
"""The modules whose rules are found by the class of a node."""

__all__ = [
    "RULES",
    "build_aliased_select",
    "build_condition",
    "build_expression",
    "build_partitioned_select",
    "build_primary_key_select",
    "build_select",
]
