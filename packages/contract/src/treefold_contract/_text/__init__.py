"""The text of `routes.lock`, written and read."""
