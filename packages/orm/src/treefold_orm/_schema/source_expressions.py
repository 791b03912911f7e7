"""Python source of expressions, conditions, constraints and indexes, as they stand in a schema.

What a constraint or index can hold has a source; what needs a query (aggregates, windows, other
tables) is refused. Names of fields pass `path`, which renames them and records their use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import treefold_orm as orm
from treefold_orm._base.errors import ModelError
from treefold_orm._fields.base import AnyField, Field
from treefold_orm._functions.base import Constant, Function
from treefold_orm._functions.windows import WindowFunction
from treefold_orm._schema.source_fields import write_field
from treefold_orm._schema.source_values import Import, Imports, quoted, write_call, write_constant
from treefold_orm._terms.constraints import Constraint
from treefold_orm._terms.operators import Combined, Comparison, Negated

_SIGNS = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
_BARE_FROM = frozenset({"Position", "Replace", "Substr", "Left", "Right", "LPad", "RPad", "Repeat"})
"""Functions of text whose arguments after the first are values unless they are expressions."""

SchemaPart = (
    AnyField
    | Constraint
    | orm.Index
    | orm.SearchIndex
    | orm.Expression
    | orm.Condition
    | orm.OrderBy
)


class SourceWriter:
    """Writes parts of a schema as Python source.

    `imports` and `names` collect the imports that the source needs and the fields that it names.

    Args:
        renames: new names of fields, by their old ones.
    """

    def __init__(self, renames: Mapping[str, str] | None = None) -> None:
        self.imports = Imports()
        self.names: set[str] = set()
        self._renames = renames or {}

    def write(self, part: SchemaPart) -> str:
        """Write one part.

        Raises `ModelError` for a value that a migration cannot hold.
        """
        match part:
            case Field():
                return write_field(part, self.imports, self.expression)
            case orm.Condition():
                return self.condition(part)
            case orm.Expression() | orm.OrderBy():
                return self.expression(part)
            case _:
                return self._write_constraint(part)

    def value(self, value: Any, *, nested: bool = False) -> str:
        """Write a constant, or an expression that stands where one may."""
        if isinstance(value, (orm.Expression, orm.OrderBy)):
            return self.expression(value, nested=nested)
        if isinstance(value, (list, tuple)) and any(isinstance(v, orm.Expression) for v in value):  # pyright: ignore[reportUnknownVariableType] - any items
            return f"[{', '.join(map(self.value, value))}]"  # pyright: ignore[reportUnknownArgumentType] - any items
        return write_constant(value, self.imports)

    def path(self, path: str) -> str:
        """Return the path to a column as it is now called, and record its first name."""
        head, mark, rest = path.partition("__")
        self.names.add(head)
        return f"{self._renames.get(head, head)}{mark}{rest}"

    def _import_from_orm(self, name: str) -> str:
        return self.imports.name("treefold_orm", name)

    def _write_term(self, term: Any) -> str:
        if not isinstance(term, str):
            return self.value(term)
        sign = "-" if term.startswith("-") else ""
        return quoted(sign + self.path(term.removeprefix("-")))

    def _write_argument(self, argument: Any) -> str:
        return quoted(self.path(argument)) if isinstance(argument, str) else self.value(argument)

    # -- expressions ------------------------------------------------------------------------------

    def expression(self, made: orm.Expression | orm.OrderBy, *, nested: bool = False) -> str:
        """Write an expression or a term of an ordering."""
        match made:
            case orm.OrderBy():
                way = "desc" if made.descending else "asc"
                options = {"nulls": quoted(made.nulls)} if made.nulls else {}
                return write_call(
                    f"{self.expression(made.expression, nested=True)}.{way}", [], options
                )
            case orm.F() | orm.Column():
                return write_call(self._import_from_orm("F"), [quoted(self.path(made.path))], {})
            case orm.Value():
                options = self._write_options(output_field=made.output_field)
                return write_call(self._import_from_orm("Value"), [self.value(made.value)], options)
            case Constant():
                return self.value(made.value)
            case orm.SchemaSQL():
                return self._write_schema_sql(made)
            case Combined() if made.op == "**":
                sides = [self._write_argument(made.left), self._write_argument(made.right)]
                return write_call(self._import_from_orm("Power"), sides, {})
            case Combined():
                left, right = (self.value(v, nested=True) for v in (made.left, made.right))
                text = f"{left} {made.op} {right}"
                return f"({text})" if nested else text
            case _:
                return self._write_function(made)

    def _write_options(self, **options: Any) -> dict[str, str]:
        given = {name: value for name, value in options.items() if value is not None}
        return {
            name: self.write(cast("AnyField", value))
            if isinstance(value, Field)
            else self.value(value)
            for name, value in given.items()
        }

    def _write_function(self, made: orm.Expression) -> str:
        name = self._write_class_name(made)
        match made:
            case WindowFunction():
                raise _build_unsupported_error(made)
            case Function():
                bare = type(made).__name__ in _BARE_FROM and made.option != "computed"
                texts = [
                    self.value(arg.value)
                    if bare and place and isinstance(arg, orm.Value) and arg.output_field is None
                    else self._write_argument(arg)
                    for place, arg in enumerate(made.args)
                ]
                return write_call(name, texts, {})
            case orm.Func() | orm.NullIf():
                return write_call(name, map(self._write_argument, made.args), {})
            case orm.Coalesce() | orm.Greatest() | orm.Least():
                options = self._write_options(output_field=made.output_field)
                return write_call(name, map(self._write_argument, made.args), options)
            case orm.Cast():
                target = self.write(made.output_field)
                return write_call(name, [self._write_argument(made.expression), target], {})
            case orm.Extract():
                texts = [self._write_argument(made.expression), quoted(made.part)]
                return write_call(name, texts, self._write_options(tzinfo=made.tzinfo))
            case orm.Trunc():
                texts = [self._write_argument(made.expression), quoted(made.unit)]
                return write_call(name, texts, self._write_options(tzinfo=made.tzinfo))
            case orm.Range():
                texts = [self._write_argument(made.lower), self._write_argument(made.upper)]
                return write_call(name, texts, {"bounds": quoted(made.bounds)})
            case orm.JSONObject():
                return write_call(
                    name, [], {k: self._write_argument(v) for k, v in made.values.items()}
                )
            case orm.Case():
                return self._write_case(made, name)
            case _:
                raise _build_unsupported_error(made)

    def _write_case(self, made: orm.Case, name: str) -> str:
        whens = [
            write_call(
                self._import_from_orm("When"),
                [self.condition(when.condition)],
                {"then": self.value(when.then)},
            )
            for when in made.whens
        ]
        options = self._write_options(default=made.default, output_field=made.output_field)
        return write_call(name, whens, options)

    def _write_schema_sql(self, made: orm.SchemaSQL) -> str:
        names = [quoted(self.path(name)) for name in made.fields]
        return write_call(self._import_from_orm("SchemaSQL"), [quoted(made.text), *names], {})

    def _write_class_name(self, made: orm.Expression) -> str:
        kind = type(made)
        if getattr(orm, kind.__name__, None) is kind:
            return self._import_from_orm(kind.__name__)
        if kind.__module__.startswith("treefold_orm."):
            raise _build_unsupported_error(made)
        return self.imports.of(kind)

    # -- conditions -------------------------------------------------------------------------------

    def condition(self, made: orm.Condition, *, nested: bool = False) -> str:
        """Write a condition."""
        match made:
            case orm.Q():
                return self._write_q(made, nested=nested)
            case orm.SchemaSQL():
                return self._write_schema_sql(made)
            case Negated():
                return f"~{self.condition(made.inner, nested=True)}"
            case Comparison():
                return self._write_comparison(made, nested=nested)
            case _:
                raise _build_unsupported_error(made)

    def _write_q(self, made: orm.Q, *, nested: bool) -> str:
        conditions = [child for child in made.children if isinstance(child, orm.Condition)]
        lookups = [child for child in made.children if not isinstance(child, orm.Condition)]
        # a call joins by AND, takes conditions before lookups, and each keyword once
        is_call = (
            [*conditions, *lookups] == list(made.children)
            and len(dict(lookups)) == len(lookups)
            and (made.connector != "or" or len(made.children) == 1)
        )
        if is_call and (lookups or not conditions):
            texts = [self.condition(child) for child in conditions]
            options = {self.path(name): self.value(value) for name, value in lookups}
            return write_call(self._import_from_orm("Q"), texts, options)
        if len(made.children) == 1:
            return self._write_q_child(made.children[0], nested=nested)
        sign = " | " if made.connector == "or" else " & "
        text = sign.join(self._write_q_child(child, nested=True) for child in made.children)
        return f"({text})" if nested else text

    def _write_q_child(self, child: Any, *, nested: bool) -> str:
        if isinstance(child, orm.Condition):
            return self.condition(child, nested=nested)
        name, value = child
        return write_call(self._import_from_orm("Q"), [], {self.path(name): self.value(value)})

    def _write_comparison(self, made: Comparison, *, nested: bool) -> str:
        left: Any = made.left
        if isinstance(left, orm.Column):
            lookup = self.path(str(left.path)) + ("" if made.op == "exact" else f"__{made.op}")
            return write_call(self._import_from_orm("Q"), [], {lookup: self.value(made.right)})
        if made.op not in _SIGNS:
            raise _build_unsupported_error(made)
        right = self.value(made.right, nested=True)
        text = f"{self.expression(left, nested=True)} {_SIGNS[made.op]} {right}"
        return f"({text})" if nested else text

    # -- constraints and indexes ------------------------------------------------------------------

    def _write_constraint(self, made: Constraint | orm.Index | orm.SearchIndex) -> str:
        name = self._import_from_orm(type(made).__name__)
        match made:
            case orm.UniqueConstraint():
                options = self._write_common_options(made.name, made.condition, made.include)
                options |= {"deferrable": quoted(made.deferrable)} if made.deferrable else {}
                options |= {} if made.nulls_distinct else {"nulls_distinct": "False"}
                options |= self._write_opclasses(made.opclasses)
                return write_call(
                    name, map(self._write_term, made.fields or made.expressions), options
                )
            case orm.Index():
                options = self._write_common_options(made.name, made.condition, made.include)
                options |= self._write_opclasses(made.opclasses)
                return write_call(name, map(self._write_term, made.fields), options)
            case orm.CheckConstraint():
                return write_call(
                    name, [self.condition(made.condition)], {"name": quoted(made.name)}
                )
            case orm.ExclusionConstraint():
                pairs = [f"({self._write_term(t)}, {quoted(o)})" for t, o in made.expressions]
                options = self._write_common_options(made.name, made.condition, ())
                options |= {"deferrable": quoted(made.deferrable)} if made.deferrable else {}
                return write_call(name, [f"[{', '.join(pairs)}]"], options)
            case orm.SearchIndex():
                names = ", ".join(quoted(self.path(field)) for field in made.fields)
                options = {} if made.config == "simple" else {"config": quoted(made.config)}
                options |= {"weights": quoted(made.weights)} if made.weights else {}
                options |= {"name": quoted(made.name)} if made.name else {}
                return write_call(name, [f"[{names}]"], options)
            case _:
                raise _build_unsupported_error(made)

    def _write_common_options(
        self, name: str, condition: orm.Condition | None, include: Iterable[str]
    ) -> dict[str, str]:
        options = {"name": quoted(name)} if name else {}
        if condition is not None:
            options["condition"] = self.condition(condition)
        kept = [quoted(self.path(field)) for field in include]
        return options | ({"include": f"[{', '.join(kept)}]"} if kept else {})

    def _write_opclasses(self, names: Iterable[str]) -> dict[str, str]:
        texts = [quoted(name) for name in names]
        return {"opclasses": f"[{', '.join(texts)}]"} if texts else {}


def _build_unsupported_error(made: object) -> ModelError:
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
