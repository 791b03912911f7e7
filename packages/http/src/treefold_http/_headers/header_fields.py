"""Header fields as bytes, checked where they are set (RFC 9110, 5.1 and 5.5).

A line break in a value would begin another field or response; the traceback of an error there shows
the line that set it (S-43).
"""

from __future__ import annotations

import re
from typing import cast

BLANKS = b" \t"
"""What may stand around a value and is no part of it (RFC 9110, 5.5)."""
# fullmatch in both, as `$` accepts a line break at the end, which would begin another field
is_token = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+").fullmatch
_value = re.compile(r"[\t\x20-\x7e\x80-\xff]*").fullmatch


def encode_header(name: str, value: str) -> tuple[bytes, bytes]:
    """Return a header field as bytes: the name in lower case, the value without outer blanks.

    Raises:
        TypeError: when the value is no str.
        ValueError: when the name is no token, or the value holds a control character or a
            character outside latin-1.
    """
    if not isinstance(cast("object", value), str):
        message = f"The value of header {name!r} must be str, got {type(value).__qualname__!r}"
        raise TypeError(message)
    if not is_token(name):
        message = f"A header name must consist of letters, digits and - (RFC 9110), got {name!r}"
        raise ValueError(message)
    if not _value(value):
        raise ValueError(
            f"The value of header {name!r} must not contain a control character or one"
            " outside latin-1; encode it first"
        )
    return name.lower().encode("ascii"), value.strip(" \t").encode("latin-1")
