"""Authentication: the public names of `treefold_http.auth`."""

from typing import TYPE_CHECKING, Any

import treefold_http.auth as _auth
from treefold_http.auth import __all__ as __all__

if TYPE_CHECKING:
    from treefold_http.auth import (
        PasswordCheck as PasswordCheck,
        ahash_password as ahash_password,
        api_key as api_key,
        averify_password as averify_password,
        bearer as bearer,
        current_user as current_user,
        hash_password as hash_password,
        jwt as jwt,
        login as login,
        logout as logout,
        verify_password as verify_password,
    )


def __getattr__(name: str) -> Any:
    return getattr(_auth, name)
