"""Writes a client in TypeScript: `NAME.d.ts`, and a runtime that is the same for every API.

    client.v1.user(7).get()        interface V1User { (id: number): V1UserId; ... }

A property is a segment, a call is a parameter. A segment that is also a method, `socket` or `then`,
or that begins with `$`, has one `$` more in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

from treefold_contract._clients.place_names import ROOT, check_client_name, name_places
from treefold_contract._clients.places import Place, build_places
from treefold_contract._clients.type_names import Names, list_declared, name_types
from treefold_contract._clients.typescript_operations import OperationWriter
from treefold_contract._clients.typescript_types import TypeScriptTypes, write_property
from treefold_contract._clients.words import (
    NO_WORDS,
    RouteTexts,
    Words,
    read_runtime,
)
from treefold_contract._facts.facts import Lock, RouteFacts

STREAMS = "treefold-streams.js"
SPECIAL = frozenset(("get", "post", "put", "patch", "delete", "head", "options", "socket", "then"))
RESERVED = frozenset(
    re.findall(
        r"\w+",
        "any as async await bigint boolean break case catch class const continue debugger declare "
        "default delete do else enum export extends false finally for function if implements "
        "import in instanceof interface let module namespace never new null number object package "
        "private protected public return static string super switch symbol this throw true try "
        "type typeof undefined unique unknown var void while with yield arguments eval Promise "
        "Response Blob AsyncIterable ArrayBuffer BodyInit HeadersInit RequestInit URL WebSocket "
        "AbortSignal Error RequestCache RequestCredentials RequestMode RequestRedirect",
    )
)


def write_typescript_client(
    lock: Lock, words: Words = NO_WORDS, *, name: str = "client", version: str = ""
) -> dict[str, str]:
    """Return the files of a client in TypeScript, by name.

    Args:
        lock: the facts of the API.
        words: what editors show beside the facts, by the title of a route.
        name: the name of the files.
        version: the one version that the client has; empty for all.

    Raises:
        LockError: the version is not in the lock, the name is not one of a file, or no client can
            send the path of a route.
    """
    check_client_name(name)
    root = build_places(lock, version)
    names = Names(RESERVED | list_taken())
    type_names = name_types(root, lock.definitions, names)
    types = TypeScriptTypes(lock.definitions, type_names)
    declarations = [types.write_definition(*each) for each in list_declared(type_names)]
    writer = PlaceWriter(
        RouteTexts(lock, words), OperationWriter(lock, types), name_places(root, names)
    )
    places = [writer.write_place(place) for place in root.walk()]
    return {
        f"{name}.d.ts": "\n".join([read_runtime("prelude.d.ts"), *places, *declarations]) + "\n",
        f"{name}.js": read_runtime("client.js"),
        STREAMS: read_runtime(STREAMS),
    }


@cache
def list_taken() -> frozenset[str]:
    """Return the names that the types of every client have."""
    declaration = re.compile(r"^export (?:interface|type|class|function) (\w+)", re.MULTILINE)
    return frozenset((ROOT, *declaration.findall(read_runtime("prelude.d.ts"))))


class PlaceWriter:
    """Writes the interfaces of places."""

    def __init__(
        self, texts: RouteTexts, operations: OperationWriter, names: Mapping[int, str]
    ) -> None:
        self.texts = texts
        self.operations = operations
        self.names = names

    def write_place(self, place: Place) -> str:
        """Return the interface of a place."""
        lines = [f"export interface {self.names[id(place)]} {{"]
        for text in sorted(place.statics):
            child = self.names[id(place.statics[text])]
            lines.append(f"  readonly {write_property(write_segment(text))}: {child};")
        if place.parameter is not None:
            parameter = place.parameter
            node = self.operations.types.write(parameter.type, "request", is_text=True)
            name = re.sub(r"\W", "_", parameter.path[-1].text, flags=re.ASCII)
            name = f"_{name}" if name[:1].isdigit() or name in RESERVED else name
            lines.append(f"  ({name}: {node or 'string'}): {self.names[id(parameter)]};")
        for method in sorted(place.routes):
            lines += self.write_method(place.routes[method])
        return "\n".join([*lines, "}", ""])

    def write_method(self, route: RouteFacts) -> Iterator[str]:
        """Yield the lines of one method of a place."""
        text = list(self.texts.list_lines(route))
        deprecation = self.texts.describe_deprecation(route)
        if deprecation:
            text += ["", f"@deprecated {deprecation}"]
        yield from write_comment(text)
        if route.method == "WEBSOCKET":
            yield f"  readonly socket: {self.operations.write_socket(route)};"
        else:
            yield f"  readonly {route.method.lower()}: {self.operations.write_operation(route)};"


def write_segment(text: str) -> str:
    """Return the name of the property that a static segment is."""
    return f"${text}" if text in SPECIAL or text.startswith("$") else text


def write_comment(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a comment for editors."""
    safe = [line.replace("*/", "*\\/") for line in lines]
    if len(safe) == 1:
        yield f"  /** {safe[0]} */"
        return
    yield "  /**"
    yield from (f"   * {line}".rstrip() for line in safe)
    yield "   */"
