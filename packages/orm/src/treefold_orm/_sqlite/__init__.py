"""Functions and aggregates that every SQLite connection registers, in Python.

A function called `sql_lower` is `treefold_lower` in statements; `functions` registers them all.
"""
