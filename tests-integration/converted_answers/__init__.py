"""Handlers of v1 that v2 converts, and what a request of each shows."""
