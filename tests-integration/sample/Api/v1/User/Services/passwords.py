"""A local service: it belongs to this version of the user endpoints and is copied with it."""

import hashlib
import os


def hash_password(password: str) -> str:
    salt = os.urandom(16)
    return f"{salt.hex()}${hashlib.scrypt(password.encode(), salt=salt, n=2**12, r=8, p=1).hex()}"
