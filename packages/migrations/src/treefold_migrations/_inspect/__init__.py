"""Databases as they are: catalogs to the ORM's records, and how they differ from the history."""
