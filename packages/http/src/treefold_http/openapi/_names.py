"""Names in documents: from folders and modules, and free of collisions.

Only texts live here; the names of routes are composed in `_paths`, those of schemas in
`_component_names`.
"""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import chain, count


def choose_free_name(name: str, taken: Container[str], *wanted: str) -> str:
    """Return the first name that is not taken: the wanted ones, then a numbered one."""
    numbered = (f"{name}_{number}" for number in count(2))
    return next(each for each in chain(wanted, numbered) if each not in taken)


def to_identifier(text: str) -> str:
    """Return a text as part of an identifier: ASCII letters, digits and `_`."""
    return re.sub(r"[^A-Za-z0-9]+", _encode_non_ascii_letters, text).strip("_") or "x"


def _encode_non_ascii_letters(found: re.Match[str]) -> str:
    # Letters of other scripts become their code points: otherwise two folders could share an id,
    # and a third could change which of them gets `_2`.
    letters = "".join(f"u{ord(letter):04x}" for letter in found[0] if letter.isalnum())
    return f"_{letters}_" if letters else "_"


def to_pascal_case(text: str) -> str:
    """Return a text in PascalCase: `order-line` is `OrderLine`."""
    return "".join(part[:1].upper() + part[1:] for part in to_identifier(text).split("_"))
