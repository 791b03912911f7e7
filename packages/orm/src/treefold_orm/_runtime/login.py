"""Try a login at a database: one short connection that belongs to no application.

For `treefold doctor`, which finds this through the extension. Nothing that is said holds a name of
a user or a password.
"""

from __future__ import annotations

import asyncio
from urllib.parse import unquote, urlsplit

from treefold_orm._base.errors import ConfigurationError, ORMError
from treefold_orm._drivers.base import make_statement_operation
from treefold_orm._runtime.connections import make_unregistered_postgres

_MEND = "mend the URL"
_REFUSALS = {
    "28P01": ("refuses the password, or knows no such user", f"{_MEND}, or set a new password"),
    "28000": ("refuses the user, or connections from here", f"{_MEND}, or see its pg_hba.conf"),
    "53300": ("has no connection left", "raise max_connections, or lower pool_size"),
    "57P03": ("does not take connections yet", "wait until it has started"),
}


async def try_login(address: str, *, timeout: float) -> tuple[str, str]:
    """Log in to a PostgreSQL database and leave again.

    Args:
        address: as in the settings.
        timeout: seconds after which one that does not answer counts as unreachable.

    Returns:
        Why it takes no login and what to do, both empty where it takes one.
    """
    try:
        database = make_unregistered_postgres(address, connect_timeout=timeout)
    except ConfigurationError as error:
        return str(error), _MEND
    try:
        async with asyncio.timeout(timeout):
            await database.arun(make_statement_operation("SELECT 1"), write=False, read_only=True)
    except TimeoutError:
        advice = f"see that it is PostgreSQL and not too busy, or {_MEND}"
        return f"takes no login within {timeout:.2g} s", advice
    except ORMError as error:
        return _describe_refusal(error, address)
    finally:
        await database.aclose()
    return "", ""


def _describe_refusal(error: ORMError, address: str) -> tuple[str, str]:
    code: str | None = getattr(error, "code", None)
    if code == "3D000":
        name = unquote(urlsplit(address).path[1:])
        return f"has no database {name!r}", f"make it (createdb {name}), or {_MEND}"
    # neither a code of PostgreSQL nor one of the system: the peer has closed at the first packet,
    # as another kind of server does
    if code is None and str(error).endswith("it was closed"):
        return "answers, but not as PostgreSQL does", f"start it, or {_MEND}"
    return _REFUSALS.get(code or "", (f"takes no login: {error}", _MEND))
