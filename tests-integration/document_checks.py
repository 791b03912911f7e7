"""An application held to its own OpenAPI document: schemathesis sends good and bad requests."""

from __future__ import annotations

import importlib
from collections.abc import Collection
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable

from treefold_http import Application

schemathesis: Any = importlib.import_module("schemathesis")

OWN = "localhost"
"""The host that is asked for: a development server answers to no other name than its own."""
FRAMING = {"host", "content-length", "transfer-encoding"}
"""Fields that no document speaks of: what is wrong with them is no message of HTTP, and a 400. They
are made up at times, of words that stand in the modules that happen to be loaded."""


def discrepancies(
    app: Application,
    *,
    document: str = "/openapi.json",
    rules: Collection[str] = (),
    examples: int = 10,
    **headers: str,
) -> dict[str, str]:
    """Return what each operation did that the document does not say.

    Args:
        app: an application that serves its document.
        document: the path of the document.
        rules: operations that refuse, with a documented 422, what no schema can tell from the rest.
        examples: the most requests of each kind for an operation.
        headers: fields of each request.
    """
    found: dict[str, str] = {}
    schema = schemathesis.openapi.from_asgi(document, app, headers={"host": OWN})
    schema.config.generation.update(with_security_parameters=False)  # `headers` has them
    for result in schema.get_all_operations():
        operation = result.ok()
        try:
            for mode in schemathesis.GenerationMode:
                _check(operation, mode, operation.label in rules, examples, headers)
        except (Exception, BaseExceptionGroup) as error:
            found[operation.label] = str(error)
    return found


def _check(
    operation: Any, mode: Any, has_rule: bool, examples: int, headers: dict[str, str]
) -> None:
    accepted = schemathesis.checks.CHECKS.get_one("positive_data_acceptance")
    excluded = [accepted] if has_rule else []

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        phases=[Phase.explicit, Phase.generate],
    )
    @given(operation.as_strategy(generation_mode=mode))
    def check(case: Any) -> None:
        assume(not FRAMING & {name.lower() for name in case.headers or ()})
        case.call_and_validate(base_url=f"http://{OWN}", headers=headers, excluded_checks=excluded)

    with suppress(Unsatisfiable):  # nothing that does not fit: no input at all
        check()
