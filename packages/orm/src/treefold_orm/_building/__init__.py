"""Queries as data: their steps, the calls that add one, and where they begin."""
