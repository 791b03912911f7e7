"""Columns of a model as expressions, from class access: `Post.title`, `Post.author.to.name`.

Only this form reaches sensitive fields. A column knows its model by name and class alone; what its
path leads to is found when a query resolves it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, cast, overload

from treefold_orm._base.errors import FieldError
from treefold_orm._terms.operators import Comparison, Condition, Expression

T = TypeVar("T")
M = TypeVar("M")


class Described(Protocol):
    """The description of a model, as far as a column knows it."""

    name: str

    @property
    def model(self) -> type[Any]: ...


class Shaped:
    """The base of `Shape`, as far as columns know it: an instance has the values of its columns."""

    __slots__ = ()
    if TYPE_CHECKING:

        @classmethod
        def plan_rows(cls) -> Any:
            """Return what it reads of rows: `select_rows(query)` narrows a query to that."""

        @classmethod
        def of(cls, row: object) -> Self:
            """Return the shape of a row."""
            ...


class Column(Expression, Generic[T]):
    """A model's field as an expression, from class access: `Post.title == "x"`,
    `Post.author.to.name`.

    `model` is where the path starts. Only this form reaches sensitive fields.
    """

    __slots__ = ("field", "meta", "path")

    def __init__(self, meta: Described, path: str, field: Any) -> None:
        self.meta = meta
        self.path = path
        self.field = field

    if TYPE_CHECKING:  # a member of a shape; other classes have the column itself

        @overload
        def __get__(self, instance: None, owner: type[object]) -> Self: ...
        @overload
        def __get__(self, instance: Shaped, owner: type[object]) -> T: ...
        @overload
        def __get__(self, instance: object, owner: type[object]) -> Self: ...
        def __get__(self, instance: Any, owner: type[object]) -> Any: ...

    def check_model(self, meta: Described) -> None:
        """Raise `FieldError` if the expression starts at another model than the query."""
        # a column of an abstract base means that of each model below it
        if self.meta is not meta and not issubclass(meta.model, self.meta.model):
            raise FieldError(
                f"{self.meta.name}.{self.path} cannot be used in a query of {meta.name}; start "
                f"at {meta.name}"
            )

    # a condition, as for any query expression
    def __eq__(self, other: T | Expression | None) -> Condition:  # type: ignore[override]
        return Comparison(self, "exact", other)

    # a condition, as for any query expression
    def __ne__(self, other: T | Expression | None) -> Condition:  # type: ignore[override]
        return ~Comparison(self, "exact", other)

    # __eq__ makes a condition, and takes the hash of `object` away with it
    def __hash__(self) -> int:
        return hash((self.meta.name, self.path))

    def __bool__(self) -> bool:
        # `Post.title or Post.slug` would be the first one for every row
        raise FieldError(
            f"{self.meta.name}.{self.path} is a column, not a value: use it in a query"
        )

    def in_(self, values: Any) -> Condition:
        """One of the values, or of the rows of a query."""
        return Comparison(self, "in", values)

    def between(self, low: T | Expression, high: T | Expression) -> Condition:
        """From `low` to `high`, both included."""
        return Comparison(self, "range", (low, high))

    def is_null(self, value: bool = True) -> Condition:  # noqa: FBT001, FBT002, RUF100 - reads as the lookup does
        """NULL, or with False not NULL."""
        return Comparison(self, "isnull", value)

    def contains(self, value: Any) -> Condition:
        """Contains the text (or, for arrays, all the items)."""
        return Comparison(self, "contains", value)

    def icontains(self, value: str) -> Condition:
        """Contains the text, ignoring case."""
        return Comparison(self, "icontains", value)

    def startswith(self, value: str) -> Condition:
        """Starts with the text."""
        return Comparison(self, "startswith", value)

    def endswith(self, value: str) -> Condition:
        """Ends with the text."""
        return Comparison(self, "endswith", value)

    def iexact(self, value: str) -> Condition:
        """Equals the text, ignoring case."""
        return Comparison(self, "iexact", value)


class Reference(Column[Any], Generic[M]):
    """A foreign key as an expression; `to` goes on to the target's columns."""

    __slots__ = ()

    @property
    def to(self) -> type[M]:
        """The target model, whose attributes continue this path."""
        return cast("type[M]", _Path(self.meta, self.path, self.field.known_target))


class _Path:
    __slots__ = ("_meta", "_prefix", "_target")

    def __init__(self, meta: Described, prefix: str, target: Any) -> None:
        self._meta = meta
        self._prefix = prefix
        self._target = target

    def __getattr__(self, name: str) -> Column[Any]:
        target = self._target
        found = target.fields.get(name) or target.by_attname.get(name)
        if name == "pk":
            found = target.pk
        if found is None:
            raise AttributeError(f"{target.name} has no column {name!r}")
        # `author` is the relation, `author_id` its column
        direct = name == found.name
        kind = cast("type[Column[Any]]", type(found.column) if direct else Column)
        return kind(self._meta, f"{self._prefix}__{name}", found)


AnyColumn = Column[Any]
