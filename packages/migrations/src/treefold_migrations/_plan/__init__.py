"""The SQL steps of a change, for each database, and their lint."""
