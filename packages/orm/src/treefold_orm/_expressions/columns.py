"""Columns of a model as expressions, from class access: `Post.title`, `Post.author.to.name`.

Only this form reaches sensitive fields. Names as text are resolved in `expressions.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.expressions import Expression, compared, freeze_path
from treefold_orm._expressions.nodes import Expr
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Meta
from treefold_orm._fields.relations import ForeignKey, is_foreign_key

if TYPE_CHECKING:
    from treefold_orm._expressions.conditions import Condition
    from treefold_orm._models.model import Model

T = TypeVar("T")
M = TypeVar("M", bound="Model")
AnyField = Field[Any]


class Column(Expression, Generic[T]):
    """A model's field as an expression, from class access: `Post.title == "x"`,
    `Post.author.to.name`.

    `model` is where the path starts. Only this form reaches sensitive fields.
    """

    __slots__ = ("field", "meta", "path")

    def __init__(self, meta: Meta, path: str, field: AnyField) -> None:
        self.meta = meta
        self.path = path
        self.field = field

    def freeze(self, scope: Scope) -> Expr:
        self.check_model(scope.meta)
        return freeze_path(scope, self.path, typed=True)

    def check_model(self, meta: Meta) -> None:
        """Raise `FieldError` if the expression starts at another model than the query."""
        if self.meta is not meta and not issubclass(meta.model, self.meta.model):
            raise FieldError(
                f"{self.meta.name}.{self.path} cannot be used in a query of {meta.name}: start "
                f"at {meta.name}"
            )

    def _compare(self, op: str, value: Any) -> Condition:
        return compared(self, op, value)

    # a condition, as for any query expression
    def __eq__(self, other: T | Expression | None) -> Condition:  # type: ignore[override]
        return self._compare("exact", other)

    # a condition, as for any query expression
    def __ne__(self, other: T | Expression | None) -> Condition:  # type: ignore[override]
        return ~self._compare("exact", other)

    def __hash__(self) -> int:
        return hash((self.meta.name, self.path))

    def __bool__(self) -> bool:
        raise FieldError(
            f"{self.meta.name}.{self.path} is a column, not a value: use it in a query"
        )

    def in_(self, values: Any) -> Condition:
        """One of the values, or of the rows of a query."""
        return self._compare("in", values)

    def between(self, low: T | Expression, high: T | Expression) -> Condition:
        """From `low` to `high`, both included."""
        return self._compare("range", (low, high))

    def is_null(self, value: bool = True) -> Condition:  # noqa: FBT001, FBT002, RUF100 - reads as the lookup does
        """NULL, or with False not NULL."""
        return self._compare("isnull", value)

    def contains(self, value: Any) -> Condition:
        """Contains the text (or, for arrays, all the items)."""
        return self._compare("contains", value)

    def icontains(self, value: str) -> Condition:
        """Contains the text, ignoring case."""
        return self._compare("icontains", value)

    def startswith(self, value: str) -> Condition:
        """Starts with the text."""
        return self._compare("startswith", value)

    def endswith(self, value: str) -> Condition:
        """Ends with the text."""
        return self._compare("endswith", value)

    def iexact(self, value: str) -> Condition:
        """Equals the text, ignoring case."""
        return self._compare("iexact", value)


class Reference(Column[Any], Generic[M]):
    """A foreign key as an expression; `to` goes on to the target's columns."""

    __slots__ = ()

    @property
    def to(self) -> type[M]:
        """The target model, whose attributes continue this path."""
        field = cast("ForeignKey[Any, Any]", self.field)
        return cast("type[M]", _Path(self.meta, self.path, field.known_target))


class _Path:
    __slots__ = ("_meta", "_prefix", "_target")

    def __init__(self, meta: Meta, prefix: str, target: Meta) -> None:
        self._meta = meta
        self._prefix = prefix
        self._target = target

    def __getattr__(self, name: str) -> Column[Any]:
        found = self._target.find(name)
        if not isinstance(found, Field):
            found = self._target.fields.get(name)
        if found is None:
            raise AttributeError(f"{self._target.name} has no column {name!r}")
        key = is_foreign_key(found) and name == found.name
        kind: Any = Reference if key else Column
        return kind(self._meta, f"{self._prefix}__{name}", found)
