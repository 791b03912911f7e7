"""The fields that keep answers to credentials out of shared caches.

Shared caches keep no answer to a request with `Authorization` (RFC 9111, 3.5). They know nothing of
an `X-Api-Key`, so a route that declares such a credential says it: `Cache-Control: private`, and
`Vary` of the field. A `Cache-Control` of the response itself takes precedence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from treefold_http._headers.header_fields import encode_header
from treefold_http._injection.contract import Contract
from treefold_http._injection.secured import MARK, read_middleware_security
from treefold_logging import is_sensitive

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._wire.asgi import RawHeaders

_KNOWN = "authorization"
PRIVATE_OF_KEY = (b"cache-control", b"private")
"""The field for a credential that no browser sends by itself; `GZip` knows it by its identity."""
_PRIVATE = (*PRIVATE_OF_KEY[:1], b"private")  # another object: equal constants would be one


class PrivateAnswers:
    """Adds the fields to every answer of a route, errors included."""

    def __init__(self, fields: RawHeaders) -> None:
        self._fields = fields

    def before(self, connection: Connection) -> None:
        """Add the fields to the answer of a request."""
        connection.add_answer_fields(self._fields)


def build_private_answer_layers(contract: Contract, entries: Sequence[Any]) -> list[PrivateAnswers]:
    """Return the layer of a route with a credential that shared caches do not know, or none.

    Args:
        entries: the middleware of the route.
    """
    marked = [entry for entry in entries if hasattr(entry, MARK)]
    if not marked and not contract.security and not contract.inputs:
        return []  # most routes of a boot
    of_entries = (each for entry in marked for each in read_middleware_security(entry))
    schemes = [*contract.security, *of_entries]
    keys = [each.scheme for each in schemes if each.scheme.get("type") == "apiKey"]
    names = {str(key["name"]).lower() for key in keys if key["in"] == "header"}
    names |= {sent.name.lower() for sent in contract.inputs if _is_sensitive_header_input(sent)}
    names.discard(_KNOWN)
    if is_cookie := any(key["in"] == "cookie" for key in keys):
        names.add("cookie")
    if not names and not any(key["in"] == "query" for key in keys):
        return []
    private = _PRIVATE if is_cookie else PRIVATE_OF_KEY
    return [PrivateAnswers([private, *(encode_header("vary", name) for name in sorted(names))])]


def _is_sensitive_header_input(declared_input: Any) -> bool:
    return declared_input.place == "header" and is_sensitive(declared_input.name)
