"""Querysets and managers, and the operations behind their methods."""
