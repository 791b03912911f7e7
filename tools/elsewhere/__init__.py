"""The quick suites and the pages under other conditions: other days, users, folders, machines."""
