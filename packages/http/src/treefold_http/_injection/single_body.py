"""A request has one body: refuse parameters that would each take all of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TypeAlias

from treefold_http._injection.contract import Input
from treefold_http._types.parameters import InjectionError, format_callable
from treefold_http._wire.aliases import AnyCallable

Taken: TypeAlias = tuple[AnyCallable, str, Input]
"""A function, the name of its parameter, and its input."""


def refuse_multiple_bodies(taken: Sequence[Taken]) -> None:
    """Refuse a function with two JSON bodies, and a JSON body beside parts of a form.

    Args:
        taken: the bound parameters of a handler and its dependencies, grouped by function.

    Raises:
        InjectionError: with the names of the two parameters; a request has one body, and each
            parameter would get all of it.
    """
    models = [(function, name) for function, name, sent in taken if sent.binder.body == "json"]
    forms = [(function, name) for function, name, sent in taken if sent.binder.body == "form"]
    for (function, name), (other, again) in itertools.pairwise(models):
        if function is other and name != again:
            raise InjectionError(
                f"{format_callable(function)} takes the body twice, as {name!r} and as {again!r};"
                " put both into one model"
            )
    if models and forms:
        (function, model), (other, field) = models[0], forms[0]
        beside = "" if function is other else f"{format_callable(other)} takes "
        raise InjectionError(
            f"{format_callable(function)} takes {model!r} from a JSON body and {beside}{field!r}"
            " from a form; a request has one body, so remove one of them"
        )
