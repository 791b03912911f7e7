"""Draw an arrangement from a seed: the same seed is the same arrangement, on every machine.

Only what a sensible author might write is drawn: sessions are outside of what reads them, a `key=`
names whatever decides the response. The order of all else is any order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from arrangements.arrangement import (
    OWN_GUARDS,
    Access,
    Answer,
    Arrangement,
    CacheKey,
    CacheSite,
    Cover,
    Credential,
    Echo,
    Entry,
    Guard,
    Limit,
    Reading,
    Rule,
    Session,
)
from arrangements.targets import HANDLERS, MOUNTS, Target, segments_of

T = TypeVar("T")

_CACHES: tuple[tuple[frozenset[CacheSite], int], ...] = (
    (frozenset(), 25),
    (frozenset({CacheSite.DECORATOR}), 25),
    (frozenset({CacheSite.LIST}), 18),
    (frozenset({CacheSite.UNDER}), 16),
    (frozenset({CacheSite.DECORATOR, CacheSite.LIST}), 8),
    (frozenset({CacheSite.DECORATOR, CacheSite.UNDER}), 8),
)
_IN_ONE_FIELD = frozenset(
    {
        Credential.BEARER, Credential.JWT, Credential.BASIC, Credential.HEADER_KEY,
        Credential.LANGUAGE, Credential.TENANT,
    }
)  # fmt: skip


def draw_arrangement(seed: int) -> Arrangement:
    """Return the arrangement of a seed."""
    dice = random.Random(f"arrangement {seed}")
    credential = dice.choice(list(Credential))
    reading = dice.choice(_readings_of(credential))
    caches = _pick(dice, _CACHES)
    session = _draw_session(dice, credential)
    guard = dice.choice(list(Guard))
    targets = _draw_targets(dice, guard)
    echoes = _draw_echoes(dice, session, credential)
    cache_key = _draw_cache_key(dice, credential) if caches else CacheKey.NOTHING
    if cache_key is CacheKey.KEY:
        echoes -= {Echo.BODY, Echo.OWNER}
    cover, prefix = _draw_cover(dice, guard, targets)
    limit = _pick(dice, ((Limit.NONE, 50), (Limit.WIDE, 25), (Limit.TIGHT, 25)))
    entries = _draw_entries(
        dice,
        reading=reading,
        caches=caches,
        limit=limit,
        session=session,
        has_guard_entry=guard not in (Guard.NONE, Guard.DEPENDENCY) and cover is not Cover.MODULE,
        has_metrics=Target.METRICS in targets,
    )
    return Arrangement(
        seed=seed,
        credential=credential,
        reading=reading,
        access=dice.choice(list(Access)),
        is_plain=not {Echo.BODY, Echo.GREETING} & echoes and dice.random() < 0.3,
        guard=guard,
        rule=dice.choice(list(Rule)),
        cover=cover,
        prefix=prefix,
        is_mistyped=_draw_mistake(dice, cover, entries, prefix, targets),
        caches=caches,
        cached_prefix=_draw_cached_prefix(dice, targets),
        cache_key=cache_key,
        cache_redis=dice.random() < 0.35,
        limit=limit,
        limit_redis=dice.random() < 0.35,
        session=session,
        targets=targets,
        echoes=echoes,
        answer=_draw_answer(dice, is_cached=bool(caches)),
        entries=_put_sessions_outside(dice, entries, guard, is_key=cache_key is CacheKey.KEY),
    )


def _pick(dice: random.Random, weighted: Sequence[tuple[T, int]]) -> T:
    values, weights = zip(*weighted, strict=True)
    return dice.choices(values, weights)[0]


def _readings_of(credential: Credential) -> Sequence[Reading]:
    if credential is Credential.NONE:
        return [Reading.REQUEST]
    if credential is Credential.ADDRESS:
        return [reading for reading in Reading if reading is not Reading.DECLARED]
    return list(Reading)


def _draw_session(dice: random.Random, credential: Credential) -> Session:
    stores = [Session.COOKIE, Session.MEMORY, Session.REDIS]
    if credential is Credential.SESSION or dice.random() < 0.35:
        return dice.choice(stores)
    return Session.NONE


def _draw_targets(dice: random.Random, guard: Guard) -> tuple[Target, ...]:
    others = [target for target in Target if target is not Target.ROUTE]
    drawn = {Target.ROUTE, *dice.sample(others, dice.randint(2, 4))}
    if guard is Guard.CSRF:
        drawn.add(Target.POST)
    if guard in OWN_GUARDS and dice.random() < 0.5:
        drawn.add(Target.SOCKET)
    return tuple(target for target in Target if target in drawn)


def _draw_echoes(dice: random.Random, session: Session, credential: Credential) -> frozenset[Echo]:
    drawn = {echo for echo in Echo if dice.random() < 0.2}
    if session is Session.NONE or credential is Credential.SESSION:
        drawn.discard(Echo.OWNER)
    return frozenset(drawn)


def _draw_cache_key(dice: random.Random, credential: Credential) -> CacheKey:
    ways = [CacheKey.NOTHING, CacheKey.NOTHING]
    if credential is not Credential.NONE:
        ways.append(CacheKey.KEY)
    if credential in _IN_ONE_FIELD:
        ways.append(CacheKey.VARY)
    return dice.choice(ways)


def _draw_cover(
    dice: random.Random, guard: Guard, targets: Sequence[Target]
) -> tuple[Cover, tuple[str, ...]]:
    covers = [Cover.LIST, Cover.UNDER, Cover.UNDER]
    if guard in OWN_GUARDS - {Guard.WEBSOCKET} or guard is Guard.ALLOWLIST:
        covers.append(Cover.MODULE)
    cover = dice.choice(covers)
    if guard is Guard.CSRF:
        guarded = Target.POST
    else:
        guarded = dice.choice([each for each in targets if each is not Target.UNKNOWN])
    segments = segments_of(guarded)
    # one segment of a version covers all of it, which a list does too
    least = 2 if guarded in HANDLERS else 1
    prefix = list(segments[: dice.randint(least, len(segments))])
    if len(prefix) > 1 and dice.random() < 0.35:
        prefix[dice.randrange(len(prefix) - 1)] = "*"
    return cover, tuple(prefix)


def _draw_cached_prefix(dice: random.Random, targets: Sequence[Target]) -> tuple[str, ...]:
    """Return mostly the area of the handlers, sometimes a mount."""
    mounts = [segments_of(target)[:1] for target in targets if target in MOUNTS]
    if mounts and dice.random() < 0.3:
        return dice.choice(mounts)
    return segments_of(Target.ROUTE)[:2]


def _draw_mistake(
    dice: random.Random,
    cover: Cover,
    entries: Sequence[Entry],
    prefix: Sequence[str],
    targets: Sequence[Target],
) -> bool:
    """Return True for a typing error in the prefix of the guard, where it can be known for one.

    Nobody but a mounted application knows what it serves below its own prefix.
    """
    applications = {segments_of(each)[0] for each in (Target.MOUNT, Target.INNER)}
    if {Target.MOUNT, Target.INNER} & set(targets):
        applications.add("*")
    is_known = len(prefix) == 1 or prefix[0] not in applications
    is_used = cover is Cover.UNDER and Entry.GUARD in entries
    return dice.random() < 0.08 and is_used and is_known


def _draw_answer(dice: random.Random, *, is_cached: bool) -> Answer:
    ways = [(Answer.TABLE, 5), (Answer.RESPONSE, 4)]
    return _pick(dice, ways if is_cached else [*ways, (Answer.SHARED, 2)])


def _draw_entries(
    dice: random.Random,
    *,
    reading: Reading,
    caches: frozenset[CacheSite],
    limit: Limit,
    session: Session,
    has_guard_entry: bool,
    has_metrics: bool,
) -> list[Entry]:
    drawn = {
        Entry.SESSIONS: session is not Session.NONE,
        Entry.CACHE_LIST: CacheSite.LIST in caches,
        Entry.CACHE_UNDER: CacheSite.UNDER in caches,
        Entry.LIMIT: limit is not Limit.NONE,
        Entry.GUARD: has_guard_entry,
        Entry.IDENTITY: reading in (Reading.STATE, Reading.CONTEXT),
        Entry.STAMP: dice.random() < 0.35,
        Entry.METRICS: has_metrics,
        Entry.SECURITY_HEADERS: dice.random() < 0.15,
        Entry.GZIP: dice.random() < 0.15,
    }
    entries = [entry for entry, is_drawn in drawn.items() if is_drawn]
    dice.shuffle(entries)
    return entries


def _put_sessions_outside(
    dice: random.Random, entries: list[Entry], guard: Guard, *, is_key: bool
) -> tuple[Entry, ...]:
    """Move sessions outside of what reads them; a `CSRF` before them is left in now and then."""
    readers = {Entry.IDENTITY}
    if is_key:
        readers |= {Entry.CACHE_LIST, Entry.CACHE_UNDER}
    if guard is Guard.CSRF and dice.random() < 0.9:
        readers.add(Entry.GUARD)
    if Entry.SESSIONS in entries:
        entries.remove(Entry.SESSIONS)
        first = min((entries.index(each) for each in readers & set(entries)), default=len(entries))
        entries.insert(dice.randint(0, first), Entry.SESSIONS)
    return tuple(entries)
