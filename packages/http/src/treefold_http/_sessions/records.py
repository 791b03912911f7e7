"""The record of one session (content, user, start time), encoded to bytes and decoded.

JSON only: an unknown or damaged document is no session, and a value without a JSON form is refused
when the session is saved.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from treefold_http._json.json import dumps, loads
from treefold_http._json.json_values import require_json_round_trip
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.errors import BadRequest

UserId: TypeAlias = str | int


@dataclass(slots=True)
class SessionRecord:
    """The stored data of one session.

    Attributes:
        id: the secret in the cookie; a store never sees it.
        created: the start time, in seconds since 1970.
        user: the id of the user; None for an anonymous session.
        data: the values that handlers have set.
    """

    id: str
    created: float
    user: UserId | None = None
    data: JSONObject = field(default_factory=JSONObject)

    def to_json(self) -> bytes:
        """Return the record without its id as JSON.

        Raises:
            TypeError: for a value that JSON has no form for, or a key that is not text.
            ValueError: for NaN, Infinity or half of a surrogate pair.
        """
        for name, value in self.data.items():
            require_json_round_trip(value, f"Session value {name!r}")
        # in this order: `is_anonymous_record` reads the beginning of the bytes
        document = {"created": self.created, "user": self.user, "data": self.data}
        return dumps(document)


_has_no_user = re.compile(rb'\{"created": ?[0-9.e+-]+, ?"user": ?null[,}]').match


def is_anonymous_record(encoded: bytes) -> bool:
    """Return True for the bytes of a record without a user; only their beginning is read."""
    return _has_no_user(encoded) is not None


def decode_record(id: str, value: bytes) -> SessionRecord | None:
    """Return the record encoded by `to_json`; None for invalid bytes."""
    try:
        document = loads(value)
    except BadRequest:
        return None
    if not isinstance(document, dict):
        return None
    members = cast("JSONObject", document)
    created, user, data = (members.get(name) for name in ("created", "user", "data"))
    # the exact type, since True is an int by `isinstance`
    if type(created) not in (int, float) or not isinstance(data, dict):
        return None
    if user is not None and type(user) not in (str, int):
        return None
    return SessionRecord(id, cast("float", created), user, cast("JSONObject", data))
