"""Applying migrations: lock, journal, records, data migrations."""
