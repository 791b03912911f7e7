"""Tests of applications: the public names of `treefold_http.testing`."""

from typing import TYPE_CHECKING

from treefold_http.testing import *  # noqa: F403 - its `__all__` is the list

if not TYPE_CHECKING:
    from treefold_http.testing import __all__ as __all__
