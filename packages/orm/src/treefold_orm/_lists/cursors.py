"""Signed cursors: the page of a list begins only where this application said so.

A cursor of `keyset()` holds the values of one row. In a list it is followed by a signature over it
and the list: the class, its order and its filters. A cursor that was made up, or of another list,
is refused before its values are read.

    cursor of keyset()   WyI3Mjc2Y2EzMSIsMTAsN10
    list                 ("Models.catalogue.Shelf", "-title", "year__in", "[1969, 1974]")
    signed               WyI3Mjc2Y2EzMSIsMTAsN10.mF9q...
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Sequence

from treefold_orm._base.errors import ConfigurationError

MIN_SECRET = 32  # bytes, as those of sessions
_PURPOSE = b"treefold list cursor"


class CursorSeal:
    """Signs cursors with a key of its own, derived from the newest secret.

    Args:
        secrets: the secrets, the newest first; a signature by any of them counts.

    Raises:
        ConfigurationError: for a short secret, whose key could be guessed.
    """

    __slots__ = ("__weakref__", "_codes")

    def __init__(self, secrets: Sequence[bytes]) -> None:
        for secret in secrets:
            if len(secret) < MIN_SECRET:
                raise ConfigurationError(
                    f"The secret key that signs cursors must have at least {MIN_SECRET} bytes, got"
                    f" {len(secret)}"
                )
        keys = [hmac.digest(secret, _PURPOSE, "sha256") for secret in secrets]
        # copied for each cursor: a digest that begins with its key takes three times as long
        self._codes = [hmac.new(key, digestmod="sha256") for key in keys]

    def sign_cursor(self, cursor: str, context: Sequence[str]) -> str:
        """Return a cursor with its signature for a list."""
        return f"{cursor}.{_compute_signature(self._codes[0], cursor, context)}"

    def open_cursor(self, signed: str, context: Sequence[str]) -> str | None:
        """Return the cursor inside, or None for one that was not signed for this list."""
        cursor, _, signature = signed.rpartition(".")
        # bytes, since `compare_digest` raises TypeError for text that is not ASCII
        sent = signature.encode("utf-8", "replace")
        made = [_compute_signature(code, cursor, context).encode() for code in self._codes]
        # all of them: the time does not tell which of the secrets has signed
        return cursor if any([hmac.compare_digest(each, sent) for each in made]) else None


def _compute_signature(code: hmac.HMAC, cursor: str, context: Sequence[str]) -> str:
    # with lengths, so that a piece of one part cannot move into the next
    parts = [part.encode("utf-8", "surrogatepass") for part in (cursor, *context)]
    made = code.copy()
    made.update(b"".join([b"%d:%b" % (len(part), part) for part in parts]))
    return base64.urlsafe_b64encode(made.digest()).rstrip(b"=").decode()
