"""The data of server-sent events in a body, as a client reads it (WHATWG HTML, 9.2).

    b'event: tick\\ndata: {"n": 1}\\n\\n: alive\\n\\ndata: a\\ndata: b\\n\\n'   '{"n": 1}', 'a\\nb'

An event without data and one that is not ended by an empty line are none for a client.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_split_lines = re.compile("\r\n|\r|\n").split  # `str.splitlines` has further line ends


def iter_event_data(body: bytes) -> Iterator[str]:
    """Yield the data of each event that is complete."""
    data: list[str] = []
    for line in _split_lines(body.decode("utf-8", "replace"))[:-1]:
        name, _, value = line.partition(":")
        if name == "data":
            data.append(value.removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data = []
