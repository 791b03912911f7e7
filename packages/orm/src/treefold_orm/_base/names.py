"""Names: which may become SQL identifiers, how they are quoted, which ones hide secrets.

Every identifier in a statement passes `quote` once, when a model is defined. Names that a caller
chooses per query (annotations) never reach SQL at all, but must still be plain Python names.
"""

from __future__ import annotations

import functools
import keyword
import re
import unicodedata
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from treefold_orm._base.errors import FieldError, ModelError, TaintedInput

MAX_IDENTIFIER = 63  # PostgreSQL cuts longer names silently, so that two names can become one

_ALIAS = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,62}")
CONTAINED = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "authorization"),
    *("apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "credential", "cookie"),
    *("sessionid", "csrf", "xsrf", "jwt", "bearer", "cardnumber", "creditcard", "signature"),
    *("connectionstring", "databaseurl", "clientassertion", "samlresponse"),
    *("passwort", "contraseña", "contrasena"),
)
"""Words that make a name sensitive wherever they stand in it; the same as in treefold-logging."""

WHOLE = frozenset(
    (
        *("pwd", "pass", "pin", "auth", "sid", "pan", "otp", "totp", "ssn", "iban", "cvv", "cvc"),
        *("dsn", "codeverifier"),
    )
)
"""Words that make a name sensitive only when they are all of it: `auth`, but not `author`."""

_PARTS = re.compile("|".join(CONTAINED))


def quote(name: str) -> str:
    """Return `name` as a quoted identifier.

    Raises `ModelError` for names that no database keeps as they are: empty, NUL or other control
    characters, lone surrogates, or more than 63 bytes.
    """
    if not name or any(unicodedata.category(c) in {"Cc", "Cs"} for c in name):
        raise ModelError(
            f"{name!r} cannot name a table or column: empty or with control characters"
        )
    if len(name.encode()) > MAX_IDENTIFIER:
        raise ModelError(
            f"{name!r} cannot name a table or column: more than {MAX_IDENTIFIER} bytes"
        )
    return '"' + name.replace('"', '""') + '"'


def constraint_name(prefix: str, table: str, *columns: str) -> str:
    """Return a stable name for a constraint or index, cut with a hash when it would be too long."""
    name = "_".join((prefix, table, *columns))
    if len(name.encode()) <= MAX_IDENTIFIER:
        return name
    import hashlib

    digest = hashlib.sha256(name.encode()).hexdigest()[:10]
    # the cut may go through a sign of several bytes
    kept = name.encode()[: MAX_IDENTIFIER - 11].decode(errors="ignore")
    return f"{kept}_{digest}"


def require_annotation_name(name: str, *, is_taken: bool) -> str:
    """Return `name` if it may name an annotation: a plain ASCII name without `__` that is not
    taken yet.
    """
    check_untainted(name)
    plain = _ALIAS.fullmatch(name) is not None and "__" not in name and not name.endswith("_")
    # the code that is generated for rows has the name as an attribute
    if not plain or keyword.iskeyword(name):
        raise FieldError(
            f"{name!r} cannot name an annotation: use a plain name without double underscores, "
            "which is not a keyword of Python"
        )
    if is_taken:
        raise FieldError(f"{name!r} cannot name an annotation: the model has that name already")
    return name


def check_untainted(name: str) -> None:
    """Raise `TaintedInput` if `name` is a string subclass, which is how request mappings mark
    their keys, and `FieldError` if it is no string at all.
    """
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
        raise FieldError(f"{name!r} is not a name: give a str")
    if name.__class__ is not str:
        raise TaintedInput(
            f"{str(name)!r} comes from a request and cannot name a field or lookup: use "
            "FilterSet or assign(fields=[...])"
        )


@functools.lru_cache(maxsize=4096)
def is_sensitive_name(name: str) -> bool:
    """Tell whether a field name speaks of a secret; the same words as the request log masks."""
    # full-width letters and ligatures are other spellings of the same word
    folded = unicodedata.normalize("NFKC", name).casefold()
    plain = "".join(c for c in folded if c.isalnum())
    return plain in WHOLE or _PARTS.search(plain) is not None


def build_attribute_reader(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function from an object to its attributes of these names."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda item: tuple([getattr(item, name) for name in names])
