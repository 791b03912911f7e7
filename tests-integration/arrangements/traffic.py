"""The requests of an arrangement: each client asks for each target more than once, in any order.

Some go at the same time. After the first round a caller is revoked and another one logs out; then
they ask again. Nothing here knows what is right.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from arrangements.arrangement import Arrangement, Echo
from arrangements.clients import Client, clients_of
from arrangements.targets import Target, path_of, spell_path

_PAIRS = (("a", "1"), ("b", "2"), ("a", "3"))
_MOST_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of a client.

    Attributes:
        is_spelled: the path is not written as everybody writes it.
        has_copy: the client says that it has some response already.
        pairs: of the query.
    """

    client: Client
    target: Target
    path: str
    is_spelled: bool = False
    has_copy: bool = False
    pairs: Sequence[tuple[str, str]] = ()
    body: bytes = b""


Batches = Sequence[Sequence[Step]]


@dataclass(frozen=True, slots=True)
class Traffic:
    """The requests before and after the revocation, in groups that are sent at the same time."""

    early: Batches
    late: Batches


def plan_traffic(arrangement: Arrangement) -> Traffic:
    """Return the requests of an arrangement, the same for each call."""
    dice = random.Random(f"traffic {arrangement.seed}")
    early: list[Step] = []
    late: list[Step] = []
    for client in clients_of(arrangement):
        for target in arrangement.targets:
            plain = _plain_step(arrangement, client, target)
            early += [plain, plain]
            late.append(plain)
            if target is not Target.SOCKET and dice.random() < 0.5:
                early.append(_varied_step(arrangement, client, target, dice))
    return Traffic(early=_cut(early, dice), late=_cut(late, dice))


def _plain_step(arrangement: Arrangement, client: Client, target: Target) -> Step:
    is_plain_get = target is not Target.SOCKET
    return Step(
        client=client,
        target=target,
        path=path_of(target),
        pairs=_PAIRS if Echo.QUERY in arrangement.echoes else (),
        body=b"a body" if Echo.BODY in arrangement.echoes and is_plain_get else b"",
    )


def _varied_step(
    arrangement: Arrangement, client: Client, target: Target, dice: random.Random
) -> Step:
    """Return a request for the same that is written in another way."""
    pairs, body = list(_PAIRS), f"a body of {client.name}".encode()
    dice.shuffle(pairs)
    return Step(
        client=client,
        target=target,
        path=spell_path(target, dice),
        is_spelled=True,
        has_copy=dice.random() < 0.3,
        pairs=pairs if Echo.QUERY in arrangement.echoes else (),
        body=body if Echo.BODY in arrangement.echoes else b"",
    )


def _cut(steps: list[Step], dice: random.Random) -> Batches:
    dice.shuffle(steps)
    batches: list[Sequence[Step]] = []
    while steps:
        size = dice.randint(1, _MOST_AT_ONCE)
        batches.append(steps[:size])
        del steps[:size]
    return batches
