"""Values that survive a JSON round trip: the only values that sessions and caches keep."""

from __future__ import annotations

from typing import cast


def require_json_round_trip(value: object, label: str) -> None:
    """Refuse a value that a JSON round trip would change.

    Args:
        label: the name of the value in the message, such as `Session value 'cart'`.

    Raises:
        TypeError: for a type that JSON has no form for, such as a date or a tuple, and for keys
            that are not text.
        RecursionError: for a list or dict that contains itself.
    """
    # the exact class: an IntEnum or an OrderedDict would come back as its base class
    kind = type(value)
    if kind in _SCALARS:
        return
    if kind is list:
        for item in cast("list[object]", value):
            require_json_round_trip(item, label)
    elif kind is dict:
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str:
                raise TypeError(f"{label} must have text keys, got {key!r}")
            require_json_round_trip(item, label)
    else:
        raise TypeError(
            f"{label} must consist of text, numbers, lists and dicts, got"
            f" {kind.__qualname__!r}, which JSON cannot restore"
        )


_SCALARS = frozenset({str, int, float, bool, type(None)})
