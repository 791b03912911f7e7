"""Middleware: `under` scopes an entry to a subtree of routes."""

from treefold_http import under

__all__ = ["under"]
