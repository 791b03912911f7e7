"""Password hashing: argon2 if it is installed, else scrypt of the standard library.

A hash names its method and its cost, so that both can change: `verify_password` returns a new hash
to replace an outdated one. Hashing is slow on purpose; it runs in a few threads of its own, because
each call also takes tens of megabytes.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import re
import threading
import unicodedata
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from treefold_http._runtime.boot_report import TreefoldError

if TYPE_CHECKING:
    from treefold_http.auth._password_rules import PasswordRules

LONGEST = 1024
"""Characters of a password; a longer one is refused before it costs anything."""
CONCURRENT = max(2, min(4, os.cpu_count() or 2))
"""Hashes that a process computes at the same time."""

_SCRYPT_COST, _SCRYPT_BLOCK, _SCRYPT_LANES = 15, 8, 3
_scrypt_form = re.compile(
    r"\$scrypt\$ln=([0-9]{1,2}),r=([0-9]{1,2}),p=([0-9]{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)"
).fullmatch


@dataclass(frozen=True, slots=True)
class PasswordCheck:
    """Result of `verify_password`; true if the password is right.

    Attributes:
        is_right: True if the password is that of the hash.
        new_hash: the hash to store if the method or its cost has changed, else None.
    """

    is_right: bool
    new_hash: str | None = None

    def __bool__(self) -> bool:
        return self.is_right


def hash_password(
    password: str,
    *,
    rules: PasswordRules | None = None,
    attributes: Mapping[str, str | None] | None = None,
) -> str:
    """Return a hash to store, with a salt of its own; in an `async def` use `ahash_password`.

    Args:
        password: the password.
        rules: refuse a password that is too short, common, or like an attribute of its user.
        attributes: what others know of the user, by name, such as `{"email": user.email}`.

    Raises:
        ValueError: for an empty password, or one of more than 1,024 characters.
        WeakPassword: for a password that the rules refuse; the response is 422.
    """
    # comparing a long text with attributes takes quadratic time, so the length decides first
    if rules is not None and len(password) <= LONGEST:
        rules.check(password, attributes)
    if not 0 < len(password) <= LONGEST:
        raise ValueError(f"A password must have 1 to {LONGEST} characters, got {len(password)}")
    with _turns:
        return _make_password_hash(_normalize_and_encode_password(password))


def verify_password(password: str, hashed: str | None) -> PasswordCheck:
    """Check a password against a stored hash; in an `async def` use `averify_password`.

    Args:
        hashed: the stored hash; None if there is no such user, which is never right and takes as
            long, so that the response time does not reveal existing accounts.

    Raises:
        ValueError: for a hash of an unknown method.
        TreefoldError: for a hash of argon2 without the `argon2` extra.
    """
    if not 0 < len(password) <= LONGEST:
        return PasswordCheck(False)
    given = _normalize_and_encode_password(password)
    with _turns:
        if hashed is None:
            _verify_hash(given, _make_dummy_hash())
            return PasswordCheck(False)
        if not _verify_hash(given, hashed):
            return PasswordCheck(False)
        return PasswordCheck(True, _make_password_hash(given) if _needs_rehash(hashed) else None)


async def ahash_password(
    password: str,
    *,
    rules: PasswordRules | None = None,
    attributes: Mapping[str, str | None] | None = None,
) -> str:
    """As `hash_password`, without holding up the event loop."""
    work = partial(hash_password, password, rules=rules, attributes=attributes)
    return await asyncio.get_running_loop().run_in_executor(_get_password_executor(), work)


async def averify_password(password: str, hashed: str | None) -> PasswordCheck:
    """As `verify_password`, without holding up the event loop."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_get_password_executor(), verify_password, password, hashed)


# Plain handlers hash in the worker threads of the application, past the executor: without this
# bound all of them would take tens of megabytes at the same time.
_turns = threading.BoundedSemaphore(CONCURRENT)


@cache
def _get_password_executor() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(CONCURRENT, thread_name_prefix="treefold-password")


@cache
def _find_argon2_hasher() -> Any:
    try:
        import argon2
    except ImportError:
        return None
    return argon2.PasswordHasher()


def _normalize_and_encode_password(password: str) -> bytes:
    """One password typed on two keyboards is the same bytes (NFKC)."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")


@cache
def _make_dummy_hash() -> str:
    return _make_password_hash(os.urandom(16))


def _make_password_hash(password: bytes) -> str:
    if (hasher := _find_argon2_hasher()) is not None:
        return hasher.hash(password)
    salt = os.urandom(16)
    digest = _hash_with_scrypt(password, salt, _SCRYPT_COST, _SCRYPT_BLOCK, _SCRYPT_LANES)
    parameters = f"ln={_SCRYPT_COST},r={_SCRYPT_BLOCK},p={_SCRYPT_LANES}"
    return f"$scrypt${parameters}${_encode_base64(salt)}${_encode_base64(digest)}"


def _verify_hash(password: bytes, hashed: str) -> bool:
    if hashed.startswith("$argon2"):
        return _verify_argon2(password, hashed)
    if (match := _scrypt_form(hashed)) is None:
        method = hashed[1:].partition("$")[0][:20] if hashed.startswith("$") else ""
        raise ValueError(
            f"A password hash must begin with '$argon2' or '$scrypt', got method {method!r};"
            " hash the password again"
        )
    cost, block, lanes = map(int, match.groups()[:3])
    salt, digest = map(_decode_base64, match.groups()[3:])
    return hmac.compare_digest(_hash_with_scrypt(password, salt, cost, block, lanes), digest)


def _verify_argon2(password: bytes, hashed: str) -> bool:
    if (hasher := _find_argon2_hasher()) is None:
        message = 'A password hash of argon2 needs argon2-cffi; run pip install "treefold[argon2]"'
        raise TreefoldError(message)
    from argon2.exceptions import VerificationError

    try:
        return hasher.verify(hashed, password)
    except VerificationError:
        return False


def _needs_rehash(hashed: str) -> bool:
    if (hasher := _find_argon2_hasher()) is not None:
        # a hash of scrypt is outdated as soon as the extra is installed
        return not hashed.startswith("$argon2id") or hasher.check_needs_rehash(hashed)
    wanted = f"$scrypt$ln={_SCRYPT_COST},r={_SCRYPT_BLOCK},p={_SCRYPT_LANES}$"
    return not hashed.startswith(wanted)


def _hash_with_scrypt(password: bytes, salt: bytes, cost: int, block: int, lanes: int) -> bytes:
    # 128 * N * r is 32 MiB for the cost here, exactly the limit that OpenSSL has without `maxmem`,
    # and scrypt needs a little more
    memory = 128 * block * (2**cost + lanes + 2)
    most = memory + 2**20
    return hashlib.scrypt(password, salt=salt, n=2**cost, r=block, p=lanes, maxmem=most, dklen=32)


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).rstrip(b"=").decode("ascii")


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return b""
