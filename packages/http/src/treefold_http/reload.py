"""Reload in process, for development servers; production servers do not import this module."""

from treefold_http._reload import Reloaded, Reloader, RestartNeeded
from treefold_http._starting import Starting

__all__ = ["Reloaded", "Reloader", "RestartNeeded", "Starting"]
