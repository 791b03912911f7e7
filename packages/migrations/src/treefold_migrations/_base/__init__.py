"""Errors, and contracts with other packages."""
