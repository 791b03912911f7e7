"""The module that every client in Python is made of, loaded without writing a client.

Tests of a project call its routes with it: what a test sends is what a client sends.
"""

from __future__ import annotations

from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

_NAME = "treefold_contract_python_client"


@cache
def load_python_runtime() -> ModuleType:
    """Return the module `__init__.py` of a client, whose tree has any segment.

    Raises:
        ImportError: httpx is not installed.
    """
    file = Path(__file__).with_name("runtimes") / "client.py.txt"
    loader = SourceFileLoader(_NAME, str(file))
    spec = spec_from_loader(_NAME, loader)
    assert spec is not None  # noqa: S101 - a loader is given
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module
