"""The types of responses that a handler module declares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from treefold_http._types.read import read
from treefold_http._types.tree import TypeNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A type that responses are held to; `status` is None for the status of success."""

    status: str | None
    type: TypeNode


def read_declared_outputs(
    response_model: Any, responses: Mapping[int | str, Any] | None
) -> tuple[Output, ...]:
    """Return the types of responses that a handler module declares."""
    given: dict[str | None, Any] = {None: response_model}
    for status, said in (responses or {}).items():
        table = cast("Mapping[str, Any]", said)
        model = table.get("model") if isinstance(said, Mapping) else said
        given[str(status)] = None if isinstance(model, str) else model
    return tuple(
        Output(status=status, type=read(model))
        for status, model in given.items()
        if model is not None
    )
