"""A query, as far as other files and rooms know it than those that `QueryBuilder` is made of.

Users write classes of queries with methods of any name, so all of it has an underscore. Those that
`QueryBuilder` is built on cannot import it, and name `Query`; others name `AnyQuery`, or `QueryOf`
where the kind of the rows counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from treefold_orm._expressions.nodes import Expr, Key, OrderNode
from treefold_orm._expressions.scope import Scope
from treefold_orm._expressions.steps import Step
from treefold_orm._fields.meta import Meta
from treefold_orm._terms.operators import Condition, Expression

if TYPE_CHECKING:
    from treefold_orm._decode.plan import Plan
    from treefold_orm._functions.aggregates import Aggregate

S = TypeVar("S", bound=Step)


class Query(Protocol):
    """What is read of a query, and the calls that add to it; `QuerySteps` has the table of its
    attributes.
    """

    _meta: Meta
    _key: Key
    _params: tuple[object, ...]
    _notes: dict[str, Expr] | None
    _alias: str
    _low: int
    _high: int | None
    _max_rows: int | None
    _raises_lazy: bool

    def filter(self, /, *conditions: Condition, **lookups: Any) -> Self: ...
    def annotate(
        self, /, *aggregates: Aggregate, **expressions: Expression | Condition
    ) -> Self: ...
    def _require_unsliced_and_uncombined(self, what: str) -> None: ...
    def _has_step(self, *kinds: type[Step]) -> bool: ...
    def _find_last_step(self, kind: type[S]) -> S | None: ...
    def _find_order_terms(self) -> tuple[OrderNode, ...] | None: ...
    def _find_unloaded_annotations(self) -> frozenset[str]: ...
    def _select_values(
        self, row_kind: str, names: Sequence[Any], expressions: dict[str, Expression | Condition]
    ) -> Query: ...
    def _replace_slice(self, low: int, high: int | None) -> Self: ...
    def _slice_rows(self, start: int | None, stop: int | None) -> Self: ...
    def _set_loaded_columns(self, names: frozenset[str]) -> Self: ...
    def _make_scope(self) -> Scope: ...
    def _copy_without_steps(
        self, kind: type[Step] | None, call_arguments: tuple[object, ...]
    ) -> Self: ...
    def _add_step(self, step: Step, params: Sequence[object] = ()) -> Self: ...
    def _add_step_from_scope(self, step: Step, scope: Scope) -> Self: ...
    def _build_key_and_params(self) -> tuple[Key, tuple[object, ...]]: ...
    def _compile_plan(self, kind: str) -> tuple[Plan, Sequence[object]]: ...


Q = TypeVar("Q", bound=Query)
