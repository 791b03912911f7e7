"""The form of a lock: a text is one only if it would be written as it is.

Git merges lines without their meaning. A merge without a conflict can list facts in another order,
repeat what a version has already, or name a type that the other branch has removed. Such a text is
refused, so that a comparison, which imports no project, does not believe it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from treefold_contract._errors import LockError
from treefold_contract._facts.facts import Lock

ADVICE = "run 'treefold contract lock'"
UNNAMED_ERRORS = ("", "problem", "other")
"""Settings `errors` that are not the name of a type."""


def require_equal_lines(text: str, written: str) -> None:
    """Raise an error if a text is not what is written for its facts.

    Raises:
        LockError: a line is in another place or form; the message names it.
    """
    if text == written:
        return
    pairs = zip_longest(text.split("\n"), written.split("\n"))
    for number, (line, expected) in enumerate(pairs, 1):
        if line != expected:
            got, wanted = ("the end" if each is None else repr(each) for each in (line, expected))
            raise LockError(f"Line {number} of the lock must be {wanted}, got {got}; {ADVICE}")


def require_known_types(lock: Lock, names: Mapping[str, frozenset[str]]) -> None:
    """Raise an error if a type is not defined, or not used.

    Args:
        lock: the facts of a text.
        names: the names of types in each block, by the keys of `Lock.lines`.

    Raises:
        LockError: the message names the line where the block begins.
    """
    defined = {key.partition(" ")[0]: f"type {key}" for key in lock.definitions}
    users = _find_users(lock, names)
    for name in sorted(users.keys() - defined.keys()):
        line = lock.lines.get(users[name], 1)
        raise LockError(
            f"Line {line} of the lock begins a block that names type {name!r}, which is not"
            f" defined; {ADVICE}"
        )
    # an error format without a name may use any type
    is_complete = lock.settings.errors != "other"
    for name in sorted(defined.keys() - users.keys()) if is_complete else ():
        line = lock.lines[defined[name]]
        raise LockError(f"Line {line} of the lock defines a type that nothing uses; {ADVICE}")


def _find_users(lock: Lock, names: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return the names of the types in use, each with the key of a block that names it."""
    errors = lock.settings.errors
    users = {} if errors in UNNAMED_ERRORS else {errors: ""}
    for key, used in names.items():
        if not key.startswith("type "):
            users |= {name: key for name in used if name not in users}
    waiting = list(users)
    while waiting:
        name = waiting.pop()
        for key in (f"type {name}", f"type {name} in", f"type {name} out"):
            new = [each for each in names.get(key, ()) if each not in users]
            users |= dict.fromkeys(new, key)
            waiting += new
    return users
