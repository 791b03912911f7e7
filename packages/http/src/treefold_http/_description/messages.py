"""Messages of a WebSocket, found in the source of its handler.

`websocket.iter_json(Move)` in a handler means that it receives such JSON, `send_text` that it sends
text. `response_model` is the type of JSON that it sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from treefold_http._description.routes import RouteDescription
from treefold_http._types.read import parse_annotation
from treefold_http._types.tree import TypeNode

MESSAGE_KINDS: tuple[Literal["bytes", "json", "text"], ...] = ("bytes", "json", "text")


@dataclass(frozen=True, slots=True)
class MessageDescription:
    """The messages of one kind in one direction.

    Attributes:
        side: `receive` or `send`, as seen from the server.
        kind: the kind of data.
        types: of JSON that is received, each type that a call names; of JSON that is sent, the
            declared type, or none.
    """

    side: Literal["receive", "send"]
    kind: Literal["bytes", "json", "text"]
    types: tuple[TypeNode, ...] = ()


def list_messages(described: RouteDescription) -> list[MessageDescription]:
    """Return the messages of a handler, those that it receives first."""
    calls = described.reading.calls
    model = described.contract.find_output_type(None)
    models = tuple(map(parse_annotation, described.reading.models))
    found = [
        MessageDescription("receive", kind, models if kind == "json" else ())
        for kind in MESSAGE_KINDS
        if {f"receive_{kind}", f"iter_{kind}"} & calls
    ]
    for kind in MESSAGE_KINDS:
        if kind == "json" and model is not None:
            found.append(MessageDescription("send", kind, (model,)))
        elif f"send_{kind}" in calls:
            found.append(MessageDescription("send", kind))
    return found
