"""The contract of a handler: what its signature says, as data, made once at boot.

The compiler of `_injection` turns `steps` into a coroutine; the documents read the rest. Contracts
are frozen and compare by their content; the functions in them compare by identity.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from treefold_http._injection.sources import Binder
from treefold_http._types.outputs import Output
from treefold_http._types.parameters import EMPTY
from treefold_http._types.tree import TypeNode
from treefold_http._wire.aliases import AnyCallable

if TYPE_CHECKING:
    from treefold_http._injection.providers import Provider
    from treefold_http._injection.secured import Security
    from treefold_http._responses.endpoints import Endpoint

Place: TypeAlias = Literal["path", "query", "header", "cookie", "json", "form", "file"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One value that a client sends.

    Attributes:
        place: its source, such as `query` or `header`.
        name: its name in that source; for a path or a body, the name of the parameter.
        type: its type.
        default: the value used when it is not sent; EMPTY if it must be sent.
        many: True if it takes every value of the name.
        members: the inputs that a model of the query or of a form consists of.
        is_closed: True for a member of a model that forbids unknown names.
        call: the number of the call that takes it; the errors of its inputs are sent together.
        binder: reads it.
    """

    place: Place
    name: str
    type: TypeNode
    default: Any = EMPTY
    many: bool = False
    members: tuple[Input, ...] = ()
    is_closed: bool = False
    call: int = 1
    binder: Binder = field(compare=False, repr=False)

    @property
    def is_required(self) -> bool:
        """True if it must be sent."""
        return self.default is EMPTY

    @property
    def can_fail(self) -> bool:
        """True if a value of the client can be invalid or missing."""
        free = self.type.bare_annotation in (str, EMPTY, Any) and not self.type.markers
        return self.is_required or not free


class Argument(NamedTuple):
    """One argument of a call.

    Attributes:
        source: the connection, its background tasks, a text of the path, the result of a step, or
            the parameter's own default.
        of: the name in the path, the number of the step, or the default.
        name: the parameter; None for a positional argument.
        omitted_for: the parameter's default, for which the argument is left out; EMPTY for none.
    """

    source: Literal["connection", "background", "path", "step", "default"]
    of: Any = None
    name: str | None = None
    omitted_for: Any = EMPTY


@dataclass(frozen=True, slots=True)
class Call:
    """Call a dependency, once the inputs of this call have no errors."""

    function: AnyCallable
    arguments: tuple[Argument, ...]
    call: int


@dataclass(frozen=True, slots=True)
class Shared:
    """Take the value of a provider with scope `app`; `make` makes it at its first use."""

    provider: Provider
    make: Endpoint = field(compare=False, repr=False)


Step: TypeAlias = Input | Call | Shared


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What a handler takes and gives.

    Attributes:
        inputs: the values that a client sends, one for each place and name.
        steps: inputs and calls, in the order in which they run; the handler is call 1.
        arguments: the arguments of the handler.
        outputs: the declared types of its responses.
        security: the security requirements of the handler and its dependencies.
        is_opaque: True if the signature says nothing: the handler takes the connection alone.
    """

    inputs: tuple[Input, ...] = ()
    steps: tuple[Step, ...] = ()
    arguments: tuple[Argument, ...] = ()
    outputs: tuple[Output, ...] = ()
    security: tuple[Security, ...] = ()
    is_opaque: bool = False

    def find_output_type(self, status: str | None) -> TypeNode | None:
        """Return the declared type of the responses with a status; None for any type."""
        return next((each.type for each in self.outputs if each.status == status), None)

    def find_output_headers(self, status: str) -> tuple[tuple[str, str], ...]:
        """Return the header fields of extensions in the responses with a status."""
        by_status = {each.status: each.headers for each in self.outputs}
        is_plain = status.startswith("2") and status not in by_status
        return by_status.get(None if is_plain else status, ())

    @property
    def dependency_functions(self) -> list[AnyCallable]:
        """The dependencies of the handler."""
        return [step.function for step in self.steps if isinstance(step, Call)]

    @property
    def error_statuses(self) -> set[int]:
        """The statuses with which the inputs can be refused."""
        statuses = {400} if self.inputs else set[int]()
        models = (step.members for step in self.steps if isinstance(step, Input))
        if any(models) or any(sent.can_fail or sent.place == "json" for sent in self.inputs):
            statuses.add(422)
        if any(sent.place in ("json", "form", "file") for sent in self.inputs):
            statuses |= {400, 413, 415}
        return statuses


OPAQUE = Contract(is_opaque=True)
