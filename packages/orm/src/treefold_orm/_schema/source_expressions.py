"""Python source of expressions, conditions, constraints and indexes, as they stand in a schema.

What a constraint or index can hold has a source; what needs a query (aggregates, windows, other
tables) is refused. Names of fields pass `path`, which renames them and records their use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import treefold_orm
from treefold_orm._base.errors import ModelError
from treefold_orm._compile.extending import Func
from treefold_orm._expressions.case import Case
from treefold_orm._expressions.casting import Cast
from treefold_orm._expressions.columns import Column
from treefold_orm._expressions.conditions import Comparison, Condition, Negated, Q
from treefold_orm._expressions.constraints import (
    CheckConstraint,
    Constraint,
    ExclusionConstraint,
    Index,
    UniqueConstraint,
)
from treefold_orm._expressions.expressions import Combined, Expression, F, OrderBy, Value
from treefold_orm._expressions.functions import Constant, Function
from treefold_orm._expressions.functions_choice import Coalesce, Greatest, Least, NullIf
from treefold_orm._expressions.functions_dates import Extract, Trunc
from treefold_orm._expressions.functions_json import JSONObject
from treefold_orm._expressions.ranges import Range
from treefold_orm._expressions.schema_sql import SchemaSQL
from treefold_orm._expressions.windows import WindowFunction
from treefold_orm._fields.base import Field
from treefold_orm._schema.source_fields import field_source
from treefold_orm._schema.source_values import Import, Imports, call, plain_value, quoted
from treefold_orm._search.search_index import SearchIndex

_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_BARE_FROM = frozenset({"Position", "Replace", "Substr", "Left", "Right", "LPad", "RPad", "Repeat"})
"""Functions of text whose arguments after the first are values unless they are expressions."""

SchemaPart = Field[Any] | Constraint | Index | SearchIndex | Expression | Condition | OrderBy


class SourceWriter:
    """Writes parts of a schema as Python source.

    `imports` and `names` collect the imports that the source needs and the fields that it names.

    Args:
        renames: New names of fields, by their old ones.
    """

    def __init__(self, renames: Mapping[str, str] | None = None) -> None:
        self.imports = Imports()
        self.names: set[str] = set()
        self._renames = renames or {}

    def write(self, part: SchemaPart) -> str:
        """Write one part.

        Raises `ModelError` for what a migration cannot hold.
        """
        match part:
            case Field():
                return field_source(part, self.imports, self.expression)
            case Condition():
                return self.condition(part)
            case Expression() | OrderBy():
                return self.expression(part)
            case _:
                return self._constraint(part)

    def value(self, value: Any, *, nested: bool = False) -> str:
        """Write a constant, or an expression that stands where one may."""
        if isinstance(value, (Expression, OrderBy)):
            return self.expression(value, nested=nested)
        if isinstance(value, (list, tuple)) and any(isinstance(v, Expression) for v in value):  # pyright: ignore[reportUnknownVariableType] - any items
            return f"[{', '.join(map(self.value, value))}]"  # pyright: ignore[reportUnknownArgumentType] - any items
        return plain_value(value, self.imports)

    def path(self, path: str) -> str:
        """Return the path to a column as it is now called, and record its first name."""
        head, mark, rest = path.partition("__")
        self.names.add(head)
        return f"{self._renames.get(head, head)}{mark}{rest}"

    def _orm(self, name: str) -> str:
        return self.imports.name("treefold_orm", name)

    def _term(self, term: Any) -> str:
        if not isinstance(term, str):
            return self.value(term)
        sign = "-" if term.startswith("-") else ""
        return quoted(sign + self.path(term.removeprefix("-")))

    def _argument(self, argument: Any) -> str:
        return quoted(self.path(argument)) if isinstance(argument, str) else self.value(argument)

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, made: Expression | OrderBy, *, nested: bool = False) -> str:
        """Write an expression or a term of an ordering."""
        match made:
            case OrderBy():
                way = "desc" if made.descending else "asc"
                options = {"nulls": quoted(made.nulls)} if made.nulls else {}
                return call(f"{self.expression(made.expression, nested=True)}.{way}", [], options)
            case F() | Column():
                return call(self._orm("F"), [quoted(self.path(made.path))], {})
            case Value():
                return call(
                    self._orm("Value"),
                    [self.value(made.value)],
                    self._options(output_field=made.output_field),
                )
            case Constant():
                return self.value(made.value)
            case SchemaSQL():
                return self._schema_sql(made)
            case Combined():
                left, right = (self.value(v, nested=True) for v in (made.left, made.right))
                text = f"{left} {made.op} {right}"
                return f"({text})" if nested else text
            case _:
                return self._function(made)

    def _options(self, **options: Any) -> dict[str, str]:
        given = {name: value for name, value in options.items() if value is not None}
        return {
            name: self.write(cast("Field[Any]", value))
            if isinstance(value, Field)
            else self.value(value)
            for name, value in given.items()
        }

    def _function(self, made: Expression) -> str:
        name = self._class(made)
        match made:
            case WindowFunction():
                raise _refused(made)
            case Function():
                bare = type(made).__name__ in _BARE_FROM and made.option != "computed"
                texts = [
                    self.value(arg.value)
                    if bare and place and isinstance(arg, Value) and arg.output_field is None
                    else self._argument(arg)
                    for place, arg in enumerate(made.args)
                ]
                return call(name, texts, {})
            case Func():
                return call(name, map(self._argument, made.args), {})
            case NullIf():
                return call(name, map(self._argument, made.args), {})
            case Coalesce() | Greatest() | Least():
                options = self._options(output_field=made.output_field)
                return call(name, map(self._argument, made.args), options)
            case Cast():
                target = self.write(made.output_field)
                return call(name, [self._argument(made.expression), target], {})
            case Extract():
                return call(name, [self._argument(made.expression), quoted(made.part)], {})
            case Trunc():
                texts = [self._argument(made.expression), quoted(made.unit)]
                return call(name, texts, self._options(tzinfo=made.tzinfo))
            case Range():
                texts = [self._argument(made.lower), self._argument(made.upper)]
                return call(name, texts, {"bounds": quoted(made.bounds)})
            case JSONObject():
                return call(name, [], {k: self._argument(v) for k, v in made.values.items()})
            case Case():
                return self._case(made, name)
            case _:
                raise _refused(made)

    def _case(self, made: Case, name: str) -> str:
        whens = [
            call(
                self._orm("When"),
                [self.condition(when.condition)],
                {"then": self.value(when.then)},
            )
            for when in made.whens
        ]
        options = self._options(default=made.default, output_field=made.output_field)
        return call(name, whens, options)

    def _schema_sql(self, made: SchemaSQL) -> str:
        names = [quoted(self.path(name)) for name in made.fields]
        return call(self._orm("SchemaSQL"), [quoted(made.text), *names], {})

    def _class(self, made: Expression) -> str:
        kind = type(made)
        if getattr(treefold_orm, kind.__name__, None) is kind:
            return self._orm(kind.__name__)
        if kind.__module__.startswith("treefold_orm."):
            raise _refused(made)
        return self.imports.of(kind)

    # -- conditions -------------------------------------------------------------------------------

    def condition(self, made: Condition, *, nested: bool = False) -> str:
        """Write a condition."""
        match made:
            case Q():
                return self._q(made, nested=nested)
            case SchemaSQL():
                return self._schema_sql(made)
            case Negated():
                return f"~{self.condition(made._inner, nested=True)}"
            case Comparison():
                return self._comparison(made, nested=nested)
            case _:
                raise _refused(made)

    def _q(self, made: Q, *, nested: bool) -> str:
        conditions = [child for child in made._children if isinstance(child, Condition)]
        lookups: dict[str, Any] = dict(
            child for child in made._children if not isinstance(child, Condition)
        )
        if lookups or not conditions:
            texts = [self.condition(child) for child in conditions]
            options = {self.path(name): self.value(value) for name, value in lookups.items()}
            return call(self._orm("Q"), texts, options)
        if len(conditions) == 1:
            return self.condition(conditions[0], nested=nested)
        sign = " | " if made._connector == "or" else " & "
        text = sign.join(self.condition(child, nested=True) for child in conditions)
        return f"({text})" if nested else text

    def _comparison(self, made: Comparison, *, nested: bool) -> str:
        left: Any = made._left
        if isinstance(left, Column):
            lookup = self.path(str(left.path)) + ("" if made._op == "exact" else f"__{made._op}")
            return call(self._orm("Q"), [], {lookup: self.value(made._right)})
        if made._op not in _SIGNS:
            raise _refused(made)
        right = self.value(made._right, nested=True)
        text = f"{self.expression(left, nested=True)} {_SIGNS[made._op]} {right}"
        return f"({text})" if nested else text

    # -- constraints and indexes ------------------------------------------------------------------

    def _constraint(self, made: Constraint | Index | SearchIndex) -> str:
        name = self._orm(type(made).__name__)
        match made:
            case UniqueConstraint():
                options = self._named(made.name, made.condition, made.include)
                options |= {"deferrable": quoted(made.deferrable)} if made.deferrable else {}
                options |= {} if made.nulls_distinct else {"nulls_distinct": "False"}
                options |= self._opclasses(made.opclasses)
                return call(name, map(self._term, made.fields or made.expressions), options)
            case Index():
                options = self._named(made.name, made.condition, made.include)
                options |= self._opclasses(made.opclasses)
                return call(name, map(self._term, made.fields), options)
            case CheckConstraint():
                return call(name, [self.condition(made.condition)], {"name": quoted(made.name)})
            case ExclusionConstraint():
                pairs = [f"({self._term(t)}, {quoted(o)})" for t, o in made.expressions]
                options = self._named(made.name, made.condition, ())
                options |= {"deferrable": quoted(made.deferrable)} if made.deferrable else {}
                return call(name, [f"[{', '.join(pairs)}]"], options)
            case SearchIndex():
                names = ", ".join(quoted(self.path(field)) for field in made.fields)
                options = {} if made.config == "simple" else {"config": quoted(made.config)}
                options |= {"weights": quoted(made.weights)} if made.weights else {}
                options |= {"name": quoted(made.name)} if made.name else {}
                return call(name, [f"[{names}]"], options)
            case _:
                raise _refused(made)

    def _named(
        self, name: str, condition: Condition | None, include: Iterable[str]
    ) -> dict[str, str]:
        options = {"name": quoted(name)} if name else {}
        if condition is not None:
            options["condition"] = self.condition(condition)
        kept = [quoted(self.path(field)) for field in include]
        return options | ({"include": f"[{', '.join(kept)}]"} if kept else {})

    def _opclasses(self, names: Iterable[str]) -> dict[str, str]:
        texts = [quoted(name) for name in names]
        return {"opclasses": f"[{', '.join(texts)}]"} if texts else {}


def _refused(made: object) -> ModelError:
    return ModelError(
        f"{type(made).__name__} cannot stand in a migration; constraints, indexes and defaults "
        "hold fields, values, functions and conditions on one row"
    )


def source_of(part: SchemaPart) -> tuple[str, list[Import]]:
    """Return the Python source of a field, constraint, index, condition or expression, and the
    imports that it needs.

    Parts that mean the same have the same source. Raises `ModelError` for what a migration cannot
    hold.
    """
    writer = SourceWriter()
    return writer.write(part), list(writer.imports)
