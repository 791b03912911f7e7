"""The rule for a refusal to boot: it names the line to write.

A message has the form `<thing> must/cannot ..., got ...; <what to do>`: after a semicolon comes a
verb in the imperative, and it names something that can be written: a name of Python, a call, a
path or an entry of the list.
"""

from __future__ import annotations

import re

_REMEDY = re.compile(
    r"; (?:[a-z ]+, )?(?:or )?"
    r"(?:write|put|move|list|pass|add|name|set|use|give|remove|leave|change|take|cover|guard|make)"
    r" (?P<what>.+)",
    re.DOTALL,
)
_NEAREST = re.compile(r"; the nearest is '/")
"""What stands in for a prefix that covers nothing."""
_WRITTEN = re.compile(r"[A-Za-z_]+\(|[a-z_]+=|'/|\"/|`|[A-Z][a-zA-Z]+")


def names_remedy(message: str) -> bool:
    """Return True if a message says what to write."""
    if _NEAREST.search(message):
        return True
    found = _REMEDY.search(message)
    return found is not None and _WRITTEN.search(found["what"]) is not None
