"""Names in documents: from folders and modules, and free of collisions.

Only texts live here; the names of routes are composed in `locations`, those of schemas in
`openapi`.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from itertools import chain, count


class TakenNames:
    """Names that are taken. A name that differs in case or signs only is taken, too.

    Generators of clients write `user_id`, `user-id` and `userId` in the spelling of their language,
    which makes them one name.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._folded = set(map(fold_name, names))

    def __contains__(self, name: object) -> bool:
        return fold_name(str(name)) in self._folded

    def add(self, name: str) -> None:
        """Take a name."""
        self._folded.add(fold_name(name))


def fold_name(name: str) -> str:
    """Return the letters and digits of a name without their case."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


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


def to_parameter_name(text: str) -> str:
    """Return the name of a path parameter in a template, such as `path` for `...path`.

    Generators of clients know ASCII letters, digits, `_` and `-` between braces.
    """
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", text):
        return text
    name = to_identifier(text)
    return f"_{name}" if name[0].isdigit() else name


def to_pascal_case(text: str) -> str:
    """Return a text in PascalCase: `order-line` is `OrderLine`."""
    return "".join(part[:1].upper() + part[1:] for part in to_identifier(text).split("_"))
