"""Reload in process, for development servers; nothing here is imported by what serves."""

from treefold_http._reload import Reloaded, Reloader, RestartNeeded

__all__ = ["Reloaded", "Reloader", "RestartNeeded"]
