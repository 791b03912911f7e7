"""No `compatible` that a value refutes, on random pairs of types, and few false alarms.

`TREEFOLD_CONTRACT_PAIRS` sets the number of pairs; `hatch run contract-pairs` takes 20,000.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

from small_domains import MOST, Oracle, TypeDrawer

from treefold_contract import (
    Answer,
    Body,
    Lock,
    RouteFacts,
    Segment,
    Side,
    TypeNode,
    compare_types,
    diff_locks,
    write_type,
)

PAIRS = int(os.environ.get("TREEFOLD_CONTRACT_PAIRS", "1000"))


@dataclass
class Tally:
    """What was found on all pairs."""

    judged: int = 0
    alarms: int = 0
    unknown: int = 0
    false_alarms: list[str] = field(default_factory=list[str])
    refuted: list[str] = field(default_factory=list[str])
    wrong_witnesses: list[str] = field(default_factory=list[str])
    without_witness: int = 0

    def judge(self, drawer: TypeDrawer, old: TypeNode, new: TypeNode, side: Side) -> None:
        oracle = Oracle(side, drawer.definitions)
        found = compare_types(
            old,
            new,
            side=side,
            old_definitions=drawer.definitions,
            new_definitions=drawer.definitions,
        )
        values = oracle.sent(old)
        if len(values) > MOST:
            return
        self.judged += 1
        title = f"{side} {write_type(old)} -> {write_type(new)} {drawer.definitions}"
        refused = [value for value in values if not oracle.accepts(new, value)]
        keeps = found.relation in ("equal", "wider")
        if keeps and refused:
            self.refuted.append(f"{title}: {json.dumps(refused[0])}")
        if found.relation == "unknown":
            self.unknown += 1
        if found.relation in ("narrower", "incomparable"):
            self.alarms += 1
            if not refused:
                self.false_alarms.append(title)
            elif found.lost is None:
                self.without_witness += 1
        if found.lost and oracle.accepts(new, found.lost.value):
            self.wrong_witnesses.append(f"{title}: {found.lost}")


def test_no_verdict_is_refuted_by_a_value() -> None:
    tally = Tally()
    for seed in range(PAIRS):
        drawer = TypeDrawer(seed)
        old = drawer.draw_type()
        new = drawer.mutate_node(old) if seed % 4 else drawer.draw_type()
        tally.judge(drawer, old, new, "request" if seed % 2 else "response")
    print(
        f"{tally.judged} pairs, {tally.alarms} breaking, {len(tally.false_alarms)} false alarms,"
        f" {tally.without_witness} without a witness, {tally.unknown} unknown"
    )
    assert tally.refuted == []
    assert tally.wrong_witnesses == []
    assert tally.judged > PAIRS * 0.8
    assert len(tally.false_alarms) <= tally.alarms * 0.05
    assert tally.without_witness <= tally.alarms * 0.05
    assert tally.unknown <= tally.judged * 0.02


@dataclass
class Verdicts:
    """The verdicts of `diff_locks`, beside the values that clients and the service exchange."""

    judged: int = 0
    breaking: int = 0
    refuted: list[str] = field(default_factory=list[str])
    false_alarms: list[str] = field(default_factory=list[str])

    def judge(self, drawer: TypeDrawer, old: TypeNode, new: TypeNode, side: Side) -> None:
        oracle = Oracle(side, drawer.definitions)
        writer, reader = (old, new) if side == "request" else (new, old)
        values = oracle.sent(writer)
        if len(values) > MOST:
            return
        found = diff_locks(*(build_lock(drawer, node, side) for node in (old, new)))
        verdict = found[0].verdict if found else "compatible"
        refused = [value for value in values if not oracle.accepts(reader, value)]
        title = f"{side} {write_type(old)} -> {write_type(new)} {drawer.definitions} {found}"
        self.judged += 1
        if refused and verdict in ("compatible", "source"):
            self.refuted.append(f"{title}: {json.dumps(refused[0])}")
        if verdict == "breaking":
            self.breaking += 1
            if not refused:
                self.false_alarms.append(title)


def build_lock(drawer: TypeDrawer, node: TypeNode, side: Side) -> Lock:
    path = (Segment("x"),)
    bodies = (Body("json", node),) if side == "request" else ()
    answers = (Answer("200", "json", node),) if side == "response" else ()
    route = RouteFacts("POST", path, bodies=bodies, answers=answers)
    return Lock(routes=(route,), definitions=dict(drawer.definitions))


def test_no_finding_is_refuted_by_a_value() -> None:
    verdicts = Verdicts()
    for seed in range(PAIRS // 2):
        drawer = TypeDrawer(-1 - seed)
        old = drawer.draw_type()
        new = drawer.mutate_node(old) if seed % 4 else drawer.draw_type()
        verdicts.judge(drawer, old, new, "request" if seed % 2 else "response")
    print(
        f"{verdicts.judged} pairs of locks, {verdicts.breaking} breaking,"
        f" {len(verdicts.false_alarms)} false alarms"
    )
    assert verdicts.refuted == []
    assert len(verdicts.false_alarms) <= verdicts.breaking * 0.05
