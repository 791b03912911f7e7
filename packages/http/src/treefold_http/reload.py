"""Reload in process, for development servers; production servers do not import this module."""

from treefold_http._reload.reloader import Reloaded, Reloader, RestartNeeded

__all__ = ["Reloaded", "Reloader", "RestartNeeded"]
