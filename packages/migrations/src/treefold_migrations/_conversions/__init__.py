"""Values of a column as those of another type, on each database."""
