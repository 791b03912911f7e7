"""Operations in TypeScript: the inputs, the data and the result of each method of a place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from treefold_contract._clients.outcomes import (
    PROXY_STATUSES,
    Outcome,
    is_paged,
    list_other_statuses,
    list_outcomes,
)
from treefold_contract._clients.typescript_types import TypeScriptTypes, write_property
from treefold_contract._facts.facts import Body, Input, Lock, RouteFacts
from treefold_contract._types.nodes import Side, TypeNode

GROUPS = (("query", "query"), ("header", "headers"), ("cookie", "cookies"))
BODIES = {"json": "json", "form": "form", "multipart": "multipart"}
SIDES: dict[str, Side] = {"in": "request", "out": "response"}
MEDIA = {"bytes": "application/octet-stream", "text": "text/plain"}


class OperationWriter:
    """Writes the properties of places that are operations of one lock."""

    def __init__(self, lock: Lock, types: TypeScriptTypes) -> None:
        self.lock = lock
        self.types = types

    def write_operation(self, route: RouteFacts) -> str:
        """Return the type of the function that calls a route."""
        outcomes = list_outcomes(route, self.lock)
        inputs, is_required = self.write_inputs(route)
        call = "ListCall" if is_paged(route, self.lock) else "Call"
        call = call if is_required else f"Optional{call}"
        return f"{call}<{inputs}, {self.write_data(outcomes)}, {self.write_result(outcomes)}>"

    def write_data(self, outcomes: Iterable[Outcome]) -> str:
        """Return the type of the data of a call that does not fail."""
        found = [self.write_body(each) for each in outcomes if each.is_success]
        return " | ".join(dict.fromkeys(found)) or "unknown"

    def write_result(self, outcomes: list[Outcome]) -> str:
        """Return the union of the results, told apart by `ok` and `status`."""
        options: list[str] = []
        for each in outcomes:
            kind = "Ok" if each.is_success else "Err"
            if each.status is not None or each.range:
                options.append(f"{kind}<{each.status or 'number'}, {self.write_body(each)}>")
        if not any(each.is_success for each in outcomes):
            options.insert(0, "Ok<number, unknown>")
        others = [self.write_body(each) for each in outcomes if not (each.status or each.range)]
        statuses = list_other_statuses(outcomes)
        if statuses == list(PROXY_STATUSES) and not others:
            options.append("Other")
        elif statuses:
            status = " | ".join(map(str, statuses))
            options.append(f"Err<{status}, {' | '.join(others) or 'unknown'}>")
        return " | ".join(options)

    def write_body(self, outcome: Outcome) -> str:
        """Return the type of a body after it was read."""
        node = outcome.type
        typed = self.types.write(node, "response") if node is not None else ""
        match outcome.kind:
            case "nothing":
                return "undefined"
            case "problem":
                return typed or "Problem"
            case "text":
                return "string"
            case "bytes":
                return "Blob"
            case "lines":
                return f"AsyncIterable<{typed or 'unknown'}>"
            case "events":
                return f"AsyncIterable<{self.write_events(outcome, typed)}>"
            case "unknown" | "json":
                return typed if typed and outcome.kind == "json" else "unknown"

    def write_events(self, outcome: Outcome, typed: str) -> str:
        """Return the union of the events of a stream."""
        options = [
            f"ServerEvent<{json.dumps(each.name, ensure_ascii=False)}, "
            f"{self.types.write(each.type, 'response')}>"
            for each in sorted(outcome.events, key=lambda field: field.name)
        ]
        if typed or not options:
            options.append(f"ServerEvent<string, {typed or 'unknown'}>")
        return " | ".join(options)

    def write_inputs(self, route: RouteFacts) -> tuple[str, bool]:
        """Return the type of the inputs of a call, and whether a call must have some."""
        members: list[str] = []
        is_required = False
        for place, group in GROUPS:
            inputs = [each for each in route.inputs if each.place == place]
            if inputs:
                # `connect` may send headers and cookies with each request
                needs = place == "query" and any(each.is_required for each in inputs)
                is_required = is_required or needs
                members.append(f"{group}{'' if needs else '?'}: {self.write_group(inputs)}")
        bodies = list(self.list_bodies(route))
        own = f"{{ {'; '.join(members)} }}" if members else ""
        if route.is_opaque:
            return f"{own} & AnyInputs" if own else "AnyInputs", is_required
        must_have_body = bool(bodies) and not any(is_optional for _, is_optional in bodies)
        if len(bodies) == 1:
            own = f"{{ {'; '.join([*members, bodies[0][0]])} }}"
        elif bodies:
            options = " | ".join(f"{{ {text} }}" for text, _ in bodies)
            own = f"{own} & ({options})" if own else options
        return own or "NoInputs", is_required or must_have_body

    def write_group(self, inputs: Iterable[Input]) -> str:
        """Return the type of named inputs."""
        members = [
            f"{write_property(each.name)}{'' if each.is_required else '?'}: "
            f"{self.types.write(each.type, 'request', is_text=True)}"
            for each in sorted(inputs, key=lambda each: each.name)
        ]
        return f"{{ {'; '.join(members)} }}"

    def list_bodies(self, route: RouteFacts) -> Iterator[tuple[str, bool]]:
        """Yield the members of each body that a route accepts, and whether it may be left out."""
        files = [each for each in route.inputs if each.place == "file"]
        bodies = sorted(route.bodies, key=lambda each: each.media)
        for body in bodies:
            yield self.write_request_body(body, files), body.is_optional
        if files and not any(body.media.startswith("multipart") for body in bodies):
            is_optional = not any(each.is_required for each in files)
            mark = "?" if is_optional else ""
            yield f"multipart{mark}: {self.write_group(files)}", is_optional

    def write_request_body(self, body: Body, files: list[Input]) -> str:
        """Return the members of the inputs that are a body."""
        mark = "?" if body.is_optional else ""
        media = body.media
        if "json" in media:
            return self.with_type(f"json{mark}: {self.write_type(body.type)}", media, "json")
        if media == "form" or media == "application/x-www-form-urlencoded":
            return f"form{mark}: {self.write_type(body.type, is_text=True)}"
        if media.startswith("multipart"):
            parts = self.write_type(body.type, is_text=True)
            return f"multipart{mark}: {parts}" + (f" & {self.write_group(files)}" if files else "")
        return self.with_type(f"content{mark}: BodyInit", media, "bytes")

    def with_type(self, member: str, media: str, usual: str) -> str:
        """Return a member, with one for a media type that the runtime would not send."""
        if media == usual:
            return member if usual == "json" else f"{member}; type?: string"
        return f"{member}; type: {json.dumps(MEDIA.get(media, media))}"

    def write_type(self, node: TypeNode, *, is_text: bool = False) -> str:
        """Return the type of a body that is sent."""
        return self.types.write(node, "request", is_text=is_text)

    def write_socket(self, route: RouteFacts) -> str:
        """Return the type of the function that opens a socket."""
        kinds: dict[str, list[str]] = {"in": [], "out": []}
        for each in route.messages:
            if "json" in each.media:
                text = self.types.write(each.type, SIDES[each.direction])
            else:
                text = "string" if each.media.startswith("text") else "ArrayBuffer"
            kinds[each.direction].append(text)
        sent, received = (" | ".join(sorted(set(kinds[way]))) or "unknown" for way in ("in", "out"))
        inputs, is_required = self.write_socket_inputs(route)
        opening = "OpenSocket" if is_required else "OptionalOpenSocket"
        return f"{opening}<{inputs}, {sent}, {received}>"

    def write_socket_inputs(self, route: RouteFacts) -> tuple[str, bool]:
        """Return the type of what a socket is opened with, and whether it must be given."""
        query = [each for each in route.inputs if each.place == "query"]
        needs = any(each.is_required for each in query)
        members = [f"query{'' if needs else '?'}: {self.write_group(query)}"] if query else []
        if route.subprotocols:
            names = " | ".join(json.dumps(each) for each in sorted(route.subprotocols))
            members.append(f"protocols?: {names} | ({names})[]")
        media = {each.media for each in route.messages}
        is_text = "text" in media and not any("json" in each for each in media)
        if is_text:
            members.append("text: true")
        return f"{{ {'; '.join(members)} }}" if members else "NoInputs", needs or is_text
