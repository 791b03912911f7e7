"""Authentication: sessions of users, passwords, and credentials in header fields.

One file each, imported at first use. docs/auth.md shows how they fit together.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treefold_http.auth._credentials import (
        api_key as api_key,
        bearer as bearer,
    )
    from treefold_http.auth._jwt import (
        jwt as jwt,
    )
    from treefold_http.auth._login import (
        current_user as current_user,
        login as login,
        logout as logout,
    )
    from treefold_http.auth._passwords import (
        PasswordCheck as PasswordCheck,
        ahash_password as ahash_password,
        averify_password as averify_password,
        hash_password as hash_password,
        verify_password as verify_password,
    )

_HOMES = {
    "PasswordCheck": "_passwords",
    "ahash_password": "_passwords",
    "api_key": "_credentials",
    "averify_password": "_passwords",
    "bearer": "_credentials",
    "current_user": "_login",
    "hash_password": "_passwords",
    "jwt": "_jwt",
    "login": "_login",
    "logout": "_login",
    "verify_password": "_passwords",
}

__all__ = [
    "PasswordCheck",
    "ahash_password",
    "api_key",
    "averify_password",
    "bearer",
    "current_user",
    "hash_password",
    "jwt",
    "login",
    "logout",
    "verify_password",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
