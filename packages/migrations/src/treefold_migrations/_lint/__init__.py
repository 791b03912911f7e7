"""Rules over changes, SQL and functions that may break a running application."""
