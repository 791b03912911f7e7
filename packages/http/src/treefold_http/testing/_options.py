"""Defaults of both clients: header fields and timeouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import httpx

Headers: TypeAlias = "httpx.Headers | Mapping[str, str] | Sequence[tuple[str, str]]"

DEFAULT_HEADERS = {"user-agent": "testclient", "accept-encoding": "gzip, deflate"}
"""httpx would name its own version, and every encoding for which some package is installed."""

TIMEOUT = httpx.Timeout(None, read=30.0)
"""Seconds to wait for an application, so that a hanging test fails with a traceback."""
