"""Values that survive a JSON round trip: the only values that sessions and caches keep."""

from __future__ import annotations

from typing import cast


def check_json(value: object, what: str) -> None:
    """Refuse a value that a JSON round trip would change.

    Args:
        what: the name of the value in the message, such as `Session value 'cart'`.

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
            check_json(item, what)
    elif kind is dict:
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str:
                raise TypeError(f"{what} must have text keys, got {key!r}")
            check_json(item, what)
    else:
        raise TypeError(
            f"{what} must consist of text, numbers, lists and dicts, got"
            f" {kind.__qualname__!r}, which JSON cannot restore"
        )


_SCALARS = frozenset({str, int, float, bool, type(None)})
