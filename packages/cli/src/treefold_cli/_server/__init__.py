"""The HTTP server: listening, protocols with time limits, processes. It knows no framework."""
