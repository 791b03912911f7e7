"""Reload in process, for development servers; production servers do not import this module."""

from treefold_http._reload.outcome import Reloaded, RestartNeeded
from treefold_http._reload.reloader import Reloader
from treefold_http._reload.search_path import remove_bytecode, without_broken

__all__ = ["Reloaded", "Reloader", "RestartNeeded", "remove_bytecode", "without_broken"]
