"""Steps and how they are made: of tables, of one operation, or of the operations of a file."""

from __future__ import annotations

from treefold_migrations._plan.operations import plan_operation, plan_operations
from treefold_migrations._plan.planning import plan_change, plan_changes
from treefold_migrations._plan.step import Step

__all__ = ["Step", "plan_change", "plan_changes", "plan_operation", "plan_operations"]
