"""Authentication: sessions of users, passwords, credentials in header fields, permissions.

One file each, imported at first use. docs/guides/auth.md shows how they fit together.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from treefold_http._requests.principal import (
        Principal as Principal,
        identify as identify,
        principal_key as principal_key,
    )
    from treefold_http.auth._allow import allow as allow
    from treefold_http.auth._credential import Credential as Credential
    from treefold_http.auth._credentials import api_key as api_key, bearer as bearer
    from treefold_http.auth._issuer import jwt_issuer as jwt_issuer
    from treefold_http.auth._jwt import jwt as jwt
    from treefold_http.auth._login import (
        current_user as current_user,
        login as login,
        logout as logout,
    )
    from treefold_http.auth._one_of import one_of as one_of
    from treefold_http.auth._password_rules import (
        PasswordRules as PasswordRules,
        WeakPassword as WeakPassword,
    )
    from treefold_http.auth._passwords import (
        PasswordCheck as PasswordCheck,
        ahash_password as ahash_password,
        averify_password as averify_password,
        hash_password as hash_password,
        verify_password as verify_password,
    )

_HOMES = {
    "_allow": "allow",
    "_credential": "Credential Principal identify principal_key",
    "_credentials": "api_key bearer",
    "_issuer": "jwt_issuer",
    "_jwt": "jwt",
    "_login": "current_user login logout",
    "_one_of": "one_of",
    "_password_rules": "PasswordRules WeakPassword",
    "_passwords": "PasswordCheck ahash_password averify_password hash_password verify_password",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    __all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if (home := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
