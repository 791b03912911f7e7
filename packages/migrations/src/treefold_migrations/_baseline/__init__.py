"""A database that was there before, as models and the first migration."""
