"""Python source of plain values, and the imports that source needs.

Only types with one certain spelling are written; everything else is refused. Text always passes
`quoted`, so that no value can become code.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import importlib
import keyword
import math
import unicodedata
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from treefold_orm._base.errors import ModelError

Import = tuple[str, str]  # a module and a name in it; an empty name imports the module


class Imports:
    """The imports of a piece of source, in a certain order."""

    def __init__(self) -> None:
        self._found: set[Import] = set()

    def name(self, module: str, name: str) -> str:
        """Require a name of a module; return how it is written."""
        self._found.add((module, name))
        return name

    def module(self, module: str) -> str:
        """Require a module; return how it is written."""
        self._found.add((module, ""))
        return module

    def of(self, thing: Any) -> str:
        """Require a class or function by the module that defines it; return how it is written.

        Raises `ModelError` for one that cannot be imported from there.
        """
        module, name = str(thing.__module__), str(thing.__qualname__)
        plain = all(is_plain_name(part) for part in f"{module}.{name}".split("."))
        if not plain or module == "__main__":
            raise ModelError(
                f"{module}.{name} cannot be imported by a migration; define it at the top of a "
                "module of its own"
            )
        return f"{self.module(module)}.{name}"

    def update(self, imports: Iterable[Import]) -> None:
        """Add the imports of another piece of source."""
        self._found.update(imports)

    def __iter__(self) -> Iterator[Import]:
        return iter(sorted(self._found))


def is_plain_name(text: str) -> bool:
    """True for text that can stand in source as a name."""
    # Python reads a name in its normal form, which is another text
    normal = unicodedata.is_normalized("NFKC", text)
    return normal and text.isidentifier() and not keyword.iskeyword(text)


def namespace_of(imports: Iterable[Import]) -> dict[str, Any]:
    """Add the imports of source; return the names that it uses."""
    names: dict[str, Any] = {}
    for module, name in imports:
        found = importlib.import_module(module)
        if name:
            names[name] = getattr(found, name)
        else:
            # `import a.b` binds the name a
            names[module.partition(".")[0]] = importlib.import_module(module.partition(".")[0])
    return names


def quoted(text: str) -> str:
    """Return text as a literal, in double quotes where these need no more escapes."""
    return _requote_literal(str.__repr__(text))  # a class of its own may have another one


def _requote_literal(literal: str) -> str:
    body = literal[1:-1]
    plain = body.replace("\\'", "'") if literal[0] == "'" else body
    if plain.count('"') > plain.count("'"):
        return "'" + plain.replace("'", "\\'") + "'"
    return '"' + plain.replace('"', '\\"') + '"'


def write_call(name: str, args: Iterable[str], options: Mapping[str, str]) -> str:
    """Write a call; options whose names are no names of Python go into a mapping."""
    words = [*args, *(f"{key}={text}" for key, text in options.items() if is_plain_name(key))]
    odd = [f"{quoted(key)}: {text}" for key, text in options.items() if not is_plain_name(key)]
    if odd:
        words.append(f"**{{{', '.join(odd)}}}")
    return f"{name}({', '.join(words)})"


def write_constant(value: Any, imports: Imports) -> str:
    """Write a constant.

    Raises `ModelError` for a value whose type has no certain spelling.
    """
    if isinstance(value, enum.Enum):
        return write_constant(value.value, imports)
    kind = cast("type[Any]", type(value))
    if value is None or kind in (bool, int):
        return repr(value)
    if kind is bytes:
        return f"b{_requote_literal(repr(value)[1:])}"
    if kind is str:
        return quoted(value)
    if kind is float:
        # the repr() of the others is nan or inf, which are no names of Python
        return repr(value) if math.isfinite(value) else f"float({quoted(repr(value))})"
    if kind is decimal.Decimal:
        return f"{imports.name('decimal', 'Decimal')}({quoted(str(value))})"
    if kind is uuid.UUID:
        return f"{imports.name('uuid', 'UUID')}({quoted(str(value))})"
    if kind in (dt.date, dt.time, dt.datetime, dt.timedelta, dt.timezone):
        return _write_datetime(value, imports)
    if kind in (list, tuple, set, frozenset, dict):
        return _write_collection(value, imports)
    import zoneinfo  # imports the build's configuration, and hardly a schema holds a zone

    if kind is zoneinfo.ZoneInfo and value.key:
        return f"{imports.name('zoneinfo', 'ZoneInfo')}({quoted(value.key)})"
    raise ModelError(
        f"{value!r} of type {kind.__name__} cannot be written in a migration; use a plain value"
    )


def _write_datetime(value: Any, imports: Imports) -> str:
    imports.module("datetime")
    if isinstance(value, dt.timezone):
        return _write_timezone(value)
    zone = getattr(value, "tzinfo", None)
    if zone is None:
        return repr(value)
    plain = repr(value.replace(tzinfo=None))
    return f"{plain[:-1]}, tzinfo={write_constant(zone, imports)})"


def _write_timezone(zone: dt.timezone) -> str:
    if zone is dt.UTC:
        return "datetime.timezone.utc"
    made: Any = zone.__reduce__()  # nothing else tells whether it was given a name
    offset, *name = made[1]
    return f"datetime.timezone({', '.join([repr(offset), *map(quoted, name)])})"


def _write_collection(value: Any, imports: Imports) -> str:
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        texts = [f"{write_constant(k, imports)}: {write_constant(v, imports)}" for k, v in pairs]
        return "{" + ", ".join(texts) + "}"
    texts = [write_constant(item, imports) for item in cast("Iterable[Any]", value)]
    if isinstance(value, list):
        return f"[{', '.join(texts)}]"
    if isinstance(value, tuple):
        return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
    name = "set" if isinstance(value, set) else "frozenset"
    # sorted: the order of a set of texts changes with the hash seed of each process
    return f"{name}([{', '.join(sorted(texts))}])"
