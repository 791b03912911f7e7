"""Operations in Python: one decorated function for each method of a place.

    @operation
    def get(self, *, page: int = 1) -> Answer[list[User], Ok[Literal[200], list[User]] | Other]: ...

The decorator makes of it what is called, with `await` or without, as the client is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from treefold_contract._clients.outcomes import (
    PROXY_STATUSES,
    Outcome,
    is_paged,
    list_other_statuses,
    list_outcomes,
)
from treefold_contract._clients.python_types import PythonTypes, is_name, write_table, write_text
from treefold_contract._clients.type_names import Names
from treefold_contract._facts.facts import Body, Input, Lock, RouteFacts
from treefold_contract._types.nodes import AnyType, Side, TypeNode

GROUPS = (("header", "headers"), ("cookie", "cookies"))
TAKEN = frozenset(
    (
        *("self", "query", "headers", "cookies", "json", "form", "multipart", "files", "content"),
        *("content_type", "plain", "protocols"),
    )
)
MEDIA = {"bytes": "application/octet-stream", "text": "text/plain"}
SIDES: dict[str, Side] = {"in": "request", "out": "response"}


@dataclass
class OperationWriter:
    """Writes the functions of places that are operations of one lock.

    Attributes:
        lock: the facts.
        types: writes types.
        names: the names that are taken.
        tables: the TypedDicts that the inputs need, which come after the places.
    """

    lock: Lock
    types: PythonTypes
    names: Names
    tables: list[str] = field(default_factory=list[str])

    def write_operation(self, route: RouteFacts, owner: str) -> tuple[str, str]:
        """Return the decorator of an operation, and its function without a body."""
        name = f"{owner}{route.method.title()}"
        if route.method == "WEBSOCKET":
            sent, received = self.write_messages(route)
            parameters = self.write_parameters([*self.list_socket_inputs(route, name)])
            return "socket_operation", f"socket({parameters}) -> Messages[{sent}, {received}]"
        outcomes = list_outcomes(route, self.lock)
        decorator = "list_operation" if is_paged(route, self.lock) else "operation"
        found = [self.write_body(each) for each in outcomes if each.is_success]
        data = " | ".join(dict.fromkeys(found)) if found and "Any" not in found else "Any"
        if route.is_opaque:
            parameters = "self, /, **inputs: Any"
        else:
            parameters = self.write_parameters([*self.list_inputs(route, name)])
        result = self.write_result(outcomes)
        return decorator, f"{route.method.lower()}({parameters}) -> Answer[{data}, {result}]"

    def write_result(self, outcomes: list[Outcome]) -> str:
        """Return the union of the results, told apart by `ok` and `status`."""
        options: list[str] = []
        for each in outcomes:
            kind = "Ok" if each.is_success else "Err"
            if each.status is not None or each.range:
                status = f"Literal[{each.status}]" if each.status else "int"
                options.append(f"{kind}[{status}, {self.write_body(each)}]")
        if not any(each.is_success for each in outcomes):
            options.insert(0, "Ok[int, Any]")
        others = [self.write_body(each) for each in outcomes if not (each.status or each.range)]
        statuses = list_other_statuses(outcomes)
        if statuses == list(PROXY_STATUSES) and not others:
            options.append("Other")
        elif statuses:
            status = ", ".join(map(str, statuses))
            options.append(f"Err[Literal[{status}], {' | '.join(others) or 'Any'}]")
        return " | ".join(options)

    def write_body(self, outcome: Outcome) -> str:
        """Return the type of a body after it was read."""
        typed = self.types.write(outcome.type, "response") if outcome.type is not None else ""
        match outcome.kind:
            case "nothing":
                return "None"
            case "problem":
                return typed or "Problem"
            case "text":
                return "str"
            case "bytes":
                return "bytes"
            case "lines":
                return f"Stream[{typed or 'Any'}]"
            case "events":
                return f"Stream[{self.write_events(outcome, typed)}]"
            case "unknown" | "json":
                return typed if typed and outcome.kind == "json" else "Any"

    def write_events(self, outcome: Outcome, typed: str) -> str:
        """Return the union of the events of a stream."""
        options = [
            f"ServerEvent[Literal[{write_text(each.name)}], "
            f"{self.types.write(each.type, 'response')}]"
            for each in sorted(outcome.events, key=lambda event: event.name)
        ]
        if typed or not options:
            options.append(f"ServerEvent[str, {typed or 'Any'}]")
        return " | ".join(options)

    def list_inputs(self, route: RouteFacts, owner: str) -> Iterator[str]:
        """Yield the parameters of a call."""
        yield from self.list_fields(route, owner)
        files = [each for each in route.inputs if each.place == "file"]
        bodies = sorted(route.bodies, key=lambda each: each.media)
        for body in bodies:
            # where files are all that is known of a form, they are enough
            is_known = not files or body.type != AnyType()
            is_required = len(bodies) == 1 and is_known and not body.is_optional
            yield from self.list_body(body, is_required=is_required)
        if files:
            yield self.write_group(files, "files", f"{owner}Files")

    def list_fields(self, route: RouteFacts, owner: str) -> Iterator[str]:
        """Yield the parameters that are query, header fields and cookies."""
        query = [each for each in route.inputs if each.place == "query"]
        own = [each for each in query if is_keyword(each.name)]
        for each in sorted(own, key=lambda each: each.name):
            node = self.types.write(each.type, "request", is_text=True)
            default = "" if each.is_required else f" = {write_default(each.default)}"
            yield f"{each.name}: {node}{default}"
        others = [each for each in query if not is_keyword(each.name)]
        if others:
            yield self.write_group(others, "query", f"{owner}Query")
        for place, group in GROUPS:
            inputs = [each for each in route.inputs if each.place == place]
            if inputs:
                table = self.write_group(inputs, group, f"{owner}{group.title()}")
                # `connect` may send headers and cookies with each request
                yield table if table.endswith("= ...") else f"{table} = ..."

    def write_group(self, inputs: list[Input], group: str, name: str) -> str:
        """Return a parameter that holds several inputs, whose TypedDict is kept for later."""
        table = self.names.claim(name)
        rows = [
            (each.name, self.types.write(each.type, "request", is_text=True), each.is_required)
            for each in sorted(inputs, key=lambda each: each.name)
        ]
        self.tables.append(write_table(table, rows))
        return f"{group}: {table}" + ("" if any(each[2] for each in rows) else " = ...")

    def list_body(self, body: Body, *, is_required: bool) -> Iterator[str]:
        """Yield the parameters of a body."""
        end = "" if is_required else " = ..."
        media = body.media
        if "json" in media:
            yield f"json: {self.write_type(body.type)}{end}"
        elif media == "form" or media == "application/x-www-form-urlencoded":
            yield f"form: {self.write_type(body.type, is_text=True)}{end}"
        elif media.startswith("multipart"):
            yield f"multipart: {self.write_type(body.type, is_text=True)}{end}"
        else:
            yield f"content: bytes | str{end}"
        is_usual = media in ("json", "form", "bytes") or media.startswith("multipart")
        if not is_usual and "form" not in media:
            yield f"content_type: Literal[{json.dumps(MEDIA.get(media, media))}]{end}"
        elif media == "bytes":
            yield "content_type: str = ..."

    def write_type(self, node: TypeNode, *, is_text: bool = False) -> str:
        """Return the type of a body that is sent."""
        return self.types.write(node, "request", is_text=is_text)

    def list_socket_inputs(self, route: RouteFacts, owner: str) -> Iterator[str]:
        """Yield the parameters that a socket is opened with."""
        yield from self.list_fields(route, owner)
        if route.subprotocols:
            names = ", ".join(map(write_text, sorted(route.subprotocols)))
            yield f"protocols: list[Literal[{names}]] = ..."
        media = {each.media for each in route.messages}
        if "text" in media and not any("json" in each for each in media):
            yield "plain: Literal[True]"

    def write_messages(self, route: RouteFacts) -> tuple[str, str]:
        """Return the types of the messages that are sent and received."""
        kinds: dict[str, set[str]] = {"in": set(), "out": set()}
        for each in route.messages:
            if "json" in each.media:
                text = self.types.write(each.type, SIDES[each.direction])
            else:
                text = "str" if each.media.startswith("text") else "bytes"
            kinds[each.direction].add(text)
        sent, received = (" | ".join(sorted(kinds[way])) or "Any" for way in ("in", "out"))
        return sent, received

    @staticmethod
    def write_parameters(parameters: Iterable[str]) -> str:
        """Return parameters by name, those first that a call must have."""
        found = sorted(parameters, key=lambda text: " = " in text)
        return ", ".join(["self", "*", *found] if found else ["self"])


def is_keyword(name: str) -> bool:
    """Return True for a query that a call takes by its name; any other is in `query`."""
    return is_name(name) and name not in TAKEN


def write_default(default: str) -> str:
    """Return the text of a default that a stub can show."""
    is_number = default.lstrip("-").isdecimal()
    return default if is_number else default.title() if default in ("true", "false") else "..."
