"""The HTTP server: listening, protocols with time limits, worker processes."""
