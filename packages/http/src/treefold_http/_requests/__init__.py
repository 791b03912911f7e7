"""The request that a handler takes, and its line in the log."""
