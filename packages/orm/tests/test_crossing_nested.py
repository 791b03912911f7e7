"""Expressions inside expressions have the values of the oracle, on both engines.

`TREEFOLD_CROSSING=long` draws many more and deeper ones; it is a command of its own.
"""

from __future__ import annotations

import os
from typing import Any

from crossing import nesting, runner
from crossing.runner import Report
from hypothesis import assume, given, settings

EXAMPLES = 20_000 if os.environ.get("TREEFOLD_CROSSING") == "long" else 300


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None)
@given(recipe=nesting.recipes)
def test_nested_expressions_have_the_values_of_the_oracle(engines: Any, recipe: Any) -> None:
    term = nesting.term_of(recipe)
    assume(term is not None and not term.document)  # alone it has the type that JSON gives it
    reports = [Report(engine) for engine in engines]
    for report in reports:
        runner.select(report, report.engine, [term] if term is not None else [])
    assert [line for report in reports for line in report.failures] == []
    assert reports[0].refused == reports[1].refused
