"""Statistical aggregates: StdDev and Variance.

They are floats, of numbers taken as floats, in one way of computing on both databases.
"""

from __future__ import annotations

from typing import Any, ClassVar, Unpack

from treefold_orm._base.records import replaced
from treefold_orm._expressions.aggregates import Aggregate, AggregateOptions
from treefold_orm._expressions.nodes import AggregateNode
from treefold_orm._expressions.scope import Scope


class _Statistic(Aggregate):
    """Base: of the whole population, or with `sample` of a part of it."""

    __slots__ = ("sample",)

    names: ClassVar[tuple[str, str]] = ("", "")

    def __init__(
        self, expression: Any, *, sample: bool = False, **options: Unpack[AggregateOptions]
    ) -> None:
        super().__init__(expression, **options)
        self.sample = bool(sample)

    def complete(self, node: AggregateNode, scope: Scope) -> AggregateNode:
        return replaced(node, name=self.names[self.sample])


class StdDev(_Statistic):
    """The standard deviation as a float, None where there is nothing (or, of a sample, one value).

    Args:
        expression: A field, an expression or a relation's field.
        sample: True for the deviation of a sample, divided by the number of values less one.
        options: `distinct`, `filter`, `default` and `output_field`, as for every aggregate.
    """

    __slots__ = ()
    names = ("stddev_pop", "stddev_samp")
    label = "stddev"


class Variance(_Statistic):
    """The variance as a float, None where there is nothing (or, of a sample, one value).

    Args:
        expression: A field, an expression or a relation's field.
        sample: True for the variance of a sample, divided by the number of values less one.
        options: `distinct`, `filter`, `default` and `output_field`, as for every aggregate.
    """

    __slots__ = ()
    names = ("var_pop", "var_samp")
    label = "variance"
