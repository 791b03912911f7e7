"""The judge of arrangements finds each kind of hole, and nothing in what is right."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from arrangements.arrangement import (
    Answer,
    Arrangement,
    CacheKey,
    Cover,
    Credential,
    Entry,
    Guard,
    Limit,
    Reading,
    Rule,
    Session,
)
from arrangements.clients import ANN, BOB, OUTSIDE, STRANGER, Client, clients_of
from arrangements.drawing import draw_arrangement
from arrangements.judging import Judge, Kind, Limits
from arrangements.messages import Received, Sent
from arrangements.oracle import LimitCount, Reach, decide, is_guarded
from arrangements.targets import Target, path_of
from arrangements.traffic import Step

PLAIN = replace(
    draw_arrangement(0),
    credential=Credential.HEADER_KEY,
    reading=Reading.DECLARED,
    guard=Guard.ALLOWLIST,
    rule=Rule.PEER,
    cover=Cover.LIST,
    caches=frozenset(),
    cache_key=CacheKey.NOTHING,
    limit=Limit.NONE,
    session=Session.NONE,
    targets=(Target.ROUTE, Target.SOCKET, Target.DOCS, Target.METRICS),
    echoes=frozenset(),
    answer=Answer.TABLE,
    entries=(Entry.GUARD, Entry.METRICS),
)
MALLORY = Client(name="mallory", caller="ann", address=OUTSIDE)
PRIVATE = [("cache-control", "private"), ("vary", "X-Api-Key")]
REFUSED = Received(status=403, fields=[], body=b"")


def respond(
    who: str | None, *fields: tuple[str, str], status: int = 200, target: str = "thing"
) -> Received:
    body = json.dumps({"target": target, "who": who, "made": "thing-1"}).encode()
    return Received(status=status, fields=[*PRIVATE, *fields], body=body)


def judge_all(
    responses: Sequence[tuple[Client, Target, Received]],
    *,
    arrangement: Arrangement = PLAIN,
    limits: Limits | None = None,
) -> set[Kind]:
    judge = Judge(arrangement, is_socket_named=False)
    for client, target, received in responses:
        path = path_of(target)
        sent = Sent(method="GET", path=path, query="", host="", address=client.address, fields=[])
        judge.judge(
            Step(client=client, target=target, path=path),
            sent,
            received,
            jar=client.name,
            is_late=False,
            limits=limits or Limits(),
        )
    return {finding.kind for finding in judge.findings}


def test_right_responses_are_no_findings() -> None:
    responses = [
        (ANN, Target.ROUTE, respond("ann", ("set-cookie", "a=1"))),
        (BOB, Target.ROUTE, respond("bob", ("set-cookie", "a=2"))),
        (STRANGER, Target.ROUTE, Received(status=401, fields=[], body=b"")),
        (MALLORY, Target.ROUTE, REFUSED),
        (MALLORY, Target.SOCKET, REFUSED),
        (ANN, Target.SOCKET, respond("ann", status=101, target="live")),
    ]
    assert judge_all(responses) == set()


@pytest.mark.parametrize(
    ("responses", "kind"),
    [
        ([(ANN, Target.ROUTE, respond("bob"))], Kind.LEAK),
        ([(ANN, Target.DOCS, respond("ann"))], Kind.LEAK),
        ([(STRANGER, Target.ROUTE, respond("ann"))], Kind.PAST),
        ([(MALLORY, Target.ROUTE, respond("ann"))], Kind.PAST),
        ([(MALLORY, Target.METRICS, respond("ann"))], Kind.PAST),
        ([(MALLORY, Target.SOCKET, respond("ann", status=101, target="live"))], Kind.SOCKET),
        ([(ANN, Target.ROUTE, respond("ann", ("x-stamp", "tag-of-bob")))], Kind.FIELD),
        ([(ANN, Target.ROUTE, respond("ann", ("content-encoding", "gzip")))], Kind.FIELD),
        (
            [
                (each, Target.ROUTE, respond(each.name, ("set-cookie", "a=1")))
                for each in (ANN, BOB)
            ],
            Kind.COOKIE,
        ),
        (
            [(ANN, Target.ROUTE, replace(respond("ann"), fields=[("vary", "X-Api-Key")]))],
            Kind.SHAREABLE,
        ),
        ([(ANN, Target.ROUTE, replace(respond("ann"), fields=PRIVATE[:1]))], Kind.SHAREABLE),
        ([(ANN, Target.ROUTE, REFUSED)], Kind.DENIED),
        ([(ANN, Target.ROUTE, Received(status=500, fields=[], body=b""))], Kind.FAILED),
    ],
)
def test_each_kind_of_hole_is_found(
    responses: Sequence[tuple[Client, Target, Received]], kind: Kind
) -> None:
    assert judge_all(responses) == {kind}


def test_a_request_above_its_limit_is_found() -> None:
    responses = [(ANN, Target.ROUTE, respond("ann"))]
    assert judge_all(responses, limits=Limits(must_refuse=True, may_refuse=True)) == {Kind.PAST}


def test_a_limit_counts_what_reaches_it() -> None:
    count = LimitCount(replace(PLAIN, limit=Limit.TIGHT))
    for _ in range(8):
        assert not count.must_refuse(ANN, Reach.ALWAYS)
        count.add(ANN, Reach.ALWAYS)
    assert count.must_refuse(ANN, Reach.ALWAYS)
    assert not count.must_refuse(BOB, Reach.ALWAYS)


@pytest.mark.parametrize(
    ("changes", "guarded"),
    [
        ({"cover": Cover.LIST}, {Target.ROUTE, Target.SOCKET, Target.DOCS, Target.METRICS}),
        (
            {"cover": Cover.LIST, "entries": (Entry.METRICS, Entry.GUARD)},
            {Target.ROUTE, Target.SOCKET, Target.DOCS},
        ),
        ({"cover": Cover.UNDER, "prefix": ("docs",)}, {Target.DOCS}),
        ({"cover": Cover.UNDER, "prefix": ("*", "private")}, {Target.ROUTE, Target.SOCKET}),
        ({"cover": Cover.MODULE}, {Target.ROUTE}),
        ({"guard": Guard.WEBSOCKET}, {Target.SOCKET}),
        ({"guard": Guard.NONE}, set[Target]()),
    ],
)
def test_a_guard_is_where_the_arrangement_puts_it(
    changes: Mapping[str, Any], guarded: set[Target]
) -> None:
    arrangement = replace(PLAIN, **changes)
    assert {each for each in PLAIN.targets if is_guarded(arrangement, each)} == guarded


def test_the_same_seed_is_the_same_arrangement() -> None:
    assert draw_arrangement(7) == draw_arrangement(7)
    assert len({draw_arrangement(seed).entries for seed in range(50)}) > 20


def test_a_copy_of_a_signed_cookie_outlives_the_logout() -> None:
    by_cookie = replace(PLAIN, credential=Credential.SESSION, session=Session.COOKIE)
    by_store = replace(by_cookie, session=Session.MEMORY)
    (dora,) = (each for each in clients_of(by_cookie) if each.caller == "dora")
    assert not decide(by_cookie, dora, Target.ROUTE, is_late=True).refusals
    assert decide(by_store, dora, Target.ROUTE, is_late=True).refusals == {401}
