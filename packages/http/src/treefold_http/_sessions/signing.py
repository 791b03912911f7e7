"""Signatures: HMAC-SHA-256 with a key for each purpose, made with the newest secret.

A key is derived from a secret and its context, each part with its length in front, so that no two
contexts share a key. Verification tries every secret; a signature that fails yields nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence

from treefold_http._runtime.boot_report import SettingsError

MIN_SECRET = 32
"""The least bytes of a secret."""

MAKE_ONE = 'make one with: python -c "import secrets; print(secrets.token_urlsafe(48))"'

_process_secret = secrets.token_urlsafe(48)
"""The secret in development if none is configured; it ends with the process."""


def require_secrets(given: Sequence[str], *, dev: bool) -> tuple[bytes, ...]:
    """Return the secrets as bytes, the newest first.

    Raises:
        SettingsError: without a secret, unless `dev`; or for one that is too short.
    """
    if not given:
        if dev:
            return (_process_secret.encode(),)
        raise SettingsError(f"Sessions need a secret; set TREEFOLD_SECRET_KEY and {MAKE_ONE}")
    for secret in given:
        check_secret_length(secret)
    return tuple(secret.encode() for secret in given)


def check_secret_length(secret: str) -> None:
    """Refuse a secret that is too short.

    Raises:
        SettingsError: for a short secret; the message has its length, never the secret.
    """
    size = len(secret.encode())
    if size < MIN_SECRET:
        message = f"The secret key must have at least {MIN_SECRET} bytes, got {size}; {MAKE_ONE}"
        raise SettingsError(message)


class Signer:
    """Makes and verifies signatures for one purpose.

    Args:
        given: the secrets, the newest first.
        context: the purpose, such as `("session", "__Host-session")`.
    """

    __slots__ = ("_keys",)

    def __init__(self, given: Sequence[bytes], context: Sequence[str]) -> None:
        parts = [part.encode() for part in ("treefold", *context)]
        message = b"".join(b"%d:%b" % (len(part), part) for part in parts)
        self._keys = [hmac.digest(secret, message, "sha256") for secret in given]

    def sign_data(self, data: bytes) -> str:
        """Return the signature as 43 characters of URL-safe base64."""
        return encode_base64url(hmac.digest(self._keys[0], data, "sha256"))

    def verify_signature(self, data: bytes, signature: str) -> bool:
        """Return True if one of the secrets made the signature."""
        # bytes, since `compare_digest` raises TypeError for text that is not ASCII
        sent = signature.encode("utf-8", "replace")
        found = False
        for key in self._keys:
            expected = encode_base64url(hmac.digest(key, data, "sha256")).encode()
            # no early return: the time would tell which of the secrets has signed
            found |= hmac.compare_digest(expected, sent)
        return found


def generate_token() -> str:
    """Return 256 random bits as 43 characters of URL-safe base64."""
    return secrets.token_urlsafe(32)


def hash_token(token: str) -> str:
    """Return the SHA-256 of a token in hexadecimal, the key of a session in a store."""
    return hashlib.sha256(token.encode()).hexdigest()


def encode_base64url(data: bytes) -> str:
    """Return bytes as URL-safe base64 without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode_base64url(text: str) -> bytes | None:
    """Return the bytes encoded by `encode_base64url`; None for invalid text."""
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        data = base64.b64decode(padded, altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return None
    # The last character of Base64 has bits that decoding drops (RFC 4648, 3.5): "QQ" and "QR" are
    # both b"A", and only one text may be valid for some bytes.
    return data if encode_base64url(data) == text else None


class CsrfTokens:
    """Makes and verifies tokens for sessions.

    Args:
        given: the secrets, the newest first.
        cookie: the name of the session's cookie.
        environment: of the application.
    """

    __slots__ = ("_signer",)

    def __init__(self, given: Sequence[bytes], cookie: str, environment: str) -> None:
        self._signer = Signer(given, ("csrf", cookie, environment))

    def make_token(self, session_id: str) -> str:
        """Return a new token for a session."""
        # Another text in each response: a secret that repeats in compressed pages can be guessed
        # from their sizes (BREACH).
        salt = secrets.token_urlsafe(16)
        return f"{salt}.{self._signer.sign_data(_build_csrf_message(salt, session_id))}"

    def verify_token(self, session_id: str, token: str) -> bool:
        """Return True for a token of this session."""
        salt, _, signature = token.rpartition(".")
        message = _build_csrf_message(salt, session_id)
        return bool(salt) and self._signer.verify_signature(message, signature)


def _build_csrf_message(salt: str, session_id: str) -> bytes:
    # with the length in front, so that a piece of the id cannot move into the salt
    return f"{len(session_id)}:{session_id}{salt}".encode("utf-8", "replace")
