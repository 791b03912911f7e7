"""The development server: changed files, reloads and restarts."""
