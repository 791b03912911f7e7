"""The source of `Services/people.py`: the module of a project that knows who calls."""

from __future__ import annotations

from arrangements.arrangement import Access, Credential, Reading
from arrangements.clients import PEOPLE, SECRET, key_of

_IDENTIFY = {
    Credential.NONE: 'return "-"',
    Credential.BEARER: 'return find(take_after(connection, "Bearer "))',
    Credential.JWT: 'return find_claims(take_after(connection, "Bearer "))',
    Credential.BASIC: 'return find_basic(read_field(connection, "authorization", ""))',
    Credential.HEADER_KEY: 'return find(read_field(connection, "x-api-key"))',
    Credential.QUERY_KEY: 'return find(connection.query.get("api_key"))',
    Credential.COOKIE_KEY: 'return find(connection.cookies.get("api_key"))',
    Credential.SESSION: "return find_name(connection.session.user)",
    Credential.ADDRESS: "return connection.client.host",
    Credential.LANGUAGE: 'return read_field(connection, "accept-language", "-")',
    Credential.TENANT: 'return read_field(connection, "x-tenant", "-")',
}

_SHIPPED = {
    Credential.BEARER: "caller = bearer(find_slowly)",
    Credential.HEADER_KEY: "caller = api_key(find_slowly)",
    Credential.SESSION: "caller = current_user(find_user)",
    Credential.JWT: """
claims = jwt_claims(SECRET, algorithm="HS256")


async def caller(token: dict = Depends(claims)) -> str:
    return require(find_name(token["sub"]))
""",
}

_PEOPLE = '''
"""Who calls: keys, tokens and sessions; no other module of the project knows them."""
import base64
from contextvars import ContextVar
from pathlib import Path

import jwt
from treefold import Depends, Request, Unauthorized
from treefold.auth import api_key, bearer, current_user, jwt as jwt_claims

NAMES = {names!r}
SECRET = {secret!r}
REVOKED = Path(__file__).parent.parent / "revoked.txt"
CALLER: ContextVar[str | None] = ContextVar("CALLER", default=None)


def find_name(name):
    known = name in NAMES.values() and name not in REVOKED.read_text().split()
    return name if known else None


def find(key):
    return find_name(NAMES.get(key))


async def find_slowly(key: str) -> str | None:
    return find(key)


async def find_user(name: str) -> str | None:
    return find_name(name)


def find_basic(sent):
    try:
        name, _, key = base64.b64decode(sent.removeprefix("Basic ")).decode().partition(":")
    except ValueError:
        return None
    return find(key) if NAMES.get(key) == name else None


def find_claims(token):
    try:
        return find_name(jwt.decode(token or "", SECRET, algorithms=["HS256"])["sub"])
    except jwt.PyJWTError:
        return None


def read_field(connection, name, default=None):
    {access}


def take_after(connection, word):
    field = read_field(connection, "authorization", "")
    return field.removeprefix(word) if field.startswith(word) else None


def identify(connection):
    {identify}


def require(name: str | None) -> str:
    if name is None:
        raise Unauthorized("Say who you are")
    return name


def name_key(request):
    who = identify(request)
    return None if who is None else f"{{who}} {{request.raw_path}} {{request.query.multi_items()}}"


async def find_caller(request: Request) -> str | None:
    return identify(request)


async def who_calls(request: Request) -> str:
    return require(identify(request))


{shipped}
'''

_STATE = """
class Caller:
    def __init__(self, name):
        self.name = name


async def note_caller(request, call_next):
    request.state.caller = Caller(identify(request))
    return await call_next(request)


class NoteCaller:
    def before(self, request):
        request.state.caller = Caller(identify(request))
"""

_CONTEXT = """
async def note_caller(request, call_next):
    CALLER.set(identify(request))
    return await call_next(request)


class NoteCaller:
    def before(self, request):
        CALLER.set(identify(request))
"""


_ACCESS = {
    Access.GET: "return connection.headers.get(name, default)",
    Access.ITEM: "return connection.headers[name] if name in connection.headers else default",
    Access.ALL: "return dict(connection.headers.items()).get(name, default)",
    Access.SCOPE: """
    fields = dict(connection.scope["headers"])
    return fields[name.encode()].decode() if name.encode() in fields else default
""",
}


def write_people(credential: Credential, reading: Reading, access: Access = Access.GET) -> str:
    """Return the module that identifies callers by a credential."""
    return _PEOPLE.format(
        names={key_of(name): name for name in PEOPLE},
        secret=SECRET,
        access=_ACCESS[access].strip(),
        identify=_IDENTIFY[credential],
        shipped=_SHIPPED.get(credential, ""),
    ) + (_CONTEXT if reading is Reading.CONTEXT else _STATE)


def is_shipped(credential: Credential) -> bool:
    """Return True if the framework brings a dependency for a credential."""
    return credential in _SHIPPED
