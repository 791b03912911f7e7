"""Which keys hold secrets: the word lists and the test of one key.

The only place that lists words. It looks at one key at a time, never at a value. Verdicts are kept
in a bounded dictionary, because an application uses the same few keys again and again; a client
that sends ever new keys only empties it.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable

CONTAINED = (
    *("password", "passwd", "passphrase", "passcode", "secret", "token", "authorization"),
    *("apikey", "accesskey", "privatekey", "signingkey", "encryptionkey", "credential", "cookie"),
    *("sessionid", "csrf", "xsrf", "jwt", "bearer", "cardnumber", "creditcard", "signature"),
    "connectionstring",
    # Beyond the ruled list. Each names a whole credential and is in no ordinary word.
    *("databaseurl", "clientassertion", "samlresponse"),
)
"""Words that make a key sensitive wherever they stand in it (rulings, 'Log line')."""

WHOLE = frozenset(
    (
        *("pwd", "pass", "pin", "auth", "sid", "pan", "otp", "totp", "ssn", "iban"),
        *("cvv", "cvc", "dsn"),
        # Beyond the ruled list: the secret half of PKCE. Other short words (key, salt, refresh,
        # session) stay out, because they are ordinary field names.
        "codeverifier",
    )
)
"""Words that make a key sensitive only when they are all of it: `auth`, but not `author`."""

MAX_VERDICTS = 4096
LONGEST_KEPT = 128
_SEPARATORS = re.compile(r"[^a-z0-9]+")
_NESTING = re.compile(r"[\[\].]+")
verdicts: dict[str, bool] = {}
"""Verdicts already given, by key."""
harmless: set[str] = set()
"""The keys among them that hold no secrets: many keys are compared with them at once."""


def normalise(key: str) -> str:
    """Return the key as it is compared: NFKC, casefolded, letters and digits only."""
    if key.isascii():
        return _SEPARATORS.sub("", key.lower())
    folded = unicodedata.normalize("NFKC", key).casefold()
    return "".join(char for char in folded if char.isalnum())


def is_sensitive(key: str) -> bool:
    """Say whether the values under a key are secrets.

    A key in bracket or dot notation (`user[pin]`, `card.cvv`) is a path of keys, as in forms; each
    of its parts is tested as a whole key too. Source: rulings, 'Log line'; S-83.
    """
    verdict = verdicts.get(key)
    if verdict is None:
        verdict = _judge(key)
        if len(key) <= LONGEST_KEPT:
            if len(verdicts) >= MAX_VERDICTS:
                verdicts.clear()
                harmless.clear()
            verdicts[key] = verdict
            if not verdict:
                harmless.add(key)
    return verdict


def verdict_with(extra: Iterable[str]) -> Callable[[str], bool]:
    """Return the test of one key with additional words, found anywhere in the key.

    Words are normalised like keys. They only add to the lists, and a word without a letter or a
    digit adds nothing. A bare string is one word.
    """
    words = [normalise(word) for word in ((extra,) if isinstance(extra, str) else extra)]
    added = tuple(word for word in words if word)

    def verdict(key: str) -> bool:
        return is_sensitive(key) or any(word in normalise(key) for word in added)

    return verdict if added else is_sensitive


def _judge(key: str) -> bool:
    plain = normalise(key)
    if plain in WHOLE or any(word in plain for word in CONTAINED):
        return True
    parts = _NESTING.split(unicodedata.normalize("NFKC", key))
    return len(parts) > 1 and any(normalise(part) in WHOLE for part in parts)
