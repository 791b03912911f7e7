"""Is an answer one that the contract of its route declares?

    GET /v1/user/7 -> 200 application/json {"id": "7"}      facts: 200 json User, User.id int
    Finding("GET /v1/user/{id}", 200, "body", ".id", "int", '"7"', "Api/v1/User/[id]/Get.py:4", ...)

The facts are those of `treefold contract lock`, made once for an application; overrides that are in
effect have facts of their own. What a path without a route answers is nothing of a contract.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
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
from treefold_http.testing._contract.findings import ContractWarning, Finding
from treefold_logging import mask
from treefold_router import Found, NotFound as NoRoute, Route

from treefold_contract import (  # isort: skip
    Answer,
    Definition,
    Member,
    Mismatch,
    Record,
    Reference,
    RouteFacts,
    Scalar,
    TypeNode,
    find_mismatch,
    write_type,
)

_PROBLEM_NODE = Reference("problem")
_TEXT = Scalar("str")
_PROBLEM_MEMBERS = (
    Member("type", _TEXT, is_optional=True),
    Member("title", _TEXT, is_optional=True),
    Member("status", Scalar("int"), is_optional=True),
    Member("detail", _TEXT, is_optional=True),
    Member("instance", _TEXT, is_optional=True),
)
"""The members of RFC 9457; each may be left out."""
_LONGEST = 120
"""Characters of a value that a message shows."""
_CONDITIONS = (b"range", b"if-none-match", b"if-match", b"if-modified-since", b"if-range")
_UNTYPED_CHANGE = (
    "annotate what the handler returns, or declare it: responses = {{{status}: {how}}}"
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
        self._lock = made.lock
        self._files = made.files
        self._routes = {facts.title: facts for facts in made.lock.routes}
        self._definitions: Mapping[str, Definition] = {
            **made.lock.definitions,
            _PROBLEM_NODE.name: Record(_PROBLEM_MEMBERS),
        }
        self._errors = find_error_type(made.lock)
        self._middleware_statuses = list_middleware_statuses(app.project.middlewares)

    def find_difference(self, app: Application, scope: Scope, sent: SentAnswer) -> Finding | None:
        """Return what an answer has that its route does not declare, or None."""
        route = _find_route(app, scope)
        facts = self._routes.get(f"{route.method} {route.template}") if route else None
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
        return self._check_content(facts, scope["method"], sent, answers)

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
            return Answer(answer.status, PROBLEM, _PROBLEM_NODE)
        return self._errors

    def _check_body(
        self, facts: RouteFacts, sent: SentAnswer, answers: list[Answer]
    ) -> Finding | None:
        types = [answer.type for answer in answers if answer.type is not None]
        if answers[0].media == "events":
            return None
        is_lines = answers[0].media == "ndjson"
        if not sent.is_complete and not is_lines:
            return None
        texts = sent.decode_body().splitlines(keepends=True) if is_lines else [sent.decode_body()]
        for number, text in enumerate(texts):
            if is_lines and (not text.strip() or not (sent.is_complete or text.endswith(b"\n"))):
                continue
            line = f"line {number + 1} " if is_lines else ""
            try:
                value: Any = json.loads(text, parse_constant=_refuse_constant)
            except (ValueError, RecursionError):
                return self._report_body(facts, sent, line, _write(types[0]), "no valid JSON")
            found = [find_mismatch(each, value, definitions=self._definitions) for each in types]
            if all(found) and found[0] is not None:
                declared, got = _write(found[0].declared), _describe_value(found[0], value)
                return self._report_body(facts, sent, line + found[0].place, declared, got)
        return None

    def _report_status(self, facts: RouteFacts, sent: SentAnswer) -> Finding:
        declared = ", ".join(f"{each.status} {_describe(each)}" for each in facts.answers)
        how = '"what it means"' if sent.status >= 400 else "Model"
        change = _UNTYPED_CHANGE.format(status=sent.status, how=how)
        handler = self._files.get(facts.title, "")
        got = f"{sent.status} {sent.media_type}".rstrip()
        return Finding(facts.title, sent.status, "status", "", declared, got, handler, change)

    def _report_media(self, facts: RouteFacts, sent: SentAnswer, answers: list[Answer]) -> Finding:
        declared = " or ".join(map(_describe, answers))
        got = sent.media_type or ("no media type" if sent.body else "no body")
        how = json.dumps({"media_type": got}) if sent.media_type else "None"
        change = _UNTYPED_CHANGE.format(status=sent.status, how=how)
        handler = self._files.get(facts.title, "")
        return Finding(facts.title, sent.status, "media type", "", declared, got, handler, change)

    def _report_body(
        self, facts: RouteFacts, sent: SentAnswer, place: str, declared: str, got: str
    ) -> Finding:
        change = _UNTYPED_CHANGE.format(status=sent.status, how="Model")
        handler = self._files.get(facts.title, "")
        return Finding(
            facts.title, sent.status, "body", place.strip(), declared, got, handler, change
        )


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
    table = app.table
    outcome = table.resolve(scope["method"], path)
    if isinstance(outcome, NoRoute) and outcome.unversioned and app.default_version:
        if app.mounts and app.mounts.find_mount(path) is not None:
            return None
        outcome = table.resolve(scope["method"], path, version=app.default_version)
    return outcome.route if isinstance(outcome, Found) else None


def _fits_media(answer: Answer, sent: SentAnswer, *, is_empty: bool) -> bool:
    if not answer.media:
        return not sent.body
    return is_media_type(answer, sent.media_type) and not (is_empty and answer.media != "any")


def _describe(answer: Answer) -> str:
    return describe_answer(answer, "" if answer.type is None else _write(answer.type))


def _write(node: TypeNode) -> str:
    return PROBLEM if node == _PROBLEM_NODE else write_type(node)


def _describe_value(found: Mismatch, body: Any) -> str:
    """Return the text of a value of a body, masked as the log masks it."""
    if found.is_missing:
        return "no such member"
    shown: Any = mask({"": body})[""]
    for step in found.path:
        if not isinstance(shown, (dict, list)):  # the mask of a container
            break
        container: Any = cast("Any", shown)
        shown = container[step]
    text = json.dumps(shown, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _refuse_constant(name: str) -> float:
    raise ValueError(f"JSON has no {name}")
