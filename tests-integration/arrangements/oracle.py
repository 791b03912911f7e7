"""Who may see what: computed from the arrangement alone, never from the framework's code.

`decide` says what one request is due: the statuses with which it must be refused, or the caller
that the body has to name. A cache changes nothing of it: a kept response is right where the handler
would have made the same one for this client. Two things need more than the request itself: a
revocation, which an author who checks inside of his cache learns of late (`may_be_late`), and a
limit, which counts (`LimitCount`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum

from arrangements.arrangement import (
    TIGHT_BURST,
    UNVERIFIED,
    Arrangement,
    CacheSite,
    Cover,
    Credential,
    Entry,
    Guard,
    Limit,
    Reading,
    Session,
)
from arrangements.clients import (
    LANGUAGES,
    OUTSIDE,
    PEOPLE,
    Client,
    is_refused_client,
    tenant_of,
)
from arrangements.targets import HANDLERS, THINGS, Target, is_below


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What a request may get.

    Attributes:
        refusals: the statuses of which it must get one; empty if it must be answered.
        who: the caller that the body must name; None where it names nobody.
        may_be_late: an own response of before the revocation is no leak.
    """

    refusals: frozenset[int]
    who: str | None
    may_be_late: bool = False


def decide(arrangement: Arrangement, client: Client, target: Target, *, is_late: bool) -> Due:
    """Return what a request is due.

    Args:
        is_late: after the revocation and the logout.
    """
    refusals: set[int] = set()
    if is_refused_client(client) and is_guarded(arrangement, target):
        refusals.add(400 if arrangement.guard is Guard.HOSTS else 403)
    if target is Target.METRICS and client.address == OUTSIDE:
        refusals.add(404)
    if target is Target.UNKNOWN:
        return Due(refusals=frozenset(refusals or {404}), who=None)
    who = identify_caller(arrangement, client, target)
    may_be_late = False
    if who is None and _needs_caller(target):
        refusals.add(401)
    elif is_late and target in HANDLERS and is_gone(arrangement, client):
        may_be_late = not refusals and _may_learn_late(arrangement, client, target)
        refusals.add(401)
    return Due(refusals=frozenset(refusals), who=who, may_be_late=may_be_late)


def must_be_private(arrangement: Arrangement, target: Target) -> bool:
    """Return True if a cache between client and server must not give a response to others.

    The credential is a field that such caches do not know, and the handler declares it.
    """
    declares = arrangement.reading is Reading.DECLARED
    is_own_field = arrangement.credential is Credential.HEADER_KEY
    return declares and is_own_field and target in HANDLERS - {Target.SOCKET}


def is_guarded(arrangement: Arrangement, target: Target) -> bool:
    """Return True if the guard of the arrangement is there for a target."""
    guard = arrangement.guard
    if guard is Guard.NONE or (guard is Guard.CSRF and target is not Target.POST):
        return False
    if guard is Guard.WEBSOCKET and target is not Target.SOCKET:
        return False
    if guard is Guard.DEPENDENCY:
        return target in HANDLERS
    if arrangement.cover is Cover.MODULE:
        return target in THINGS
    if arrangement.cover is Cover.UNDER:
        return not arrangement.is_mistyped and is_below(arrangement.prefix, target)
    if target is Target.METRICS:  # `Metrics` answers where it stands in the list
        return arrangement.has_before(Entry.GUARD, Entry.METRICS)
    return target is not Target.PROBE  # probes are outside of the project's middleware


def _needs_caller(target: Target) -> bool:
    return target in HANDLERS or target in (Target.MOUNT, Target.INNER)


def identify_caller(arrangement: Arrangement, client: Client, target: Target) -> str | None:
    """Return the name by which a target knows a client; None for a client it cannot know."""
    credential = arrangement.credential
    if target is Target.MOUNT:
        return client.caller
    if not _needs_caller(target):
        return None
    if target is Target.INNER and credential is Credential.SESSION:
        credential = Credential.TENANT  # it has no sessions of its own
    match credential:
        case Credential.NONE:
            return "-"
        case Credential.ADDRESS:
            return client.address
        case Credential.LANGUAGE:
            return "-" if client.caller is None else LANGUAGES[client.caller]
        case Credential.TENANT:
            return "-" if client.caller is None else tenant_of(client.caller)
        case _:
            return client.caller if client.caller in PEOPLE else None


def is_gone(arrangement: Arrangement, client: Client) -> bool:
    """Return True for a client that has been revoked, or whose session has been ended."""
    if arrangement.credential in UNVERIFIED:
        return False
    if client.caller == "dora":  # a copy of a signed cookie stays valid, as the guide says
        return arrangement.session is not Session.COOKIE
    return client.caller == "rex"


def caches_around(arrangement: Arrangement, target: Target) -> frozenset[CacheSite]:
    """Return the caches of the author that a target lies in."""
    found: set[CacheSite] = set()
    caches = arrangement.caches
    if CacheSite.LIST in caches and target is not Target.PROBE:
        found.add(CacheSite.LIST)
    if CacheSite.UNDER in caches and is_below(arrangement.cached_prefix, target):
        found.add(CacheSite.UNDER)
    if CacheSite.DECORATOR in caches and target in THINGS:
        found.add(CacheSite.DECORATOR)
    return frozenset(found)


def _may_learn_late(arrangement: Arrangement, client: Client, target: Target) -> bool:
    """Return True if the author himself looks up the caller inside of his cache."""
    if not caches_around(arrangement, target) or client.caller == "dora":
        return False
    if arrangement.reading is Reading.DECLARED:
        shipped = (Credential.BEARER, Credential.HEADER_KEY, Credential.SESSION)
        return arrangement.credential not in shipped
    if arrangement.reading is Reading.STATE:
        outside = (Entry.CACHE_LIST, Entry.CACHE_UNDER)
        return any(arrangement.has_before(cache, Entry.IDENTITY) for cache in outside)
    return True


class Reach(Enum):
    """How far a request gets."""

    NEVER = 0
    PERHAPS = 1
    ALWAYS = 2


def reaches_limit(arrangement: Arrangement, client: Client, target: Target) -> Reach:
    """Return whether the limit counts a request that is spelled plainly."""
    if arrangement.limit is Limit.NONE or target is Target.PROBE:
        return Reach.NEVER
    if target is Target.METRICS and arrangement.has_before(Entry.METRICS, Entry.LIMIT):
        return Reach.NEVER
    is_refused = is_refused_client(client) and is_guarded(arrangement, target)
    if is_refused and arrangement.has_before(Entry.GUARD, Entry.LIMIT):
        return Reach.PERHAPS if target is Target.SOCKET else Reach.NEVER
    sites = {Entry.CACHE_LIST: CacheSite.LIST, Entry.CACHE_UNDER: CacheSite.UNDER}
    around = caches_around(arrangement, target)
    for entry, site in sites.items():
        if site in around and arrangement.has_before(entry, Entry.LIMIT):
            return Reach.PERHAPS
    return Reach.ALWAYS


class LimitCount:
    """The requests of each address that a tight limit has counted, at least and at most."""

    def __init__(self, arrangement: Arrangement) -> None:
        self._is_tight = arrangement.limit is Limit.TIGHT
        self._least: Counter[str] = Counter()
        self._most: Counter[str] = Counter()

    def must_refuse(self, client: Client, reach: Reach) -> bool:
        """Return True if a request that is counted has to be refused with 429."""
        full = self._least[client.address] >= TIGHT_BURST
        return self._is_tight and reach is Reach.ALWAYS and full

    def may_refuse(self, client: Client, reach: Reach, others: int) -> bool:
        """Return True if a 429 is right.

        Args:
            others: requests of the same address that are sent at the same time.
        """
        full = self._most[client.address] + others >= TIGHT_BURST
        return self._is_tight and reach is not Reach.NEVER and full

    def add(self, client: Client, reach: Reach) -> None:
        """Count a request."""
        self._most[client.address] += reach is not Reach.NEVER
        self._least[client.address] += reach is Reach.ALWAYS
