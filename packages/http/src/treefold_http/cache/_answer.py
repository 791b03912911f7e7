"""One kept answer: which may be kept, its stored form, and the copy that a client gets."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from treefold_http._json.json import dumps, loads
from treefold_http._responses.response import Response, copy_response
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.conditionals import Outcome, evaluate_preconditions
from treefold_logging import is_sensitive

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._wire.asgi import RawHeaders

PUBLIC = "public"
_CONDITIONS = frozenset(
    {b"if-match", b"if-none-match", b"if-modified-since", b"if-unmodified-since"}
)
_UNKEPT = frozenset({"private", "no-store", "no-cache"})


@dataclass(frozen=True, slots=True)
class Answer:
    """A kept answer.

    Attributes:
        response: the response of the handler or of inner middleware.
        added: fields that inner middleware adds to the answer of each request.
    """

    response: Response
    added: RawHeaders

    def build_response_copy(self, request: Request) -> Response:
        """Return a copy for one client, or 304 without a body if it has the answer."""
        if self.added:
            request.add_answer_fields(self.added)
        return apply_preconditions(copy_response(self.response), request)

    def build_response(self, request: Request) -> Response:
        """Return the same without a copy, for an answer that no other request has."""
        if self.added:
            request.add_answer_fields(self.added)
        return apply_preconditions(self.response, request)


def apply_preconditions(response: Response, request: Request) -> Response:
    """Return a response, made a 304 without a body if the client has it."""
    if _CONDITIONS.isdisjoint(request.fields):
        return response
    etag = response.headers.get("etag")
    outcome = evaluate_preconditions(request.method, request.headers, etag=etag, modified=None)
    if outcome in (Outcome.NOT_MODIFIED, Outcome.FAILED):
        response.status, response.body = outcome.value, b""
    return response


def is_cacheable(response: Response, request: Request) -> bool:
    """Return True for a whole answer with 200 whose fields do not forbid to keep it."""
    # a subclass is a stream or a file, whose body is not in memory
    if type(response) is not Response or response.status != 200:
        return False
    # the work would be done once, and not for each request
    if response.background is not None or request.work is not None:
        return False
    # `Vary: *` matches no later request (RFC 9111, 4.1)
    if "set-cookie" in response.headers or "*" in read_vary_names(response):
        return False
    return _UNKEPT.isdisjoint(read_cache_directives(response))


def is_session_unchanged(request: Request) -> bool:
    """Return False for a request whose session was changed, which its answer may show."""
    session = getattr(request, "opened_session", None)
    return session is None or not session.is_touched or session.compute_fingerprint() is not None


def with_cache_headers(
    response: Response,
    deciding_names: Iterable[str],
    vary: Iterable[str],
    *,
    query_names: Iterable[str] = (),
) -> Response:
    """Return a copy with an `ETag`, and with what caches between here and the client must know.

    Args:
        deciding_names: what decided the answer, as in `ReadNotes.names`.
        vary: the fields that the author names.
        query_names: the names in the query of the request.
    """
    copy = copy_response(response)
    headers = copy.headers
    if "etag" not in headers:
        headers["etag"] = f'"{hashlib.sha256(copy.body).hexdigest()[:32]}"'
    deciding_names = set(deciding_names)
    fields = {name.partition(":")[2] for name in deciding_names if name.startswith("header:")}
    present = read_vary_names(copy)
    # sorted, so that all workers send equal fields: the order of a set differs between processes
    for name in sorted({*vary, *fields} - {*present}):
        headers.append("vary", name)
    # shared caches tell answers apart by their address, so a path needs no `private`, and neither
    # does a query alone; one with a secret is not for them, whatever its address
    in_address = {"path", "raw_path"}
    if not (fields or any(is_sensitive(name) for name in query_names)):
        in_address.add("query")
    others = deciding_names - in_address
    if "cache-control" not in headers and _needs_private_directive(others, fields):
        headers["cache-control"] = "private"
    return copy


def _needs_private_directive(names: set[str], fields: set[str]) -> bool:
    """Return True for an answer that a shared cache would take for one of all clients.

    Middleware says more than `private` of a session and of `Authorization`: `no-store`.
    """
    if "session" in names:
        return False
    others = {name for name in names if not name.startswith("header:")}
    return bool(others) or any(is_sensitive(name) for name in fields - {"authorization"})


def read_vary_names(response: Response) -> list[str]:
    """Return the names in the `Vary` of a response, in lower case."""
    return _parse_list_members(response.headers.getlist("vary"))


def read_cache_directives(response: Response) -> list[str]:
    """Return the names of the directives in the `Cache-Control` of a response."""
    return _parse_list_members(response.headers.getlist("cache-control"))


def encode_answer(answer: Answer) -> bytes:
    """Return an answer as bytes."""
    response = answer.response
    # JSON has no bytes: Base64 for the body, and latin-1 for fields, which maps any byte to one
    # character and back
    body = base64.b64encode(response.body).decode("ascii")
    headers, added = _decode_fields(response.raw_headers), _decode_fields(answer.added)
    return dumps({"headers": headers, "body": body, "added": added})


def decode_answer(stored: bytes | None) -> Answer | None:
    """Return the answer of `encode_answer`; None for anything else."""
    if stored is None:
        return None
    try:
        document = cast("JSONObject", loads(stored))
        response = Response(None, 200)
        # without `validate` other characters are skipped, and the body is a different one
        response.body = base64.b64decode(document["body"], validate=True)
        response.raw_headers.extend(_encode_fields(document["headers"]))
        return Answer(response, _encode_fields(document["added"]))
    except Exception:  # bytes of another writer are a miss
        return None


def _decode_fields(fields: RawHeaders) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in fields]


def _encode_fields(fields: list[list[str]]) -> RawHeaders:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


def _parse_list_members(fields: list[str]) -> list[str]:
    """The members of a list field, in lower case and without their values."""
    members = ",".join(fields).split(",")
    # A quoted list with a comma leaves its pieces as members (`no-cache="a, b"` has `b` too): at
    # worst an answer is not kept.
    return [word for m in members if (word := m.partition("=")[0].strip(' \t"').lower())]
