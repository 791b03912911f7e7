"""Types of libraries and subclasses of scalars, as types of a lock."""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import ipaddress
import pathlib
import uuid
from collections.abc import Mapping
from typing import Any

from treefold_contract import AnyType, ForeignType, ListType, MapType, Scalar, TypeNode

SCALARS: Mapping[Any, Scalar] = {
    type(None): Scalar("null"),
    bool: Scalar("bool"),
    int: Scalar("int"),
    float: Scalar("float"),
    str: Scalar("str"),
    bytes: Scalar("bytes", "base64"),
    bytearray: Scalar("bytes", "base64"),
    decimal.Decimal: Scalar("str", "decimal"),
    uuid.UUID: Scalar("str", "uuid"),
    datetime.datetime: Scalar("str", "datetime"),
    datetime.date: Scalar("str", "date"),
    datetime.time: Scalar("str", "time"),
    datetime.timedelta: Scalar("str", "duration"),
}
_BASES: tuple[tuple[Any, TypeNode], ...] = (
    ((dict, collections.abc.Mapping), MapType(Scalar("str"), AnyType())),
    ((list, tuple, set, frozenset, collections.abc.Set), ListType(AnyType())),
    # bool is an int, and datetime is a date: the narrower ones come first
    *((kind, SCALARS[kind]) for kind in (bool, int, float, str)),
    *((kind, SCALARS[kind]) for kind in (datetime.datetime, datetime.date, datetime.time)),
    *((kind, SCALARS[kind]) for kind in (decimal.Decimal, uuid.UUID, bytes)),
    (ipaddress.IPv4Address, Scalar("str", "ipv4")),
    (ipaddress.IPv6Address, Scalar("str", "ipv6")),
    (pathlib.PurePath, Scalar("str")),
)
"""Classes that inherit from a type with a JSON form."""
_LIBRARY: Mapping[str, Scalar] = {
    "EmailStr": Scalar("str", "email"),
    "NameEmail": Scalar("str", "email"),
    "SecretStr": Scalar("str"),
    "SecretBytes": Scalar("bytes"),
    "AwareDatetime": Scalar("str", "datetime-aware"),
    "NaiveDatetime": Scalar("str", "datetime-naive"),
    "PastDatetime": Scalar("str", "datetime"),
    "FutureDatetime": Scalar("str", "datetime"),
    "PastDate": Scalar("str", "date"),
    "FutureDate": Scalar("str", "date"),
    "IPvAnyAddress": Scalar("str", "ip"),
}
"""Types of pydantic by name: none of its modules is imported to ask."""
_URL = "Url"


def read_foreign_type(kind: Any, shown: str) -> TypeNode:
    """Return the type of a class that is no record and no scalar.

    Args:
        kind: the class, or an annotation of another kind.
        shown: the annotation as text, for a type of which nothing else is known.
    """
    if not isinstance(kind, type):
        return ForeignType(shown)
    for bases, node in _BASES:
        if issubclass(kind, bases):
            return node
    if kind.__module__.partition(".")[0] == "pydantic":
        if (known := _LIBRARY.get(kind.__name__)) is not None:
            return known
        if kind.__name__.endswith(_URL):
            return Scalar("str", "url")
    return ForeignType(shown)
