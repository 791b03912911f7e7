"""The commands as importable functions."""
