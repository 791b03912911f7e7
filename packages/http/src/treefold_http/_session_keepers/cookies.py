"""The cookie of a session: its name, its attributes, and its size limit.

`__Host-`, Secure, HttpOnly, SameSite=Lax, Path=/ and no Domain (RFC 6265bis); without `Secure` and
the prefix only in development over plain HTTP, and not for a cookie in pages of other sites:
browsers would drop it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_http._headers.cookies import SameSite, format_cookie
from treefold_http._headers.header_fields import encode_header

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection

LONGEST = 4096
"""Bytes of a name and a value that every browser keeps (RFC 6265, 6.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CookieForm:
    """The form of the cookie of one `Sessions`.

    Attributes:
        name: without a prefix, such as `session`.
        domain: shares it with subdomains; None restricts it to this host.
        partitioned: keeps it separate for each embedding site (CHIPS).
    """

    name: str
    path: str = "/"
    domain: str | None = None
    samesite: SameSite = "lax"
    partitioned: bool = False

    @property
    def prefixed_name(self) -> str:
        """The name with the prefix that its attributes allow."""
        prefix = "__Host-" if self.domain is None and self.path == "/" else "__Secure-"
        return prefix + self.name

    @property
    def possible_names(self) -> tuple[str, str]:
        """The possible names: with the prefix, and in development."""
        return self.prefixed_name, self.name

    def read_cookie_value(self, connection: Connection) -> str:
        """Return the cookie value of a request; empty without one."""
        # a look at the raw fields, since `cookies` parses them all at its first use
        if b"cookie" not in connection.fields:
            return ""
        name = self.name if self._may_omit_secure_attribute(connection) else self.prefixed_name
        return connection.cookies.get(name, "")

    def set_cookie(self, connection: Connection, value: str, seconds: float) -> None:
        """Add the `Set-Cookie` field to the fields of the answer.

        Raises:
            ValueError: for a value that browsers would drop.
        """
        # `Max-Age=0` would delete the cookie (RFC 6265, 5.2.2)
        self._add_cookie_field(connection, value, max(1, math.ceil(seconds)))

    def delete_cookie(self, connection: Connection) -> None:
        """Add the `Set-Cookie` field that deletes it, unless the response has one that sets it."""
        self._add_cookie_field(connection, "", 0)

    def _add_cookie_field(self, connection: Connection, value: str, seconds: int) -> None:
        plain = self._may_omit_secure_attribute(connection)
        name = self.name if plain else self.prefixed_name
        if len(name) + len(value) > LONGEST:
            raise ValueError(
                f"The session cookie must have at most {LONGEST} bytes, got {len(value)};"
                " store less, or leave out store='cookie'"
            )
        names = ("path", "domain", "samesite", "partitioned")
        attributes: Mapping[str, Any] = {each: getattr(self, each) for each in names}
        text = format_cookie(name, value, max_age=seconds, secure=not plain, **attributes)
        connection.add_answer_fields([encode_header("set-cookie", text)])

    def is_dropped_by_browser(self, connection: Connection) -> bool:
        """Return True if Fetch Metadata shows that a page of another site sent the request."""
        sites = connection.headers.getlist("sec-fetch-site")
        return self.samesite != "none" and sites == ["cross-site"]

    def _may_omit_secure_attribute(self, connection: Connection) -> bool:
        # browsers drop such a cookie without `Secure`, in development too
        if self.samesite == "none" or self.partitioned:
            return False
        return connection.app.dev and connection.scheme in ("http", "ws")
