"""The value of a `Host` field in parts (RFC 9110, 7.2).

Which hosts are served here is decided by middleware; this module only takes a value apart.
"""

from __future__ import annotations

import re

_split = re.compile(r"(\[[^]]*\]|[^:]*)(?::([0-9]+))?").fullmatch


def split_host(host: str) -> tuple[str, str]:
    """Return the name in lower case without a trailing dot, and the port or an empty string.

    An address of IPv6 keeps its brackets. A value that is neither gives two empty strings.
    """
    if (match := _split(host)) is None:
        return "", ""
    return match[1].lower().removesuffix("."), match[2] or ""
