"""Errors and names."""
