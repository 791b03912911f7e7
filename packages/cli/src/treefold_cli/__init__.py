"""Command line of treefold: `treefold`, `tfold` and `python -m treefold_cli`.

The entry point and the version. Nothing else is imported here: `treefold --version` should cost
little more than starting the interpreter.
"""

from treefold_cli.__about__ import __version__
from treefold_cli._console.main import main

__all__ = ["__version__", "main"]
