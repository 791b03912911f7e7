"""Trees of nodes as SQL, with all rules of this room loaded."""

from __future__ import annotations

from treefold_orm._compile import aggregates, conditions, cte_definitions, values, windows
from treefold_orm._compile.rules import condition, expression
from treefold_orm._compile.select import key_select, numbered_select, select, select_parts

RULES = (aggregates, conditions, cte_definitions, values, windows)
"""The modules whose rules are found by the class of a node."""

__all__ = [
    "RULES",
    "condition",
    "expression",
    "key_select",
    "numbered_select",
    "select",
    "select_parts",
]
