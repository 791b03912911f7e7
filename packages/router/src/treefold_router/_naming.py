"""The meaning of one name in the tree: method stem, version, bracket folder or segment.

Only this module knows the patterns. It looks at one name at a time, never at a path or a disk.
Patterns take ASCII only: `\\d`, `$` and `str.upper` accept more than a reader of the tree sees.
"""

import re

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
"""The HTTP methods a file can serve, in the order of the specification."""

WEBSOCKET = "WEBSOCKET"
"""The pseudo-method of a socket file; never an HTTP verb."""

_METHOD_OF_STEM = {name: name for name in METHODS} | dict.fromkeys(
    ("SOCKET", "WS", "WEBSOCKET"), WEBSOCKET
)
_VERSION = re.compile(r"v[0-9]+")
_BRACKETS = re.compile(r"\[([^\[\]]+)\]")
# No file system stores a longer name, and int() refuses digit strings of unbounded length.
_LONGEST_NAME = 255


def method_of(stem: str) -> str | None:
    """Return the method of a file stem: 'Get' is 'GET', 'Ws' is 'WEBSOCKET', else None.

    Source: routing rule 3. Stems outside ASCII are ordinary code, also where upper-casing
    would turn them into a method (a long s, U+017F, becomes 'S').
    """
    return _METHOD_OF_STEM.get(stem.upper()) if stem.isascii() else None


def is_version_name(name: str) -> bool:
    """Return True if a folder name or path segment is a version: `v` and ASCII digits only.

    Source: routing rule 1.
    """
    return _VERSION.fullmatch(name) is not None


def version_number(name: str) -> int | None:
    """Return the number in a version name ('v10' is 10), or None where the name is no version.

    Names above 255 characters give None as well: no folder can have one. Source: routing rule 1.
    """
    if len(name) > _LONGEST_NAME or not is_version_name(name):
        return None
    return int(name[1:])


def parameter_name(folder: str) -> str | None:
    """Return the name between the brackets of a folder ('[id]' is 'id'), verbatim, else None.

    Source: routing rule 4.
    """
    match = _BRACKETS.fullmatch(folder)
    return None if match is None else match[1]


def segment_of(folder: str) -> str:
    """Return the URL segment of a static folder: its name in lower case.

    Source: routing rule 2.
    """
    return folder.lower()
