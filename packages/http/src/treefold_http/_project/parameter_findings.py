"""What extensions say about the types of parameters of a project, for `check --strict`.

handler(shelf: Shelf)                     findings of `parameters(Shelf)`, such as list-index
handler(request): Shelf(request.query)    list-by-hand: no document lists what it reads
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from treefold_http._extensions.calls import find_parameter_function
from treefold_http._injection.contract import Call
from treefold_http._injection.resolver import FUNCTION_MARK
from treefold_http._plans.handlers import HandlerModule
from treefold_http._wire.aliases import AnyCallable

if TYPE_CHECKING:
    from treefold_http._project.loaded_project import LoadedProject

BY_HAND = "list-by-hand"


class ParameterFinding(NamedTuple):
    """One finding: the file of the route, the code of the rule, and what to do."""

    file: str
    code: str
    message: str


def find_parameter_findings(
    project: LoadedProject, extensions: Sequence[object]
) -> Iterator[ParameterFinding]:
    """Yield the findings about a booted project, one for each type and text."""
    seen: set[str] = set()
    for route, module in project.modules.items():
        if not isinstance(module, HandlerModule) or route not in project.plans:
            continue
        steps = project.plans[route].contract.steps
        functions = [step.function for step in steps if isinstance(step, Call)]
        found = [each for function in functions for each in _read_own_findings(function)]
        for function in (module.handler, *functions):
            found += _find_types_by_hand(function, extensions)
        for code, message in found:
            if code == BY_HAND or message not in seen:
                seen.add(message)
                yield ParameterFinding(f"Api/{route.file}", code, message)


def _read_own_findings(function: AnyCallable) -> list[tuple[str, str]]:
    made = getattr(function, FUNCTION_MARK, None)
    find: Callable[[], Iterator[tuple[str, str]]] | None = getattr(made, "find_problems", None)
    return [] if find is None else list(find())


def _find_types_by_hand(
    function: AnyCallable, extensions: Sequence[object]
) -> Iterator[tuple[str, str]]:
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    if code is None or "query" not in code.co_names:
        return
    for name in code.co_names:
        kind = plain.__globals__.get(name)
        if isinstance(kind, type) and _is_known_type(kind, extensions):
            yield (
                BY_HAND,
                f"{name}(request.query) is read by hand, and no document lists its parameters; take"
                f" it as a parameter of the handler, `{name.lower()}: {name}`",
            )


def _is_known_type(kind: object, extensions: Sequence[object]) -> bool:
    try:
        return find_parameter_function(extensions, kind) is not None
    except Exception:  # it cannot be a parameter as it is
        return False
