"""Reload in process: the changed files, what they reach, and the swap."""
