"""Reload in process, for development servers; nothing here is imported by what serves."""

from treefold_http._reload import Reloaded, Reloader, RestartNeeded
from treefold_http._starting import Starting

__all__ = ["Reloaded", "Reloader", "RestartNeeded", "Starting"]
