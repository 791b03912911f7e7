"""Check that httpx is installed, before another module imports it."""

from __future__ import annotations

import importlib.util

from treefold_http._runtime.boot_report import TreefoldError

if importlib.util.find_spec("httpx") is None:
    raise TreefoldError('The test client needs httpx; install it: pip install "treefold[test]"')
