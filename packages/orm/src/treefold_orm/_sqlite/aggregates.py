"""Aggregates that SQLite lacks: deviations, means of integers, and values collected in an order of
their own.

Deviations work over windows too, in time that grows with the rows. They are summed up as PostgreSQL
does it, so that both give the same float, except in frames that rows leave again: for those the
server starts over at every row.
"""

from __future__ import annotations

import array
import json
import math
import sqlite3
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, cast

from treefold_orm._base.data_errors import LONG, RANGE
from treefold_orm._sqlite.refusals import fail_statement

_UNITS = 1074  # a float is a whole number of halves to this power


def register_aggregates(raw: sqlite3.Connection) -> None:
    """Register the aggregates the dialect uses."""
    for name, kind in _DEVIATIONS.items():
        raw.create_window_function(f"treefold_{name}", 1, cast("Any", kind))
        # Python's module crashes where a window function is asked for the value of a frame before
        # it has met a row: where frames may be empty, their values come as one text
        raw.create_function(
            f"treefold_{name}_of", 1, _make_deviation_function(kind), deterministic=True
        )
    for name, (size, kind) in _AGGREGATES.items():
        raw.create_aggregate(f"treefold_{name}", size, cast("Any", kind))
    raw.create_function("treefold_digits", 1, _float_to_hex, deterministic=True)
    raw.create_function("treefold_item", 1, _encode_json_item, deterministic=True)
    raw.create_function("treefold_joined", 2, _join_json_items, deterministic=True)


class _Deviation:
    """The squares of the distances from the mean, added up value by value (Youngs and Cramer).

    Where values leave the frame of a window they cannot be taken back from such sums: exact sums
    of the values and of their squares go on from there.
    """

    sample: ClassVar[bool] = False
    root: ClassVar[bool] = False

    def __init__(self) -> None:
        self.values = array.array("d")
        self.total = 0.0
        self.squares = 0.0
        self.exact: _ExactSums | None = None

    def step(self, value: float | None) -> None:
        if value is None:
            return
        if self.exact is not None:
            self.exact.add_value(value, 1)
            return
        self.values.append(value)
        self.total += value
        count = float(len(self.values))
        if count > 1.0:
            distance = value * count - self.total
            self.squares += distance * distance / (count * (count - 1.0))

    def inverse(self, value: float | None) -> None:
        if value is None:
            return
        if self.exact is None:
            # floats could not be taken back: 1e16 + 1.0 - 1e16 is 0.0, where integers give the 1
            self.exact = _ExactSums()
            for known in self.values:
                self.exact.add_value(known, 1)
            del self.values[:]
        self.exact.add_value(value, -1)

    def value(self) -> float | None:
        """The result for the rows that were met."""
        if self.exact is not None:
            found = self.exact.compute_variance(self.sample)
        elif (divisor := len(self.values) - self.sample) < 1:
            found = None
        else:
            if not math.isfinite(self.total) or not math.isfinite(self.squares):
                fail_statement(RANGE)
            found = self.squares / divisor
        return math.sqrt(found) if self.root and found is not None else found

    finalize = value


class _ExactSums:
    """Sums of floats and of their squares, as integers in units of the smallest float."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.squares = 0

    def add_value(self, value: float, times: int) -> None:
        if not math.isfinite(value):
            fail_statement(RANGE)
        number, divisor = value.as_integer_ratio()
        scaled = number << (_UNITS - divisor.bit_length() + 1)
        self.count += times
        self.total += times * scaled
        self.squares += times * scaled * scaled

    def compute_variance(self, sample: bool) -> float | None:
        divisor = self.count - sample
        if divisor < 1:
            return None
        squares = self.count * self.squares - self.total * self.total
        try:
            # integers of any length divide with one rounding; float() of each could overflow
            return squares / (self.count * divisor << 2 * _UNITS)
        except OverflowError:
            fail_statement(RANGE)


class _MeanOfIntegers:
    """The mean of integers, of which the server keeps the sum exactly."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0

    def step(self, value: int | None) -> None:
        if value is not None:
            self.count += 1
            self.total += value

    def finalize(self) -> float | None:
        """The result for the rows that were met."""
        return float(self.total) / self.count if self.count else None


class _SortKey(NamedTuple):
    """How values are sorted by one key."""

    descending: bool
    nulls_first: bool


def _parse_plan(plan: str) -> tuple[bool, list[_SortKey]]:
    """Read a plan, which is True for distinct values and the keys that they are sorted by.

    The first letter is "d" for distinct values and "a" for all, then each key has two: "d" or "a"
    for descending or ascending, and "f" or "l" for NULLs first or last.

        >>> _parse_plan("adfal")
        (False, [_SortKey(descending=True, nulls_first=True),
        _SortKey(descending=False, nulls_first=False)])
    """
    keys = zip(plan[1::2], plan[2::2], strict=True)
    return plan[0] == "d", [_SortKey(order == "d", nulls == "f") for order, nulls in keys]


class _OrderedValues:
    """Values and the keys they are sorted by.

    `build_ordered_aggregate` of the dialect writes the call, whose first argument is a plan for
    `_parse_plan`, and the third one the delimiter of texts:

        StringAgg("title", ", ", order_by="-views")
        treefold_string_agg('adf', t0."title", ?, t0."views")
    """

    def __init__(self) -> None:
        self.plan = "a"
        self.delimiter: Any = None
        self.rows: list[tuple[Any, ...]] = []

    def step(self, plan: str, value: Any, delimiter: Any, *keys: Any) -> None:
        self.plan, self.delimiter = plan, delimiter
        self.rows.append((value, *keys))

    def sort_values(self) -> list[Any]:
        """The values in their order, each once where the plan says so."""
        rows = list(self.rows)
        is_distinct, keys = _parse_plan(self.plan)
        for place in range(len(keys), 0, -1):
            key = keys[place - 1]  # the first column of a row is the value
            nulls = [row for row in rows if row[place] is None]
            known = [row for row in rows if row[place] is not None]
            # the last key was first: sort() is stable, so that rows with one value here keep the
            # order of the later keys
            known.sort(key=lambda row: row[place], reverse=key.descending)
            rows = [*nulls, *known] if key.nulls_first else [*known, *nulls]
        values = [row[0] for row in rows]
        return list(dict.fromkeys(values)) if is_distinct else values


class _StringAggregate(_OrderedValues):
    def finalize(self) -> str | None:
        """The texts, joined."""
        found = [value for value in self.sort_values() if value is not None]
        if not found:
            return None
        made = str(self.delimiter).join(found)
        if len(made) >= 2**28:
            fail_statement(LONG)
        return made


class _ArrayAggregate(_OrderedValues):
    def finalize(self) -> str | None:
        """The values as a JSON list; binary values as hexadecimal text."""
        return f"[{','.join(map(_encode_json_item, self.sort_values()))}]" if self.rows else None


def _encode_json_item(value: Any) -> str:
    return json.dumps(value.hex() if isinstance(value, bytes) else value)


def _join_json_items(text: str | None, delimiter: str) -> str | None:
    return None if text is None else delimiter.join(json.loads(f"[{text}]"))


def _float_to_hex(value: float | None) -> str | None:
    return None if value is None else float(value).hex()


def _make_deviation_function(kind: type[_Deviation]) -> Callable[[str | None], float | None]:
    def compute_deviation(text: str | None) -> float | None:
        made = kind()
        for digits in text.split(",") if text else ():
            made.step(float.fromhex(digits))
        return made.value()

    return compute_deviation


_DEVIATIONS: dict[str, type[_Deviation]] = {
    f"{word}_{end}": type(f"{word}_{end}", (_Deviation,), {"root": root, "sample": sample})
    for word, root in (("stddev", True), ("var", False))
    for end, sample in (("pop", False), ("samp", True))
}
_AGGREGATES: dict[str, tuple[int, type[Any]]] = {
    "array_agg": (-1, _ArrayAggregate),
    "avg_integer": (1, _MeanOfIntegers),
    "string_agg": (-1, _StringAggregate),
}
