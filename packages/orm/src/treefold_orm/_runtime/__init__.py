"""Configured databases, transactions, and the blocking and the awaiting runner of an operation."""
