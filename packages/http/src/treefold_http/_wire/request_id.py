"""The request id: a safe inbound `X-Request-ID`, or else a generated one."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping

from treefold_http._wire.asgi import RawHeaders

# the id is written into log lines and header fields: no blank and no control character
_acceptable = re.compile(rb"[A-Za-z0-9._:@/+=-]{1,128}").fullmatch


_IDS_OF_A_BLOCK = [f"{number:03x}" for number in range(4096)]


class RequestIds:
    """The ids of one process: a random prefix, a number of digits, and three more.

    | part | example | changes |
    |---|---|---|
    | prefix | `9f86d081884c7d659a2f` | in each process, and after a fork |
    | block | `10000` | once for 4,096 ids, as formatting a number takes as long as two look-ups |
    | place in the block | `0a3` | at each id |

    Attributes:
        make: returns the next id. It is made of iterators in C, which threads may share.
    """

    __slots__ = ("make",)

    make: Callable[[], str]

    def __init__(self) -> None:
        self.start_series()

    def start_series(self) -> None:
        """Start a new series, with another prefix."""
        prefix = os.urandom(10).hex()
        blocks = map(prefix.__add__, map(str, itertools.count(10_000)))
        self.make = itertools.chain.from_iterable(map(_list_ids_of_block, blocks)).__next__


def _list_ids_of_block(block: str) -> Iterator[str]:
    return map(block.__add__, _IDS_OF_A_BLOCK)


REQUEST_IDS = RequestIds()
if hasattr(os, "register_at_fork"):
    # two children of one server would otherwise count the same ids
    os.register_at_fork(after_in_child=REQUEST_IDS.start_series)


def assign_request_id(fields: Mapping[bytes, bytes], raw: RawHeaders) -> str:
    """Return the id of a request.

    An inbound value is used if there is exactly one and it matches `[A-Za-z0-9._:@/+=-]{1,128}`;
    otherwise an id of 28 or more hexadecimal digits is made. The id is written to the log and to a
    response header, where other characters could begin a line or a field of their own (S-79).
    """
    sent = fields.get(b"x-request-id")
    if sent is None or not _acceptable(sent):
        return REQUEST_IDS.make()
    if len(fields) != len(raw) and sum(name == b"x-request-id" for name, _ in raw) > 1:
        return REQUEST_IDS.make()
    return sent.decode("ascii")
