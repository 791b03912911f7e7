"""What serves a path: handlers, mounts and fallbacks, each with its middleware in one plan."""
