"""Who may do what: the scopes of each role, and the credentials that routes ask for."""

import hashlib
import secrets
from typing import Annotated

from Models.people import Caller, Integration, Role, User
from treefold import Depends
from treefold.auth import Principal, allow, api_key, bearer, current_user, one_of

CUSTOMER = ["ticket:read", "ticket:open", "comment:write"]
AGENT = ["ticket:read", "ticket:triage", "comment:write", "note", "people:read", "export"]
SCOPES = {
    Role.CUSTOMER: CUSTOMER,
    Role.AGENT: AGENT,
    Role.ADMIN: [*AGENT, "people:write"],
}


def make_secret() -> tuple[str, str]:
    """Return a new token or key, and its digest, which is all that is stored."""
    secret = secrets.token_urlsafe(32)
    return secret, digest(secret)


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


async def find_user(id: int) -> User | None:
    return await User.objects.filter(id=id, active=True).afirst()


async def find_token_user(token: str) -> User | None:
    return await User.objects.filter(tokens__digest=digest(token), active=True).afirst()


async def find_integration(key: str) -> Integration | None:
    return await Integration.objects.filter(digest=digest(key)).afirst()


def identify_user(user: User) -> Principal:
    return Principal(user.id, roles=[user.role], scopes=SCOPES[Role(user.role)])


def identify_integration(integration: Integration) -> Principal:
    return Principal(integration.id, scopes=["ticket:read", "ticket:open"])


session = current_user(find_user, identify=identify_user)
token = bearer(find_token_user, identify=identify_user)
key = api_key(find_integration, identify=identify_integration)
person = one_of(session, token)
anyone = one_of(session, key, token)

Person = Annotated[User, Depends(person)]
Reader = Annotated[Caller, Depends(allow("ticket:read", by=anyone))]
Opener = Annotated[Caller, Depends(allow("ticket:open", by=anyone))]
Commenter = Annotated[Caller, Depends(allow("comment:write", by=anyone))]
Triager = Annotated[Caller, Depends(allow("ticket:triage", by=anyone))]
Noter = Annotated[Caller, Depends(allow("note", by=anyone))]
Exporter = Annotated[User, Depends(allow("export", by=person))]
PeopleReader = Annotated[Caller, Depends(allow("people:read", by=anyone))]
Admin = Annotated[Caller, Depends(allow(roles=[Role.ADMIN], by=anyone))]
