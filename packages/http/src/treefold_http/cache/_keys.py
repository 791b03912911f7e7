"""The key of a kept answer: everything that decided it.

The rule, for a request at the place of the cache in its chain:

1. Its address is always in the key: method, scheme, host, `root_path`, route and path parameters
   (the path where there is no route), and the query, with repeated names in their order.
2. `Cookie` and `Authorization` are always in the key, read or not, and so are context variables
   that middleware of the project has set.
3. So is what answers of this route were seen to depend on (`ReadNotes.names`): header fields, the
   client, the session, attributes of `state`, the body; and the principal, with its scopes and
   roles, where the route declares credentials.
4. With `key=` the author says what decides: it takes the place of 2 and 3.

A part that text cannot stand for (an object in `state`, a body, a session that was changed) has no
key text: such an answer is not kept. `HEADER=None` differs from `HEADER=""`.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from contextvars import Context, ContextVar, copy_context
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from treefold_http._headers.header_fields import BLANKS
from treefold_http._json.json import dumps
from treefold_http._json.json_values import require_json_round_trip
from treefold_http._requests.read_notes import EVERYTHING

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._wire.asgi import RawHeaders

PERSONAL = ("cookie", "authorization")
_PLAIN = frozenset({UUID, date, datetime, time, timedelta, Decimal, bytes})
"""Types whose `repr` says everything; a subclass may have more than it shows."""
_ZONES = frozenset({type(None), timezone, ZoneInfo})
_OURS = ("treefold_", "opentelemetry.")
"""Packages whose values in context variables decide no answer."""
_ABSENT: Any = object()


class RequestParts:
    """The parts of a request as they are at the cache; inner middleware may replace them.

    Args:
        request: before anything inside of the cache ran.
    """

    __slots__ = ("_headers", "_mutable", "_principal", "_request", "_scope", "_state")

    def __init__(self, request: Request) -> None:
        self._request = request
        self._scope = request.scope
        self._headers: RawHeaders = self._scope["headers"]
        # None until something inside of the cache runs: a hit copies neither the scope nor the
        # state
        self._state: dict[str, Any] | None = None
        self._mutable: dict[str, str | None] = {}
        self._principal: str | None = None

    def take_snapshot(self) -> None:
        """Keep the parts as they are now: what is inside of the cache runs next."""
        self._principal = self._compute_principal_key_text()
        self._scope = dict(self._scope)
        self._state = dict(vars(self._request.state))
        # A handler may change them, and the key has to be that of what it found.
        mutable = {n: v for n, v in self._state.items() if type(v) in (list, dict, tuple)}
        self._mutable = {name: compute_value_key_text(value) for name, value in mutable.items()}

    def read_header_values(self, name: str) -> list[str]:
        """Return the values of a field, in the order sent."""
        # a name outside of latin-1 becomes one with `?`, which no field has, instead of an error
        wanted = name.encode("latin-1", "replace")
        return [v.strip(BLANKS).decode("latin-1") for key, v in self._headers if key == wanted]

    async def compute_key_text(self, part_name: str) -> str | None:
        """Return a text that differs where the part of that name differs; None for no text."""
        kind, _, own = part_name.partition(":")
        if kind == "header":
            return repr(self.read_header_values(own))
        if kind == "state":
            if own:
                return self._compute_state_key_text(own)
            return self._compute_whole_state_key_text()
        if kind == "principal":
            return self._principal or self._compute_principal_key_text()
        if kind == "session":
            return await self._compute_session_key_text()
        if kind == "body":
            # what is read of an empty body is the same for all; another one is in no key
            return "" if self._has_no_body() else None
        return self._compute_scope_key_text(part_name) if part_name in EVERYTHING else None

    def _compute_scope_key_text(self, name: str) -> str:
        scope = self._scope
        if name in ("client.host", "client.port"):
            # None on a Unix socket (ASGI, `client` of the HTTP scope)
            client = scope.get("client")
            # False is the index of the host, True that of the port
            return repr(client and client[name == "client.port"])
        if name == "headers":
            return repr(list(self._headers))
        key = "query_string" if name == "query" else name
        return repr(scope.get(key))

    def _compute_state_key_text(self, name: str) -> str | None:
        if (value := self._read_state().get(name, _ABSENT)) is _ABSENT:
            return "absent"
        # all requests see it, so it tells none apart; an object there (a pool) has no text
        if value is vars(self._request.app.state).get(name, _ABSENT):
            return "of the application"
        return self._mutable[name] if name in self._mutable else compute_value_key_text(value)

    def _compute_whole_state_key_text(self) -> str | None:
        tokens = {name: self._compute_state_key_text(name) for name in sorted(self._read_state())}
        return None if None in tokens.values() else repr(tokens)

    def _read_state(self) -> dict[str, Any]:
        return vars(self._request.state) if self._state is None else self._state

    def _compute_principal_key_text(self) -> str:
        # one that is identified inside of the cache depends on what is read there
        if (principal := self._request.principal) is None:
            return "no principal"
        return repr((principal.key, sorted(principal.scopes), sorted(principal.roles)))

    async def _compute_session_key_text(self) -> str | None:
        request = self._request
        if not hasattr(request, "session_keeper"):
            return None  # a session that begins inside of the cache
        session = request.session
        await session.preload_record()
        try:
            return session.compute_fingerprint()
        except Exception:  # a store that is away: the handler reports it
            return None

    def _has_no_body(self) -> bool:
        lengths = self.read_header_values("content-length")
        # two fields are not ["0"]: they may differ, and count as a body
        if lengths:
            return lengths == ["0"]
        if self.read_header_values("transfer-encoding"):
            return False
        # Without both fields a request of HTTP/1.1 has no body (RFC 9112, 6.3); one of HTTP/2 may
        # have one, which ends with the stream.
        return str(self._scope.get("http_version", "1.1")).startswith("1")


def compute_value_key_text(value: Any) -> str | None:
    """Return a text for a value, the same for equal ones only; None for an object without one."""
    if type(value) in _PLAIN:
        if type(value) in (datetime, time) and type(value.tzinfo) not in _ZONES:
            return None
        return f"{type(value).__qualname__} {value!r}"
    prefix = ""
    if type(value) is tuple:
        prefix, value = "tuple ", list(cast("tuple[Any, ...]", value))  # no JSON begins so
    try:
        require_json_round_trip(value, "A value")
        return prefix + dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return None


def find_changed_context_variables(before: Context) -> dict[str, str | None]:
    """Return the context variables that were set since, each with the text of its value.

    The names are those of `find_stable_variable_name`. Values of the framework and of OpenTelemetry
    decide no answer and are left out.
    """
    changed: dict[str, str | None] = {}
    for variable, value in copy_context().items():
        if _read_variable(before, variable) is value or type(value).__module__.startswith(_OURS):
            continue
        name, is_certain = find_stable_variable_name(variable)
        changed[name] = compute_value_key_text(value) if is_certain else None
    return changed


# By variable; and the first variable of each name among those that no module holds. They are never
# removed: variables live as long as their modules.
_names: dict[ContextVar[Any], tuple[str, bool]] = {}
_unplaced: dict[str, ContextVar[Any]] = {}


def find_stable_variable_name(variable: ContextVar[Any]) -> tuple[str, bool]:
    """Return a name of a context variable that is the same in every process, and whether no other
    variable has it.

    Two variables may both be called "user", so that the module that holds it decides. One that no
    module holds has its own name; a second one of that name cannot be told from the first.
    """
    if (found := _names.get(variable)) is None:
        found = _names[variable] = _search_modules_for_variable(variable)
    return found


def _search_modules_for_variable(variable: ContextVar[Any]) -> tuple[str, bool]:
    # in the order of the names, as modules that import the variable hold it too
    for module, content in sorted(sys.modules.copy().items()):
        for name, value in list(getattr(content, "__dict__", {}).items()):
            if value is variable:
                return f"{module}.{name}", True
    first = _unplaced.setdefault(variable.name, variable)
    return variable.name, first is variable


def _read_variable(context: Context, variable: ContextVar[Any]) -> Any:
    return context.get(variable, _ABSENT)


def hash_parts(parts: Iterable[str]) -> str:
    """Return the hash of texts, each with its length, so that no two lists have one hash."""
    text = "".join([f"{len(part)}:{part}" for part in parts])
    # a text may have half of a surrogate pair ("\ud800"), for which strict UTF-8 raises
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
