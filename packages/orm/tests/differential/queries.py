"""Random queries over random trees, in both ORMs, and the comparison of their rows."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import treefold_orm
from differential import tables
from differential.trees import KINDS, Maker, Node
from differential.writing import Djangos, Ours
from treefold_orm import Exists, OuterRef, Subquery, transaction

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Query:
    """One query: how it is asked of this ORM and of Django, and what is in it."""

    label: str
    ours: Callable[[Any], Rows]
    django: Callable[[Any, Any], Rows]
    words: frozenset[str]
    ordered: bool


def noted(query: Any, write: Ours, notes: list[tuple[str, Node]]) -> Any:
    """Add annotations to a query."""
    for name, node in notes:
        query = query.annotate(**{name: write.of(node)})
    return query


class Builder:
    """Makes random queries."""

    def __init__(self, seed: int, names: Any) -> None:
        self.rng = random.Random(seed)
        self.names = names
        self.write = Djangos(names)

    def query(self) -> Query:
        """Draw one query of a random form."""
        forms = [self.values, self.values, self.filter, self.filter, self.exclude, self.groups,
                 self.aggregate, self.related, self.inner, self.window, self.union,
                 self.update]  # fmt: skip
        return self.rng.choice(forms)()

    def _made(
        self,
        label: str,
        form: Callable[[Any, Ours, Any], Any],
        nodes: list[Node],
        *,
        ordered: bool = True,
    ) -> Query:
        def ours(alias: str) -> Rows:
            rows: Any = tables.Sale.objects.using(alias)
            return [*form(rows, Ours(), treefold_orm)]

        def django(alias: str, write: Djangos) -> Rows:
            return [*form(self.names.Sale.objects.using(alias), write, self.names)]

        words = frozenset[str]().union(*(node.words() for node in nodes))
        return Query(label, ours, django, words, ordered)

    def _kind(self) -> str:
        return self.rng.choice(KINDS)

    def values(self) -> Query:
        """Select expressions of every row."""
        maker = Maker(self.rng)
        nodes = [maker.make(self._kind(), 3) for _ in range(3)]

        def form(rows: Any, write: Ours, names: Any) -> Any:
            rows = noted(rows, write, maker.notes)
            named = {f"x{i}": write.of(node) for i, node in enumerate(nodes)}
            return rows.annotate(**named).order_by("id").values_list("id", *named)

        return self._made(f"values {[*map(str, nodes)]}", form, nodes + _inside(maker))

    def filter(self) -> Query:
        """Filter by a condition and order by an expression."""
        maker = Maker(self.rng)
        condition, order = maker.condition(2), maker.make(self.rng.choice(["int", "decimal"]), 2)

        def form(rows: Any, write: Ours, names: Any) -> Any:
            rows = noted(rows, write, maker.notes).annotate(order=write.of(order))
            rows = rows.filter(write.of(condition)).order_by("order", "id")
            return rows.values_list("id", "order")

        nodes = [condition, order, *_inside(maker)]
        return self._made(f"filter {condition} order {order}", form, nodes)

    def exclude(self) -> Query:
        """Exclude the rows that meet a condition."""
        maker = Maker(self.rng)
        condition = maker.condition(2)

        def form(rows: Any, write: Ours, names: Any) -> Any:
            rows = noted(rows, write, maker.notes)
            if names is treefold_orm:
                rows = rows.exclude(write.of(condition))
            else:
                when = names.When(write.of(condition), then=names.Value(1))
                met = names.Case(when, default=names.Value(0), output_field=names.IntegerField())
                rows = rows.annotate(met=met).filter(met=0)
            return rows.order_by("id").values_list("id")

        return self._made(f"exclude {condition}", form, [condition, *_inside(maker)])

    def _aggregates(self, maker: Maker) -> list[tuple[str, Node]]:
        made: list[tuple[str, Node]] = []
        for _ in range(2):
            name = self.rng.choice(["sum", "avg", "min", "max", "count"])
            kinds = ["int", "decimal", "float", "duration"]
            kind = self.rng.choice(kinds if name in {"sum", "avg"} else [*KINDS])
            made.append((name, maker.make(kind, 2)))
        return made

    def _aggregated(self, name: str, node: Node, write: Ours, names: Any) -> Any:
        if name == "avg":
            return write.mean(node)
        return getattr(names, name.title())(write.of(node))

    def groups(self) -> Query:
        """Aggregate in groups."""
        maker = Maker(self.rng)
        keys = ["int", "text", "date", "datetime", "decimal"]
        key = maker.make(self.rng.choice(keys), 2)
        aggregates = self._aggregates(maker)

        def form(rows: Any, write: Ours, names: Any) -> Any:
            rows = noted(rows, write, maker.notes).annotate(key=write.of(key)).order_by()
            named = {
                f"x{i}": self._aggregated(name, node, write, names)
                for i, (name, node) in enumerate(aggregates)
            }
            return rows.values("key").annotate(**named).values_list("key", *named)

        nodes = [key, *(node for _, node in aggregates), *_inside(maker)]
        label = f"groups by {key}: {[f'{name} {node}' for name, node in aggregates]}"
        return self._made(label, form, nodes, ordered=False)

    def aggregate(self) -> Query:
        """Aggregate all rows."""
        maker = Maker(self.rng)
        aggregates = self._aggregates(maker)

        def form(rows: Any, write: Ours, names: Any) -> Any:
            named = {
                f"x{i}": self._aggregated(name, node, write, names)
                for i, (name, node) in enumerate(aggregates)
            }
            return [(*noted(rows, write, maker.notes).aggregate(**named).values(),)]

        nodes = [*(node for _, node in aggregates), *_inside(maker)]
        return self._made(f"aggregate {[f'{n} {t}' for n, t in aggregates]}", form, nodes)

    def related(self) -> Query:
        """Aggregate related rows that meet a condition."""
        name = self.rng.choice(["Sum", "Min", "Max", "Count"])
        field = self.rng.choice(["price", "amount", "weight", "rate"])
        least, deep = self.rng.randrange(30), self.rng.random() < 0.5
        kinds = {"price": "decimal", "rate": "decimal", "amount": "int", "weight": "float"}

        def form(rows: Any, write: Ours, names: Any) -> Any:
            shops = names.Shop if hasattr(names, "Shop") else tables.Shop
            alias = rows.db if hasattr(rows, "db") else rows._alias
            value: Any = names.F(f"sales__{field}") * names.F("sales__amount") if deep else None
            if deep and hasattr(names, "ExpressionWrapper"):
                node = Node("field", kinds[field], (), 4)
                value = names.ExpressionWrapper(value, output_field=self.write.field(node))
            condition = names.Q(sales__amount__gte=least)
            made = getattr(names, name)(value if deep else f"sales__{field}", filter=condition)
            query = shops.objects.using(alias).annotate(x=made).order_by("id")
            return query.values_list("id", "x")

        label = f"related {name} of {field} from {least} on{' times amount' * deep}"
        return self._made(label, form, [Node("field", kinds[field])])

    def inner(self) -> Query:
        """Select a subquery where another one has rows, both about the row of the outer query."""
        maker = Maker(self.rng)
        value = maker.make(self.rng.choice(["int", "decimal", "float", "text"]), 1)
        op = self.rng.choice(["lt", "gte", "exact"])
        mine, theirs = (
            self.rng.choice(["amount", "price", "weight", "rate", "small"]) for _ in range(2)
        )

        def form(rows: Any, write: Ours, names: Any) -> Any:
            ours = names is treefold_orm
            sales: Any = tables.Sale.objects if ours else names.Sale.objects
            outer, sub, exists = (
                (OuterRef, Subquery, Exists)
                if ours
                else (names.OuterRef, names.Subquery, names.Exists)
            )
            inner = noted(sales.filter(shop=outer("shop")), write, maker.notes)
            first = inner.annotate(v=write.of(value)).order_by("id").values("v")[:1]
            there = sales.filter(**{"shop": outer("shop"), f"{mine}__{op}": outer(theirs)})
            query = rows.annotate(x=sub(first)).filter(exists(there))
            return query.order_by("id").values_list("id", "x")

        nodes = [value, *_inside(maker)]
        return self._made(f"inner {value} where {mine} {op} {theirs}", form, nodes)

    def window(self) -> Query:
        """Aggregate over a window."""
        maker = Maker(self.rng)
        name = self.rng.choice(["sum", "avg", "min", "max", "count"])
        node = maker.make(self.rng.choice(["int", "decimal", "float"]), 1)

        def form(rows: Any, write: Ours, names: Any) -> Any:
            rows = noted(rows, write, maker.notes)
            made = getattr(names, name.title())(write.of(node))
            options = {"partition_by": ["shop"]}
            if names is not treefold_orm:
                options = {"partition_by": [names.F("shop")]}
            window = names.Window(made, **options)
            if names is not treefold_orm and name == "avg" and node.kind == "decimal":
                window = self.write.rounded(window, max(node.places, 6))
            return rows.annotate(x=window).order_by("id").values_list("id", "x")

        return self._made(f"window {name} {node}", form, [node, *_inside(maker)])

    def update(self) -> Query:
        """Set columns to expressions of other types, and roll back."""
        maker = Maker(self.rng, related=False)
        targets = {
            "price": ["decimal", "int", "float"],
            "rate": ["decimal", "int", "float"],
            "weight": ["decimal", "int", "float"],
            "amount": ["decimal", "int"],
            "day": ["date", "datetime"],
            "moment": ["date", "datetime"],
            "title": ["text"],
            "span": ["duration"],
        }
        chosen = self.rng.sample([*targets], 2)
        nodes = {name: maker.make(self.rng.choice(targets[name]), 2) for name in chosen}

        def form(rows: Any, write: Ours, names: Any) -> Any:
            values = {name: write.of(node) for name, node in nodes.items()}
            if names is treefold_orm:
                undone: Any = transaction(rows._alias, rollback=True)
            else:
                undone = names.transaction.atomic(using=rows.db)
            with undone:
                noted(rows, write, maker.notes).update(**values)
                found = [*rows.order_by("id").values_list("id", *nodes)]
                if names is not treefold_orm:
                    names.transaction.set_rollback(True, using=rows.db)
            return found

        label = f"update { ({name: str(node) for name, node in nodes.items()}) }"
        return self._made(label, form, [*nodes.values(), *_inside(maker)])

    def union(self) -> Query:
        """Combine the rows of two queries in one column."""
        maker = Maker(self.rng)
        kind = self.rng.choice(["int", "decimal", "text", "date"])
        other = {"decimal": "int"}.get(kind, kind)
        left, right = maker.make(kind, 1), maker.make(other, 1)
        op = self.rng.choice(["union", "intersection", "difference"])

        def form(rows: Any, write: Ours, names: Any) -> Any:
            rows = noted(rows, write, maker.notes).order_by()
            one = rows.annotate(x=write.of(left)).values_list("x")
            two = rows.annotate(x=write.of(right)).values_list("x")
            return getattr(one, op)(two)

        nodes = [left, right, *_inside(maker)]
        return self._made(f"{op} {left} and {right}", form, nodes, ordered=False)


def _inside(maker: Maker) -> list[Node]:
    return [node for _, node in maker.notes]


# -- comparison -----------------------------------------------------------------------------------


def alike(a: Any, b: Any) -> bool:
    """Tell whether two values are the same, floats up to their last digits."""
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None:
        return a is b
    if isinstance(a, (int, Decimal)) and isinstance(b, (int, Decimal)):
        return a == b
    if isinstance(a, (int, float, Decimal)) and isinstance(b, (int, float, Decimal)):
        return math.isclose(float(a), float(b), rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(a, dt.timedelta) and isinstance(b, dt.timedelta):
        return abs(a - b) <= dt.timedelta(microseconds=1)
    if type(a) is dt.date and isinstance(b, dt.datetime):
        return b == dt.datetime.combine(a, dt.time(), dt.UTC)
    return type(a) is type(b) and a == b


def same_rows(found: Rows, wanted: Rows, *, ordered: bool) -> bool:
    """Tell whether two results have the same rows."""
    if len(found) != len(wanted):
        return False
    if not ordered:
        found, wanted = sorted(found, key=_sorting), sorted(wanted, key=_sorting)
    return all(
        len(a) == len(b) and all(map(alike, a, b)) for a, b in zip(found, wanted, strict=True)
    )


def _sorting(row: tuple[Any, ...]) -> tuple[Any, ...]:
    key = row[0]
    return (key is not None, float(key) if isinstance(key, (int, Decimal)) else 0, str(key))
