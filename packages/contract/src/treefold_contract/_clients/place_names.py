"""The names of clients, and of the types of their places: `V1UserId` of `/v1/user/{id}`."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping

from treefold_contract._clients.places import Place
from treefold_contract._clients.type_names import Names
from treefold_contract._errors import LockError

ROOT = "Client"
"""The name of the root, which the runtimes say."""
CLIENT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")


def check_client_name(name: str, *, is_module: bool = False) -> None:
    """Raise if a name cannot be that of the files of a client, or of a module.

    Raises:
        LockError: it cannot.
    """
    if not CLIENT_NAME.fullmatch(name):
        raise LockError(f"Name of a client must be letters, digits, '-' and '_', got {name!r}")
    if is_module and (not name.isidentifier() or keyword.iskeyword(name)):
        raise LockError(f"Name of a client in Python must be one of a module, got {name!r}")


def name_places(root: Place, names: Names) -> Mapping[int, str]:
    """Return the name of the type of each place, by the identity of the place."""
    names.taken.discard(ROOT)
    found: dict[int, str] = {}
    for place in root.walk():
        words = [
            f"{word[0].upper()}{word[1:]}"
            for segment in place.path
            for word in re.findall(r"[A-Za-z0-9]+", segment.text)
        ]
        found[id(place)] = names.claim("".join(words) or ("Place" if place.path else ROOT))
    return found
