"""The types of responses that a handler module declares.

Example, the variables of a handler module and the outputs that they declare:

    response_model = Book
    responses = {404: Problem, "5XX": {"model": Failure}, 410: "no longer sold"}

    Output(status=None, type=Book), Output(status="404", type=Problem),
    Output(status="5XX", type=Failure)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from treefold_http._types.read import parse_annotation
from treefold_http._types.tree import TypeNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A type that responses are held to.

    Attributes:
        status: the status of the responses; None for that of success.
        type: the type.
        headers: the header fields that an extension adds to them, with descriptions.
    """

    status: str | None
    type: TypeNode
    headers: tuple[tuple[str, str], ...] = ()


def read_declared_outputs(
    response_model: Any, responses: Mapping[int | str, Any] | None
) -> tuple[Output, ...]:
    """Return the types of responses that a handler module declares."""
    models: dict[str | None, Any] = {None: response_model}
    for status, declared in (responses or {}).items():
        table = cast("Mapping[str, Any]", declared)
        model = table.get("model") if isinstance(declared, Mapping) else declared
        # a text describes the response and says nothing about its body
        models[str(status)] = None if isinstance(model, str) else model
    declared = ((status, model) for status, model in models.items() if model is not None)
    return tuple(Output(status=status, type=parse_annotation(model)) for status, model in declared)
