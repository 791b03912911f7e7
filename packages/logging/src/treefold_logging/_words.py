"""The word lists of sensitive keys, and the test of one key.

The only module with word lists. It tests one key at a time, never a value. Verdicts are cached in a
bounded dictionary, because an application uses the same few keys repeatedly; a client that sends
many different keys only clears the cache.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable

CONTAINED = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "authorization"),
    *("apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "credential", "cookie"),
    *("sessionid", "csrf", "xsrf", "jwt", "bearer", "cardnumber", "creditcard", "signature"),
    "connectionstring",
    # Added to the specified list. Each names a credential and is part of no ordinary word.
    *("databaseurl", "clientassertion", "samlresponse"),
    # In other languages.
    *("passwort", "contraseña", "contrasena"),
)
"""Words that make a key sensitive wherever they occur in it."""

WHOLE = frozenset(
    (
        *("pwd", "pass", "pin", "auth", "sid", "pan", "otp", "totp", "ssn", "iban"),
        *("cvv", "cvc", "dsn"),
        # Added to the specified list: the secret of PKCE. Other short words (key, salt, refresh,
        # session) stay out, because they are ordinary field names.
        "codeverifier",
    )
)
"""Words that make a key sensitive only when they are all of it: `auth`, but not `author`."""

IN_QUERIES = frozenset({"code", "state", "sig", "key"})
"""Words that make the whole name of a query parameter sensitive: credentials of OAuth, of signed
addresses and of APIs. In a body they are ordinary names."""

MAX_VERDICTS = 4096
LONGEST_KEPT = 128
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_NESTING = re.compile(r"[\[\].]+")
verdicts: dict[str, bool] = {}
"""Cached verdicts by key."""
added_words: set[str] = set()
"""Words of settings, which make a key sensitive wherever they occur in it."""
harmless: set[str] = set()
"""Cached keys that hold no secrets, for a comparison with many keys at once."""


def normalise_key(key: str) -> str:
    """Return the key as it is compared: NFKC, casefolded, letters and digits only."""
    if key.isascii():
        return _SEPARATORS.sub("", key.lower())
    folded = unicodedata.normalize("NFKC", key).casefold()
    return "".join(char for char in folded if char.isalnum())


def is_sensitive(key: str) -> bool:
    """Return True if the values under a key are secrets.

    A key in bracket or dot notation (`user[pin]`, `card.cvv`) is a path of keys, as in forms; each
    of its parts is tested as a whole key too. Source: S-83.
    """
    if (verdict := verdicts.get(key)) is None:
        verdict = _matches_sensitive_word(key)
        if len(key) <= LONGEST_KEPT:
            if len(verdicts) >= MAX_VERDICTS:
                verdicts.clear()
                harmless.clear()
            verdicts[key] = verdict
            if not verdict:
                harmless.add(key)
    return verdict


def is_sensitive_in_query(name: str) -> bool:
    """Return True if the value of a query parameter is a secret."""
    return is_sensitive(name) or normalise_key(name) in IN_QUERIES


def add_sensitive_words(words: Iterable[str]) -> None:
    """Add words for the whole process, found anywhere in a key; none is ever removed.

    Raises:
        ValueError: for a word without a letter or a digit.
    """
    for word in words:
        if not (plain := normalise_key(word)):
            raise ValueError(f"A sensitive word must have a letter or a digit, got {word!r}")
        if plain not in added_words:
            added_words.add(plain)
            verdicts.clear()
            harmless.clear()


def make_sensitivity_test(extra_words: Iterable[str]) -> Callable[[str], bool]:
    """Return the test of one key with additional words, found anywhere in the key.

    Words are normalised like keys. They only add to the lists, and a word without a letter or a
    digit adds nothing. A bare string is one word.
    """
    given = (extra_words,) if isinstance(extra_words, str) else extra_words
    words = [normalise_key(word) for word in given]
    added = tuple(word for word in words if word)

    def is_sensitive_or_added(key: str) -> bool:
        return is_sensitive(key) or any(word in normalise_key(key) for word in added)

    return is_sensitive_or_added if added else is_sensitive


def _matches_sensitive_word(key: str) -> bool:
    plain = normalise_key(key)
    if plain in WHOLE or any(word in plain for word in (*CONTAINED, *added_words)):
        return True
    parts = _NESTING.split(unicodedata.normalize("NFKC", key))
    return len(parts) > 1 and any(normalise_key(part) in WHOLE for part in parts)
