"""Views of the parts of a request that note which names are read.

One class for each type that a request hands out. Each is a subclass of that type, so `isinstance`
and annotations hold; asking for one name notes that name, iteration and the like note the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, cast

from treefold_http._requests.connection import Address
from treefold_http._requests.read_notes import HEADERS, STATE, ReadNotes
from treefold_http._wire.asgi import Scope
from treefold_http._wire.datastructures import Headers, QueryParams, State

T = TypeVar("T")

_IN_EVERY_KEY = frozenset({"type", "asgi", "method", "scheme", "root_path"})
_SCOPE_NAMES: Mapping[str, str] = {
    "headers": HEADERS,
    "state": STATE,
    "path": "path",
    "raw_path": "raw_path",
    "query_string": "query",
    "http_version": "http_version",
    "server": "server",
}


class RecordedFields(Mapping[bytes, bytes]):
    """The header as a dictionary of bytes."""

    __slots__ = ("_notes", "_plain")

    def __init__(self, plain: Mapping[bytes, bytes], notes: ReadNotes) -> None:
        self._plain = plain
        self._notes = notes

    def __getitem__(self, name: bytes) -> bytes:
        self._notes.note_name(f"header:{name.decode('latin-1')}")
        return self._plain[name]

    def __iter__(self) -> Iterator[bytes]:
        self._notes.note_name(HEADERS)
        return iter(self._plain)

    def __len__(self) -> int:
        self._notes.note_name(HEADERS)
        return len(self._plain)


class RecordedHeaders(Headers):
    """The header fields; what asks for all of them reads `raw`."""

    __slots__ = ("_notes", "_plain")

    def __init__(self, plain: Headers, notes: ReadNotes) -> None:
        self._plain = plain
        self._notes = notes

    @property
    def raw(self) -> Any:
        self._notes.note_name(HEADERS)
        return self._plain.raw

    def __getitem__(self, name: str) -> str:
        self._notes.note_name(f"header:{name.lower()}")
        return self._plain[name]

    def getlist(self, name: str) -> list[str]:
        self._notes.note_name(f"header:{name.lower()}")
        return self._plain.getlist(name)

    def __repr__(self) -> str:
        self._notes.note_name(HEADERS)
        return repr(self._plain)


class RecordedQuery(QueryParams):
    """The query: its pairs are in every key, the order of different names only where it is read."""

    __slots__ = ("notes",)

    notes: ReadNotes

    def __iter__(self) -> Iterator[str]:
        self.notes.note_name("query")
        return super().__iter__()

    def multi_items(self) -> list[tuple[str, str]]:
        self.notes.note_name("query")
        return super().multi_items()

    def __repr__(self) -> str:
        self.notes.note_name("query")
        return repr(QueryParams(self._pairs))


class RecordedState(State):
    """The attributes of a request; those that are set inside of the cache depend on other names."""

    __slots__ = ("_inner",)

    def __init__(self, plain: State, notes: ReadNotes) -> None:
        object.__setattr__(self, "_inner", (plain, notes))

    def __getattribute__(self, name: str) -> Any:
        plain, notes = cast("tuple[State, ReadNotes]", object.__getattribute__(self, "_inner"))
        # `vars(state)` asks for it, which is why this is no `__getattr__`
        if name == "__dict__":
            notes.note_name(STATE)
        elif name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        elif name not in notes.written:
            notes.note_name(f"state:{name}")
        return getattr(plain, name)

    def __setattr__(self, name: str, value: Any) -> None:
        plain, notes = cast("tuple[State, ReadNotes]", object.__getattribute__(self, "_inner"))
        notes.written.add(name)
        setattr(plain, name, value)

    def __delattr__(self, name: str) -> None:
        plain, notes = cast("tuple[State, ReadNotes]", object.__getattribute__(self, "_inner"))
        if name not in notes.written:
            notes.note_name(f"state:{name}")
        notes.written.add(name)
        delattr(plain, name)

    def __contains__(self, name: str) -> bool:
        plain, notes = cast("tuple[State, ReadNotes]", object.__getattribute__(self, "_inner"))
        if name not in notes.written:
            notes.note_name(f"state:{name}")
        return name in plain


class RecordedAddress(Address):
    """The address of the client; used otherwise than through `host`, its port decides too."""

    is_whole: bool

    @classmethod
    def from_address(cls, plain: Address, notes: ReadNotes) -> RecordedAddress:
        """Return the same address, noted as used whole until its host is asked for."""
        made = cls(*plain)
        made.is_whole = True
        notes.note_name("client.host")
        notes.addresses.append(made)
        return made

    @property
    def host(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride] - notes its use
        self.is_whole = False
        return cast("str", super().__getitem__(0))

    def __bool__(self) -> bool:
        self.is_whole = False
        return True


def _note_everything_before(method: Callable[[dict[str, Any]], T]) -> Callable[[RecordedScope], T]:
    """Return the same method, which reads all of the scope."""

    def note_and_call(self: RecordedScope) -> T:
        self.notes.note_everything()
        return method(self)

    return note_and_call


class RecordedScope(dict[str, Any]):
    """The scope; writes go to the scope of the server too."""

    def __init__(self, plain: Scope, notes: ReadNotes) -> None:
        super().__init__(plain)
        self._plain = plain
        self.notes = notes

    def _note_key(self, name: str) -> None:
        if name in _IN_EVERY_KEY:
            return
        if name == "client":
            self.notes.names.update(("client.host", "client.port"))
        elif (noted := _SCOPE_NAMES.get(name)) is not None:
            self.notes.note_name(noted)
        else:
            self.notes.note_everything()

    def __getitem__(self, name: str) -> Any:
        self._note_key(name)
        return super().__getitem__(name)

    def __contains__(self, name: object) -> bool:
        self._note_key(str(name))
        return super().__contains__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self._note_key(name)
        return super().get(name, default)

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._plain[name] = value

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        del self._plain[name]

    def setdefault(self, name: str, default: Any = None) -> Any:
        self._note_key(name)
        if not super().__contains__(name):
            self[name] = default
        return super().__getitem__(name)

    def pop(self, name: str, *default: Any) -> Any:
        self._note_key(name)
        self._plain.pop(name, None)
        return super().pop(name, *default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        super().update(*args, **kwargs)
        self._plain.update(*args, **kwargs)

    __iter__: Any = _note_everything_before(dict[str, Any].__iter__)
    keys: Any = _note_everything_before(dict[str, Any].keys)
    values: Any = _note_everything_before(dict[str, Any].values)
    items: Any = _note_everything_before(dict[str, Any].items)
    copy: Any = _note_everything_before(dict[str, Any].copy)
    __repr__: Any = _note_everything_before(dict[str, Any].__repr__)
