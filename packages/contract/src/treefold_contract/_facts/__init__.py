"""Facts about routes and versions: what a lock holds, as data."""
