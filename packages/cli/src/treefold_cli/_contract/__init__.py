"""The lock of a project: made, read from the folder or from git, and compared."""
