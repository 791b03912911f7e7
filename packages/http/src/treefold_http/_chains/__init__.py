"""Middleware composed around handlers, and the paths that an entry covers."""
