"""Random expressions as data: a tree of operators, with the type and size of every value.

Sizes keep numbers small enough for 32 bits in Django and for 18 digits on SQLite, so that what is
compared is the meaning, not the limits (which the table of types looks at).
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from decimal import Decimal as D
from typing import Any

UTC = dt.UTC


@dataclass(frozen=True, slots=True)
class Node:
    """One operator, its operands, and the type of its value."""

    op: str
    kind: str
    args: tuple[Any, ...] = ()
    places: int = 0
    size: float = 0.0

    @property
    def parts(self) -> list[Node]:
        """The nodes below."""
        return [arg for arg in self.args if isinstance(arg, Node)]

    def words(self) -> set[str]:
        """Return the types of all values inside, and the operators."""
        return {self.kind, self.op}.union(*(part.words() for part in self.parts))

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.args))})" if self.args else self.op


FIELDS: dict[str, list[tuple[str, int, float]]] = {
    "int": [("amount", 0, 60), ("small", 0, 30), ("shop__floors", 0, 4)],
    "decimal": [("price", 2, 500), ("rate", 4, 10), ("shop__fee", 3, 20)],
    "float": [("weight", 0, 60)],
    "text": [("title", 0, 10), ("shop__name", 0, 10)],
    "bool": [("paid", 0, 0)],
    "date": [("day", 0, 0), ("shop__opened", 0, 0)],
    "datetime": [("moment", 0, 0)],
    "duration": [("span", 0, 10)],
}
VALUES: dict[str, list[Any]] = {
    "int": [0, 1, 2, 3, 7],
    "decimal": [D("2.50"), D("0.3050"), D("-1.5"), D("7"), D("1.19")],
    "float": [2.5, 0.3, -0.1, 7.0],
    "text": ["ash", "Oak", "", "10.5"],
    "bool": [True, False],
    "date": [dt.date(2024, 2, 29), dt.date(2024, 1, 1)],
    "datetime": [
        dt.datetime(2024, 2, 29, tzinfo=UTC),
        dt.datetime(2023, 12, 31, 23, 59, 59, 999999, UTC),
    ],
    "duration": [dt.timedelta(seconds=7), dt.timedelta(microseconds=-1)],
}  # fmt: skip
BESIDE = {  # types that may stand beside each other
    "int": ["int", "decimal", "float"],
    "decimal": ["decimal", "int", "float"],
    "float": ["float", "int", "decimal"],
    "date": ["date", "datetime"],
    "datetime": ["datetime", "date"],
    "text": ["text"],
    "duration": ["duration"],
}
KINDS = ("int", "decimal", "float", "text", "date", "datetime", "duration")
_NUMBERS = ("int", "decimal", "float")
_LIMITS = {"int": 1e9, "decimal": 1e17, "float": 1e12, "duration": 1e6}


def wider(*kinds: str) -> str:
    """Return the common type."""
    for kind in ("float", "decimal", "datetime"):
        if kind in kinds:
            return kind
    return kinds[0]


class Maker:
    """Makes random expressions."""

    def __init__(self, rng: random.Random, *, related: bool = True) -> None:
        self.rng = rng
        self.related = related
        self.notes: list[tuple[str, Node]] = []

    def leaf(self, kind: str) -> Node:
        """Draw a field or a value."""
        if self.rng.random() < 0.75:
            fields = [field for field in FIELDS[kind] if self.related or "__" not in field[0]]
            name, places, size = self.rng.choice(fields)
            return Node("field", kind, (name,), places, size)
        value = self.rng.choice(VALUES[kind])
        places = max(0, -value.as_tuple().exponent) if kind == "decimal" else 0
        return Node("value", kind, (value,), places, 10)

    def make(self, kind: str, depth: int) -> Node:
        """Draw an expression of a type, small enough."""
        if depth <= 0:
            return self.leaf(kind)
        for _ in range(6):
            made = getattr(self, f"_{kind}")(depth - 1)
            if made.size * 10**made.places <= _LIMITS.get(kind, 1e18):
                return made
        return self.leaf(kind)

    def _among(self, kind: str, depth: int) -> Node:
        """A choice whose values have this common type."""
        one = kind
        two = self.rng.choice([k for k in BESIDE[kind] if wider(kind, k) == kind])
        if self.rng.random() < 0.5:
            one, two = two, one
        left, right = self.make(one, depth), self.make(two, depth)
        op = self.rng.choice(["coalesce", "greatest", "least", "case", "nullif"])
        if op == "nullif":
            left, right = self.make(kind, depth), self.make(kind, depth)
        args = (self.condition(depth), left, right) if op == "case" else (left, right)
        return Node(op, kind, args, max(left.places, right.places), max(left.size, right.size))

    def _arithmetic(self, op: str, left: Node, right: Node) -> Node:
        kind = wider(left.kind, right.kind)
        size = left.size * right.size if op == "*" else left.size + right.size
        places = left.places + right.places if op == "*" else max(left.places, right.places)
        if op == "/":
            kind = "float" if kind == "int" else kind
            size, places = left.size * 10_000, max(places, 6)
        if op == "%":
            size = right.size
        return Node(op, kind, (left, right), places if kind == "decimal" else 0, size)

    def _int(self, depth: int) -> Node:
        match self.rng.randrange(6):
            case 0 | 1:
                op = self.rng.choice("+-*%")
                right = self.make("int", depth)
                if op == "%":
                    right = self.nonzero(right)
                return self._arithmetic(op, self.make("int", depth), right)
            case 2:
                return Node("length", "int", (self.make("text", depth),), 0, 40)
            case 3:
                part = self.rng.choice(["year", "month", "day", "week", "week_day", "quarter"])
                moment = self.make(self.rng.choice(["date", "datetime"]), depth)
                return Node("extract", "int", (part, moment), 0, 3000)
            case 4:
                inner = self.make("decimal", depth)
                return Node("to_int", "int", (inner,), 0, inner.size)
            case _:
                return self._among("int", depth)

    def nonzero(self, node: Node) -> Node:
        """Return the value, NULL instead of zero."""
        zero = Node("value", node.kind, ({"decimal": D(0), "float": 0.0}.get(node.kind, 0),))
        return Node("nullif", node.kind, (node, zero), node.places, node.size)

    def _decimal(self, depth: int) -> Node:
        pick = self.rng.randrange(7)
        if pick < 3:
            op = self.rng.choice("+-*%/")
            other = self.rng.choice(["decimal", "int"])
            left, right = self.make("decimal", depth), self.make(other, depth)
            if self.rng.random() < 0.3:
                left, right = right, left
            return self._arithmetic(op, left, self.nonzero(right) if op in "/%" else right)
        inner = self.make("decimal", depth)
        if pick == 3:
            return Node("round", "decimal", (inner, self.rng.choice([0, 1, 2])), 2, inner.size)
        if pick == 4:
            op = self.rng.choice(["abs", "floor", "ceil"])
            places = inner.places if op == "abs" else 0
            return Node(op, "decimal", (inner,), places, inner.size)
        if pick == 5:
            return Node("to_decimal", "decimal", (self.make("int", depth),), 2, 1e9)
        return self._among("decimal", depth)

    def _float(self, depth: int) -> Node:
        pick = self.rng.randrange(6)
        if pick == 5:
            return Node("json_number", "float", ("n",), 0, 9)
        if pick < 3:
            left, right = self.make("float", depth), self.make(self.rng.choice(_NUMBERS), depth)
            if self.rng.random() < 0.3:
                left, right = right, left
            op = self.rng.choice("+-*/")
            return self._arithmetic(op, left, self.nonzero(right) if op == "/" else right)
        if pick == 3:
            left, right = self.make("int", depth), self.nonzero(self.make("int", depth))
            return self._arithmetic("/", left, right)
        return self._among("float", depth)

    def _text(self, depth: int) -> Node:
        inner = self.make("text", depth)
        match self.rng.randrange(6):
            case 0:
                return Node(self.rng.choice(["lower", "upper", "trim"]), "text", (inner,))
            case 1:
                kind = self.rng.choice(["text", "int", "decimal"])
                # a choice between decimals has the most places here, and each its own in Django
                other = self.make(kind, 0 if kind == "decimal" else depth)
                return Node("concat", "text", (inner, other))
            case 2:
                return Node("substr", "text", (inner, self.rng.randrange(1, 4), 3))
            case 3:
                return Node("replace", "text", (inner, "a", "xy"))
            case 4:
                return Node("json_text", "text", ("s",))
            case _:
                return self._among("text", depth)

    def _date(self, depth: int) -> Node:
        match self.rng.randrange(3):
            case 0:
                unit = self.rng.choice(["year", "quarter", "month", "week", "day"])
                return Node("trunc", "date", (unit, self.make("date", depth)))
            case 1:
                return Node("to_date", "date", (self.make("datetime", depth),))
            case _:
                return self._among("date", depth)

    def _datetime(self, depth: int) -> Node:
        moment = self.make("datetime", depth)
        match self.rng.randrange(3):
            case 0:
                span = self.make("duration", depth)
                return Node(self.rng.choice("+-"), "datetime", (moment, span))
            case 1:
                unit = self.rng.choice(
                    ["year", "quarter", "month", "week", "day", "hour", "second"]
                )
                return Node("trunc", "datetime", (unit, moment))
            case _:
                return self._among("datetime", depth)

    def _duration(self, depth: int) -> Node:
        match self.rng.randrange(3):
            case 0:
                kind = self.rng.choice(["date", "datetime"])
                args = self.make(kind, depth), self.make(kind, depth)
                return Node("-", "duration", args, 0, 10)
            case 1:
                args = self.make("duration", depth), self.make("duration", depth)
                return Node(self.rng.choice("+-"), "duration", args, 0, 20)
            case _:
                return self._among("duration", depth)

    # -- conditions -------------------------------------------------------------------------------

    def condition(self, depth: int) -> Node:
        """Draw a condition; its left sides become annotations."""
        pick = self.rng.random()
        if depth > 0 and pick < 0.3:
            both = self.condition(depth - 1), self.condition(depth - 1)
            return Node(self.rng.choice(["and", "or"]), "condition", both)
        if pick < 0.4:
            return Node("is", "condition", ("paid", self.rng.random() < 0.5))
        kind = self.rng.choice(KINDS)
        left = self.make(kind, depth)
        if pick < 0.5:
            return Node("null", "condition", (self.note(left), self.rng.random() < 0.5, left))
        right = self.make(self.rng.choice(BESIDE[kind]), depth)
        op = self.rng.choice(["exact", "gt", "gte", "lt", "lte"])
        return Node("compare", "condition", (self.note(left), op, right, left))

    def note(self, node: Node) -> str:
        """Return the name of an annotation that holds a value."""
        if node.op == "field":
            return str(node.args[0])
        name = f"note{len(self.notes)}"
        self.notes.append((name, node))
        return name
