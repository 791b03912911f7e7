"""Functions, aggregates and windows as expressions."""
