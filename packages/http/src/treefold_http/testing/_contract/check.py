"""Is an answer or a message of a socket one that the contract of its route declares?

    GET /v1/user/7 -> 200 application/json {"id": "7"}      facts: 200 json User, User.id int
    Finding("GET /v1/user/{id}", 200, "body", ".id", "int", '"7"', "Api/v1/User/[id]/Get.py:4", ...)

The facts are those of `treefold contract lock`, made once for an application; overrides that are in
effect have facts of their own. What a path without a route answers is nothing of a contract.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import httpx

from treefold_http._application import Application
from treefold_http._wire.asgi import RawHeaders, Scope
from treefold_http._wire.root_path import below_root
from treefold_http.contract import ProjectLock, build_project_lock  # first: names the extra
from treefold_http.testing._contract.declared_answers import (
    PROBLEM,
    describe_answer,
    find_error_type,
    is_media_type,
    list_declared,
    list_implied,
    list_middleware_statuses,
)
from treefold_http.testing._contract.events import iter_event_data
from treefold_http.testing._contract.findings import Cause, ContractWarning, Finding
from treefold_http.testing._contract.value_check import (
    PROBLEM_NODE,
    Difference,
    ValueCheck,
    write_types,
)
from treefold_router import Found, NotFound as NoRoute, Route

from treefold_contract import Answer, Message, RouteFacts  # isort: skip

_CONDITIONS = (b"range", b"if-none-match", b"if-match", b"if-modified-since", b"if-range")
_UNTYPED_CHANGE = (
    "annotate what the handler returns, or declare it: responses = {{{status}: {how}}}"
)
_EVENT_CHANGE = "declare the data of the events: response_model = Model"
_MESSAGE_CHANGE = (
    "send what is declared, or declare it: response_model = Model is the type of JSON; text and"
    " bytes are those that the handler itself sends"
)
_FIELD_CHANGE = (
    'set the field, or declare it: responses = {{{status}: {{"headers": {{"{name}": ...}}}}}}'
)


@dataclass(frozen=True, slots=True)
class SentAnswer:
    """An answer as the application sent it.

    Attributes:
        status: its status.
        headers: its header fields.
        body: the bytes that were read.
        is_complete: False if the client left before its end.
    """

    status: int
    headers: RawHeaders
    body: bytes
    is_complete: bool

    @property
    def media_type(self) -> str:
        """The media type without parameters; empty without one."""
        said = httpx.Headers(self.headers).get("content-type", "")
        return said.partition(";")[0].strip().lower()

    def decode_body(self) -> bytes:
        """Return the body without its content coding."""
        return httpx.Response(self.status, headers=self.headers, content=self.body).content


class ContractCheck:
    """The facts of one application, and what was reported of it.

    Args:
        app: the application, booted.

    Raises:
        UnreadableProject: no facts can be made of it.
    """

    def __init__(self, app: Application) -> None:
        made: ProjectLock = build_project_lock(app)
        self._files = made.files
        self._routes = {facts.title: facts for facts in made.lock.routes}
        self._values = ValueCheck(made.lock.definitions)
        self._errors = find_error_type(made.lock)
        self._middleware_statuses = list_middleware_statuses(app.project.middlewares)

    def find_difference(self, app: Application, scope: Scope, sent: SentAnswer) -> Finding | None:
        """Return what an answer has that its route does not declare, or None."""
        facts = self._find_facts(app, scope)
        if facts is None or sent.status == 500:
            return None
        answers = list_declared(facts, sent.status)
        if not answers:
            fields = {name for name, _ in scope["headers"]}
            implied = list_implied(facts, has_conditions=not fields.isdisjoint(_CONDITIONS))
            if sent.status not in implied | self._middleware_statuses:
                return self._report_status(facts, sent)
            if sent.status < 400:
                return None
            answers = [Answer(str(sent.status), PROBLEM)]
        found = self._check_content(facts, scope["method"], sent, answers)
        return found or self._check_fields(facts, sent, answers[0].status)

    def find_message_difference(
        self, app: Application, scope: Scope, data: str | bytes
    ) -> Finding | None:
        """Return what a message of a socket has that its route does not declare, or None.

        A route that declares no message that it sends may send any.
        """
        facts = self._find_facts(app, scope)
        declared = [each for each in facts.messages if each.direction == "out"] if facts else []
        kind = "bytes" if isinstance(data, bytes) else "text"
        if facts is None or not declared or any(each.media == kind for each in declared):
            return None
        types = [each.type for each in declared if each.media == "json"]
        if kind == "text" and types:
            found = self._values.compare_json(types, data)
        else:
            texts = dict.fromkeys(map(_describe_message, declared))
            found = Difference("", " or ".join(texts), kind)
        return self._report(facts, 101, "message", found, _MESSAGE_CHANGE)

    def _find_facts(self, app: Application, scope: Scope) -> RouteFacts | None:
        route = _find_route(app, scope)
        return self._routes.get(f"{route.method} {route.template}") if route else None

    def _check_content(
        self, facts: RouteFacts, method: str, sent: SentAnswer, answers: list[Answer]
    ) -> Finding | None:
        answers = [self._apply_error_format(each) for each in answers]
        is_empty = sent.is_complete and not sent.body and not sent.media_type
        if is_empty and (method == "HEAD" or sent.status >= 400):
            return None
        fitting = [each for each in answers if _fits_media(each, sent, is_empty=is_empty)]
        if not fitting:
            return self._report_media(facts, sent, answers)
        if method == "HEAD" or any(each.type is None for each in fitting):
            return None
        return self._check_body(facts, sent, fitting)

    def _apply_error_format(self, answer: Answer) -> Answer:
        """Return an answer whose body is a problem as the project sends problems."""
        if answer.media != PROBLEM or answer.type is not None:
            return answer
        if self._errors.media == PROBLEM:
            return Answer(answer.status, PROBLEM, PROBLEM_NODE)
        return self._errors

    def _check_body(
        self, facts: RouteFacts, sent: SentAnswer, answers: list[Answer]
    ) -> Finding | None:
        types = [answer.type for answer in answers if answer.type is not None]
        if answers[0].media == "events":
            events = enumerate(iter_event_data(sent.decode_body()), 1)
            compared = ((f"event {n}", self._values.compare_event(types, e)) for n, e in events)
            return self._report_first(facts, sent, "event", compared, _EVENT_CHANGE)
        change = _UNTYPED_CHANGE.format(status=sent.status, how="Model")
        if answers[0].media == "ndjson":
            lines = _iter_lines(sent)
            compared = ((f"line {n}", self._values.compare_json(types, e)) for n, e in lines)
            return self._report_first(facts, sent, "body", compared, change)
        if not sent.is_complete:
            return None
        found = self._values.compare_json(types, sent.decode_body())
        return self._report(facts, sent.status, "body", found, change)

    def _check_fields(self, facts: RouteFacts, sent: SentAnswer, declared: str) -> Finding | None:
        """Return how a header field differs from those of a declared status, or None."""
        headers = httpx.Headers(sent.headers)
        for field in facts.fields:
            if field.place != "header" or field.status != declared:
                continue
            values = headers.get_list(field.name)
            if values:
                found = self._values.compare_field(field.type, field.name, values)
            elif field.is_optional or self._values.accepts_null(field.type):
                continue
            else:
                found = Difference("", write_types([field.type]), "no such header field")
            if found is not None:
                found = found._replace(place=field.name)
                change = _FIELD_CHANGE.format(status=declared, name=field.name)
                return self._report(facts, sent.status, "header field", found, change)
        return None

    def _report_status(self, facts: RouteFacts, sent: SentAnswer) -> Finding | None:
        declared = ", ".join(f"{each.status} {_describe(each)}" for each in facts.answers)
        how = '"what it means"' if sent.status >= 400 else "Model"
        change = _UNTYPED_CHANGE.format(status=sent.status, how=how)
        got = f"{sent.status} {sent.media_type}".rstrip()
        return self._report(facts, sent.status, "status", Difference("", declared, got), change)

    def _report_media(
        self, facts: RouteFacts, sent: SentAnswer, answers: list[Answer]
    ) -> Finding | None:
        declared = " or ".join(map(_describe, answers))
        got = sent.media_type or ("no media type" if sent.body else "no body")
        how = json.dumps({"media_type": got}) if sent.media_type else "None"
        change = _UNTYPED_CHANGE.format(status=sent.status, how=how)
        found = Difference("", declared, got)
        return self._report(facts, sent.status, "media type", found, change)

    def _report_first(
        self,
        facts: RouteFacts,
        sent: SentAnswer,
        cause: Cause,
        compared: Iterable[tuple[str, Difference | None]],
        change: str,
    ) -> Finding | None:
        """Return the finding of the first part of a stream that differs, or None."""
        for part, found in compared:
            if found is not None:
                found = found._replace(place=f"{part} {found.place}".rstrip())
                return self._report(facts, sent.status, cause, found, change)
        return None

    def _report(
        self, facts: RouteFacts, status: int, cause: Cause, found: Difference | None, change: str
    ) -> Finding | None:
        if found is None:
            return None
        handler = self._files.get(facts.title, "")
        return Finding(facts.title, status, cause, *found, handler, change)


class ContractChecks:
    """The checks of one application: one for each set of overrides.

    Attributes:
        reported: the routes and causes that a warning was given of.
    """

    def __init__(self) -> None:
        self.reported: set[tuple[str, str]] = set()
        self._modules: object = None
        self._checks: dict[frozenset[tuple[int, int]], ContractCheck] = {}
        self._replaced: list[object] = []  # kept, so that no identity is used again

    def get_check(self, app: Application) -> ContractCheck:
        """Return the check of the application as it is now."""
        modules = app.project.modules
        if modules is not self._modules or len(self._checks) > _MOST_CHECKS:
            self._modules = modules
            self._checks.clear()
            self._replaced.clear()
        key = frozenset((id(call), id(other)) for call, other in app.overrides.items())
        if key not in self._checks:
            self._replaced += app.overrides.items()
            self._checks[key] = ContractCheck(app)
        return self._checks[key]


_MOST_CHECKS = 8
_known: WeakKeyDictionary[Application, ContractChecks] = WeakKeyDictionary()


def find_difference(app: Application, scope: Scope, sent: SentAnswer) -> Finding | None:
    """Return what an answer of an application has that its contract does not declare, or None.

    Raises:
        UnreadableProject: no facts can be made of the application.
    """
    checks = _known.setdefault(app, ContractChecks())
    return checks.get_check(app).find_difference(app, scope, sent)


def find_message_difference(app: Application, scope: Scope, data: str | bytes) -> Finding | None:
    """Return what a message of a socket has that its route does not declare, or None.

    Raises:
        UnreadableProject: no facts can be made of the application.
    """
    checks = _known.setdefault(app, ContractChecks())
    return checks.get_check(app).find_message_difference(app, scope, data)


def warn_once(app: Application, finding: Finding) -> None:
    """Warn of a difference at the line of the handler, once for each route and cause."""
    checks = _known.setdefault(app, ContractChecks())
    key = finding.route, finding.cause
    if key in checks.reported:
        return
    checks.reported.add(key)
    file, _, line = finding.handler.rpartition(":")
    is_line = line.isdecimal()
    warnings.warn_explicit(
        str(finding),
        ContractWarning,
        str(app.root / (file if is_line else finding.handler)),
        int(line) if is_line else 1,
    )


def _find_route(app: Application, scope: Scope) -> Route | None:
    """Return the route that served a request; None if a mount, a probe or no route did."""
    path = scope.get("raw_path") or scope["path"]
    if root := scope.get("root_path"):
        path = below_root(path, root)
    outcome = _resolve(app, scope, path, None)
    if isinstance(outcome, NoRoute) and outcome.unversioned and app.default_version:
        if app.mounts and app.mounts.find_mount(path) is not None:
            return None
        outcome = _resolve(app, scope, path, app.default_version)
    return outcome.route if isinstance(outcome, Found) else None


def _resolve(app: Application, scope: Scope, path: bytes | str, version: str | None) -> object:
    if scope["type"] == "websocket":
        return app.table.resolve_socket(path, version=version)
    return app.table.resolve(scope["method"], path, version=version)


def _fits_media(answer: Answer, sent: SentAnswer, *, is_empty: bool) -> bool:
    if not answer.media:
        return not sent.body
    return is_media_type(answer, sent.media_type) and not (is_empty and answer.media != "any")


def _describe(answer: Answer) -> str:
    return describe_answer(answer, "" if answer.type is None else write_types([answer.type]))


def _describe_message(message: Message) -> str:
    return f"json {write_types([message.type])}" if message.media == "json" else message.media


def _iter_lines(sent: SentAnswer) -> Iterator[tuple[int, bytes]]:
    """Yield the number and text of each line of JSON that was read whole."""
    lines = sent.decode_body().splitlines(keepends=True)
    for number, text in enumerate(lines, 1):
        if text.strip() and (sent.is_complete or text.endswith(b"\n")):
            yield number, text
