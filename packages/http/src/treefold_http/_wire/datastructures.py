"""Values that requests and responses are made of: multi-valued mappings, header fields, the URL.

Plain data with a reading side, independent of scopes, connections and bodies. Input is decoded text
or latin-1 header bytes; a value that is invalid in a header is refused where it is set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, KeysView, Mapping, MutableMapping
from typing import Any, Generic, Self, TypeVar
from urllib.parse import unquote_plus

from treefold_http._headers.header_fields import BLANKS, encode_header
from treefold_http._wire.asgi import RawHeaders
from treefold_http._wire.client_names import ClientNames
from treefold_http._wire.errors import BadRequest

V = TypeVar("V")

MAX_QUERY_PAIRS = 1000
"""Parameters of one query string: a target of 8 KiB has room for 4,096 of them (S-23)."""


class MultiMapping(Mapping[str, V], Generic[V]):
    """A read-only mapping that keeps repeated names in the order sent.

    `mapping[name]` and `get` return the first value, `getlist` all of them, `multi_items` every
    (name, value) pair.
    """

    __slots__ = ("_first", "_pairs")

    def __init__(self, pairs: Iterable[tuple[str, V]] = ()) -> None:
        self._pairs = list(pairs)
        self._first: dict[str, V] = {}
        for name, value in self._pairs:
            self._first.setdefault(name, value)

    def __getitem__(self, name: str) -> V:
        return self._first[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def keys(self) -> KeysView[str]:
        """Return the names as `ClientName`, which models refuse as names of fields."""
        return ClientNames(self)

    def getlist(self, name: str) -> list[V]:
        """Return every value of `name` in the order sent; an empty list if there is none."""
        return [value for key, value in self._pairs if key == name]

    def multi_items(self) -> list[tuple[str, V]]:
        """Return every pair, repeats included, in the order sent."""
        return list(self._pairs)

    def __repr__(self) -> str:
        # Names only: a value may be a secret, and reprs end in logs.
        return f"{type(self).__name__}({', '.join(self._first)})"


class QueryParams(MultiMapping[str]):
    """A query string: `&` separates, `+` is a space, names and values are strict UTF-8."""

    __slots__ = ()

    @classmethod
    def parse(cls, query_string: bytes) -> Self:
        """Decode a raw query string.

        Raises:
            BadRequest: for text that is not UTF-8, or more than 1,000 pairs (S-03, S-23).
        """
        return cls(parse_urlencoded(query_string, limit=MAX_QUERY_PAIRS))


def parse_urlencoded(data: bytes, *, limit: int) -> list[tuple[str, str]]:
    """Split `application/x-www-form-urlencoded` bytes into decoded pairs; empty parts are dropped.

    Raises:
        BadRequest: for text that is not UTF-8, or more than `limit` pairs.
    """
    if not data:
        return []
    # at most `limit` cuts: a body of a million `&` makes no million parts
    parts = data.split(b"&", limit)
    if len(parts) > limit:
        raise BadRequest(f"More than {limit} name=value pairs")
    try:
        return [_decode_pair(part.decode("utf-8")) for part in parts if part]
    except UnicodeDecodeError:
        raise BadRequest("A name or value is not UTF-8 text") from None


def _decode_pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    if "%" in part or "+" in part:
        # strict, as `%FE` and `%FF` would become the same replacement character
        return unquote_plus(name, errors="strict"), unquote_plus(value, errors="strict")
    return name, value


class Headers(Mapping[str, str]):
    """Header fields of a request: names in any case, repeated fields kept (RFC 9110, 5).

    `headers[name]` and `get` return the first field, `getlist` all. Values are latin-1 text without
    the blanks around them, which some servers leave (RFC 9110, 5.5).
    """

    __slots__ = ("raw",)

    def __init__(self, raw: RawHeaders) -> None:
        self.raw = raw

    def __getitem__(self, name: str) -> str:
        wanted = _encode_header_name(name)
        for key, value in self.raw:
            if key == wanted:
                return value.strip(BLANKS).decode("latin-1")
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(key.decode("latin-1") for key, _ in self.raw))

    def __len__(self) -> int:
        return len({key for key, _ in self.raw})

    def getlist(self, name: str) -> list[str]:
        """Return the value of every field of that name, in the order sent."""
        wanted = _encode_header_name(name)
        return [value.strip(BLANKS).decode("latin-1") for key, value in self.raw if key == wanted]

    def multi_items(self) -> list[tuple[str, str]]:
        """Return every field, repeats included, in the order sent."""
        pairs = ((key, value.strip(BLANKS)) for key, value in self.raw)
        return [(key.decode("latin-1"), value.decode("latin-1")) for key, value in pairs]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"


class MutableHeaders(Headers, MutableMapping[str, str]):
    """Header fields of a response: checked where they are set, where a traceback helps (S-43).

    Setting a name replaces all fields of that name; `append` adds one beside them.
    """

    __slots__ = ()

    def __setitem__(self, name: str, value: str) -> None:
        field = encode_header(name, value)
        # in place, as the response holds the same list
        self.raw[:] = [pair for pair in self.raw if pair[0] != field[0]]
        self.raw.append(field)

    def __delitem__(self, name: str) -> None:
        wanted = _encode_header_name(name)
        kept = [pair for pair in self.raw if pair[0] != wanted]
        if len(kept) == len(self.raw):
            raise KeyError(name)
        self.raw[:] = kept

    def append(self, name: str, value: str) -> None:
        """Add a field and keep those of the same name, for `Set-Cookie` or `Link`."""
        self.raw.append(encode_header(name, value))

    def add_vary(self, name: str) -> None:
        """Add a name to the `Vary` field, unless it is there already."""
        fields = self.getlist("vary")
        present = [part.strip() for field in fields for part in field.split(",") if part.strip()]
        if "*" not in present and name.lower() not in [part.lower() for part in present]:
            self["vary"] = ", ".join([*present, name])


def _encode_header_name(name: str) -> bytes:
    return name.lower().encode("latin-1", "replace")


class URL:
    """The address a request was sent to, kept in parts.

    The parts are never joined and parsed again, where a path such as `@evil.example/` would become
    the host (S-14).

    Attributes:
        scheme: `http`, `https`, `ws` or `wss`.
        host: the `Host` field: name or address, with the port where one was sent.
        path: as sent, still percent-encoded.
        query: as sent, without `?`.
    """

    __slots__ = ("host", "path", "query", "scheme")

    def __init__(self, scheme: str, host: str, *, path: str, query: str) -> None:
        self.scheme = scheme
        self.host = host
        self.path = path
        self.query = query

    @property
    def origin(self) -> str:
        """Scheme and host, as in an `Origin` field."""
        return f"{self.scheme}://{self.host}"

    def __str__(self) -> str:
        return f"{self.origin}{self.path}{'?' if self.query else ''}{self.query}"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, (URL, str)) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f"URL({self.scheme!r}, {self.host!r}, path={self.path!r})"


class State:
    """Attributes of your own, for a request or for the application."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self.__dict__.update(values or {})

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"State has no attribute {name!r}; set it first")

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self.__dict__[name]
        except KeyError:
            raise AttributeError(f"State has no attribute {name!r}") from None

    def __contains__(self, name: str) -> bool:
        return name in self.__dict__
