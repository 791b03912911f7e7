"""Keepers: load the session of a connection, save it, and set its cookie."""
