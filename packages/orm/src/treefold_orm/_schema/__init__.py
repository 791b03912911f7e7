"""The schema as data, and the statements that create it."""
