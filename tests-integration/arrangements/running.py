"""Run one arrangement: write its project, start it, send the traffic, and judge the responses."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from arrangements.arrangement import Arrangement, Credential, Session
from arrangements.clients import (
    DORA,
    PEOPLE,
    REX,
    Client,
    clients_of,
    fields_of,
    is_refused_client,
    query_of,
)
from arrangements.drawing import draw_arrangement
from arrangements.in_process import InProcess, StartRefused
from arrangements.judging import Finding, Judge, Kind, Limits
from arrangements.messages import Received, Sent, Transport
from arrangements.oracle import LimitCount, Reach, reaches_limit
from arrangements.project import write_files
from arrangements.targets import Target, method_of
from arrangements.traffic import Batches, Step, plan_traffic
from treefold import Application
from treefold.logging import flush

HANG = 5.0
"""Seconds after which a request counts as never answered."""


@dataclass(slots=True)
class Outcome:
    """What came of one arrangement.

    Attributes:
        refusal: why it did not boot; None if it did.
        is_cached: the author keeps responses.
        hits: responses that came from the cache.
    """

    seed: int
    refusal: str | None = None
    is_cached: bool = False
    hits: int = 0
    requests: int = 0
    findings: list[Finding] = field(default_factory=list[Finding])


async def run_arrangement(seed: int, root: Path, *, redis: str, parser: str | None) -> Outcome:
    """Run the arrangement of a seed in a folder.

    Args:
        parser: `h11` or `httptools` for the server of `treefold serve`, None for no server.
    """
    arrangement = draw_arrangement(seed)
    outcome = Outcome(seed, is_cached=bool(arrangement.caches))
    for name, text in write_files(arrangement, redis).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    app = Application(root)
    try:
        running = await _start(app, parser)
    except Exception as error:
        outcome.refusal = str(error)
        return outcome
    if arrangement.is_mistyped:
        text = f"under a prefix that covers nothing: /{'/'.join(arrangement.prefix)}x"
        outcome.findings.append(Finding(Kind.BOOTED, text))
    flush(HANG)
    judge = Judge(arrangement, is_socket_named=_names_socket(root / "log"))
    visit = _Visit(arrangement, running, judge, root)
    try:
        await visit.run()
    except TimeoutError:
        judge.findings.append(Finding(Kind.HANG, visit.last))
    else:
        await running.stop()
    outcome.requests, outcome.hits = visit.count, judge.hits
    outcome.findings += judge.findings
    return outcome


async def _start(app: Application, parser: str | None) -> Any:
    app.boot()
    if app.report.broken:
        broken = app.report.broken[0]
        raise StartRefused(f"{broken.file}: {broken.error}")
    if parser is None:
        running: Any = InProcess(app)
    else:
        from arrangements.on_the_wire import OnTheWire

        running = OnTheWire(app, parser)
    await running.start()
    return running


def _names_socket(log: Path) -> bool:
    """Return True if the boot has told that a guard does not guard a socket."""
    if not log.exists():
        return False
    lines = log.read_text(encoding="utf-8").splitlines()
    return any(re.search(r"(?i)gate", line) and "ocket" in line for line in lines)


class _Visit:
    """The requests of all clients to one running application."""

    def __init__(
        self, arrangement: Arrangement, running: Transport, judge: Judge, root: Path
    ) -> None:
        self.count = 0
        self.last = ""
        self._arrangement = arrangement
        self._running = running
        self._judge = judge
        self._root = root
        self._jars: dict[str, dict[str, str]] = {}
        self._limit = LimitCount(arrangement)

    async def run(self) -> None:
        traffic = plan_traffic(self._arrangement)
        await self._log_in()
        await self._send_all(traffic.early, is_late=False)
        (self._root / "revoked.txt").write_text(REX.caller or "", encoding="utf-8")
        await self._log_out()
        await self._send_all(traffic.late, is_late=True)

    async def _log_in(self) -> None:
        if self._arrangement.credential is not Credential.SESSION:
            return
        self._jars["wrong key"] = {"__Host-session": "forged"}
        for client in clients_of(self._arrangement):
            if client.caller in PEOPLE and not is_refused_client(client):
                received = await self._post(client, "/v1/login")
                assert received.status == 204, received

    async def _log_out(self) -> None:
        if self._arrangement.credential is Credential.SESSION:
            kept = dict(self._jar_of(DORA))
            await self._post(DORA, "/v1/logout")
            self._jars[DORA.name] = kept  # somebody has a copy of the cookie

    async def _post(self, client: Client, path: str) -> Received:
        step = Step(client=client, target=Target.POST, path=path)
        sent = self._write(step, [("X-Login", client.caller or "")])
        received = await self._exchange(sent)
        self._limit.add(client, Reach.PERHAPS)
        self._keep_cookies(client, received)
        return received

    async def _send_all(self, batches: Batches, *, is_late: bool) -> None:
        for batch in batches:
            sent = [self._write(step) for step in batch]
            received = await asyncio.gather(*map(self._exchange, sent))
            limits = self._limits_of(batch)
            for step, one, answer, limit in zip(batch, sent, received, limits, strict=True):
                self._judge.judge(
                    step,
                    one,
                    answer,
                    jar=self._jar_name(step.client),
                    is_late=is_late,
                    limits=limit,
                )
                self._keep_cookies(step.client, answer)

    def _limits_of(self, batch: Sequence[Step]) -> list[Limits]:
        reaches = [self._reach(step) for step in batch]
        others = Counter(step.client.address for step in batch)
        limits = [
            Limits(
                must_refuse=self._limit.must_refuse(step.client, reach),
                may_refuse=self._limit.may_refuse(step.client, reach, others[step.client.address]),
            )
            for step, reach in zip(batch, reaches, strict=True)
        ]
        for step, reach in zip(batch, reaches, strict=True):
            self._limit.add(step.client, reach)
        return limits

    def _reach(self, step: Step) -> Reach:
        reach = reaches_limit(self._arrangement, step.client, step.target)
        return Reach.PERHAPS if step.is_spelled else reach

    def _write(self, step: Step, more: Sequence[tuple[str, str]] = ()) -> Sent:
        client = step.client
        fields = [*fields_of(self._arrangement, client, self._jar_of(client)), *more]
        if step.has_copy:
            fields.append(("If-None-Match", "*"))
        return Sent(
            method=method_of(step.target),
            path=step.path,
            query=query_of(self._arrangement, client, step.pairs),
            host=client.host,
            address=client.address,
            fields=fields,
            body=step.body,
            is_socket=step.target is Target.SOCKET,
        )

    async def _exchange(self, sent: Sent) -> Received:
        self.count += 1
        self.last = f"{sent.address}: {sent.method} {sent.target}"
        return await asyncio.wait_for(self._running.send(sent), HANG)

    def _jar_name(self, client: Client) -> str:
        if is_refused_client(client) and self._arrangement.credential is Credential.SESSION:
            return "ann"  # she has a copy of ann's cookie
        return client.name

    def _jar_of(self, client: Client) -> dict[str, str]:
        return self._jars.setdefault(self._jar_name(client), {})

    def _keep_cookies(self, client: Client, received: Received) -> None:
        if self._arrangement.session is Session.NONE:
            return
        for cookie in received.values("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self._jar_of(client)[name] = value
