"""The request id: a safe inbound `X-Request-ID`, or else a generated one."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Mapping

from treefold_http._wire.asgi import RawHeaders

# the id is written into log lines and header fields: no blank and no control character
_acceptable = re.compile(rb"[A-Za-z0-9._:@/+=-]{1,128}").fullmatch


def _start_id_series() -> None:
    """Start a new series of ids: a random prefix and a counter.

    The counter is written in decimal digits, eight at first: formatting a padded hexadecimal number
    takes twice as long.
    """
    global _prefix, _count  # one series for the process, a new one after a fork
    _prefix = os.urandom(10).hex()
    _count = itertools.count(10_000_000).__next__


_prefix: str
_count: Callable[[], int]
_start_id_series()
if hasattr(os, "register_at_fork"):
    # two children of one server would otherwise count the same ids
    os.register_at_fork(after_in_child=_start_id_series)


def assign_request_id(fields: Mapping[bytes, bytes], raw: RawHeaders) -> str:
    """Return the id of a request.

    An inbound value is used if there is exactly one and it matches `[A-Za-z0-9._:@/+=-]{1,128}`;
    otherwise an id of 28 or more hexadecimal digits is made. The id is written to the log and to a
    response header, where other characters could begin a line or a field of their own (S-79).
    """
    sent = fields.get(b"x-request-id")
    if sent is None or not _acceptable(sent):
        return f"{_prefix}{_count()}"
    if len(fields) != len(raw) and sum(name == b"x-request-id" for name, _ in raw) > 1:
        return f"{_prefix}{_count()}"
    return sent.decode("ascii")
