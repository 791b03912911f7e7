"""Trees as expressions of this ORM and of Django.

`DIFFERENCES` lists where the two mean different things by the same words; Django's side is written
so that it means what this ORM's side does.
"""

from __future__ import annotations

from typing import Any

import treefold_orm
from differential.trees import Node
from treefold_orm import fields

DIFFERENCES = {
    "int / int": "a float here, the whole part in Django on PostgreSQL: cast to a float there",
    "decimal / decimal": "rounded to max(places, 6) here, unrounded in Django: rounded there",
    "Avg of decimals": "a Decimal rounded to max(places, 6) here, unrounded in Django",
    "exclude": "all rows that filter() does not return; Django leaves out rows where an expression "
    "is NULL: a CASE of the condition there",
    "Q on NULL as a value": "False here, NULL in Django: Coalesce(..., False) there",
    "JSON path in an expression": "has the type that the expression needs here: Cast(KT()) there",
    "week_day inside an expression": "a number here, `DOW + 1` without parentheses in Django: cast",
    "Trunc inside an expression": "a datetime here, a timestamp without zone in Django: cast there",
    "Avg of durations": "rounded to the microsecond here, cut on PostgreSQL: one apart is the same",
    "Value(float)": "a float here, a numeric literal in Django on PostgreSQL: cast there",
    "mixed types": "have a common type here, need an output_field in Django",
    "decimals on SQLite": "exact here, floating point in Django: compared with PostgreSQL only",
    "dates, datetimes and spans on SQLite": "compared as moments here, as text in Django: as above",
    "Greatest, Least, Lower, Upper and JSON on SQLite": "as on PostgreSQL here; NULL wins in "
    "Django, and only ASCII letters have another case: as above",
    "NULL in an order": "the largest value here, the smallest in Django on SQLite",
    "filter before annotate": "narrows the rows, not the related rows that are aggregated: the "
    "condition is given as the aggregate's filter= in both",
}


NOT_ON_SQLITE = frozenset(
    {"decimal", "date", "datetime", "duration", "greatest", "least", "lower", "upper"}
    | {"json_number", "json_text"}
)


class Ours:
    """Writes expressions of this ORM."""

    names: Any = treefold_orm

    def of(self, node: Node) -> Any:
        """Return the expression of a tree."""
        n = self.names
        args = [self.of(arg) if isinstance(arg, Node) else arg for arg in node.args]
        match node.op:
            case "field":
                return n.F(args[0])
            case "value":
                return self.value(node)
            case "+" | "-" | "*" | "/" | "%":
                return self.arithmetic(node, *args)
            case "extract":
                return self.extract(*args)
            case "trunc":
                return self.trunc(node, *args)
            case "and":
                return args[0] & args[1]
            case "or":
                return args[0] | args[1]
            case "is":
                return n.Q(**{args[0]: args[1]})
            case "null":
                return n.Q(**{f"{args[0]}__isnull": args[1]})
            case "compare":
                return n.Q(**{f"{args[0]}__{args[1]}": args[2]})
            case _:
                return self.function(node, args)

    def value(self, node: Node) -> Any:
        """Return a bound value."""
        return self.names.Value(node.args[0])

    def extract(self, part: str, value: Any) -> Any:
        """Return a part of a date or datetime."""
        return self.names.Extract(value, part)

    def trunc(self, node: Node, unit: str, value: Any) -> Any:
        """Return a date or datetime cut down to a unit."""
        return self.names.Trunc(value, unit)

    def arithmetic(self, node: Node, left: Any, right: Any) -> Any:
        """Return two operands combined."""
        match node.op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "%":
                return left % right
            case _:
                return left / right

    def function(self, node: Node, args: list[Any]) -> Any:
        """Return a function or a choice."""
        n = self.names
        match node.op:
            case "case":
                return n.Case(n.When(args[0], then=args[1]), default=args[2])
            case "coalesce" | "greatest" | "least" | "nullif":
                kind = {"nullif": "NullIf"}.get(node.op, node.op.title())
                return getattr(n, kind)(*args)
            case "round":
                return n.Round(args[0], args[1])
            case "replace":
                return n.Replace(args[0], "a", "xy")
            case "to_int":
                return n.Cast(args[0], fields.BigIntegerField())
            case "to_decimal":
                return n.Cast(args[0], fields.DecimalField(max_digits=16, decimal_places=2))
            case "to_date":
                return n.Cast(args[0], fields.DateField())
            case "json_number":
                return n.F(f"extra__{args[0]}") + 0
            case "json_text":
                return n.Lower(n.F(f"extra__{args[0]}"))
            case _:
                return getattr(n, node.op.title())(*args)

    def mean(self, node: Node, **options: Any) -> Any:
        """Return an average."""
        return self.names.Avg(self.of(node), **options)


class Djangos(Ours):
    """Writes expressions of Django."""

    def __init__(self, names: Any) -> None:
        self.names = names
        self.fields: dict[str, Any] = {
            "int": names.BigIntegerField(),
            "float": names.FloatField(),
            "text": names.TextField(),
            "bool": names.BooleanField(),
            "date": names.DateField(),
            "datetime": names.DateTimeField(),
            "duration": names.DurationField(),
        }

    def field(self, node: Node) -> Any:
        """Return the output field of a node."""
        if node.kind == "decimal":
            return self.names.DecimalField(max_digits=60, decimal_places=node.places)
        return self.fields[node.kind]

    def value(self, node: Node) -> Any:
        made = self.names.Value(node.args[0], output_field=self.field(node))
        plain = node.kind in {"text", "bool"}
        return made if plain else self.names.Cast(made, self.field(node))

    def extract(self, part: str, value: Any) -> Any:
        return self.names.Cast(super().extract(part, value), self.names.BigIntegerField())

    def trunc(self, node: Node, unit: str, value: Any) -> Any:
        made = self.names.Trunc(value, unit, output_field=self.field(node))
        return self.names.Cast(made, self.field(node))

    def arithmetic(self, node: Node, left: Any, right: Any) -> Any:
        n = self.names
        if node.op == "/" and node.kind == "float":
            left = n.Cast(left, n.FloatField())
        made = n.ExpressionWrapper(
            super().arithmetic(node, left, right), output_field=self.field(node)
        )
        return (
            self.rounded(made, node.places) if node.op == "/" and node.kind == "decimal" else made
        )

    def rounded(self, made: Any, places: int) -> Any:
        """Round a decimal to so many places."""
        field = self.names.DecimalField(max_digits=60, decimal_places=places)
        return self.names.Round(made, precision=places, output_field=field)

    def function(self, node: Node, args: list[Any]) -> Any:
        n = self.names
        field = self.field(node)
        match node.op:
            case "case":
                when = n.When(args[0], then=args[1])
                return n.Case(when, default=args[2], output_field=field)
            case "coalesce" | "greatest" | "least":
                return getattr(n, node.op.title())(*args, output_field=field)
            case "nullif":
                return n.NullIf(*args, output_field=field)
            case "round":
                return n.Round(args[0], precision=args[1], output_field=field)
            case "abs" | "floor" | "ceil":
                return getattr(n, node.op.title())(args[0], output_field=field)
            case "concat":
                return n.Concat(
                    *(n.Cast(arg, n.TextField()) for arg in args), output_field=n.TextField()
                )
            case "replace":
                old, new = n.Value("a"), n.Value("xy")
                return n.Replace(args[0], old, new, output_field=field)
            case "substr":
                return n.Substr(*args)
            case "to_int":
                return n.Cast(args[0], n.BigIntegerField())
            case "to_decimal":
                return n.Cast(args[0], n.DecimalField(max_digits=16, decimal_places=2))
            case "to_date":
                return n.Cast(args[0], n.DateField())
            case "json_number":
                return n.Cast(n.KT(f"extra__{args[0]}"), n.FloatField())
            case "json_text":
                return n.Lower(n.Cast(n.KT(f"extra__{args[0]}"), n.TextField()))
            case _:
                return getattr(n, node.op.title())(*args)

    def mean(self, node: Node, **options: Any) -> Any:
        made = self.names.Avg(self.of(node), **options)
        return self.rounded(made, max(node.places, 6)) if node.kind == "decimal" else made
