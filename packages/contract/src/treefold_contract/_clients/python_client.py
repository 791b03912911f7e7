"""Writes a client in Python: a stub, and a module that is the same for every API.

    client.v1.user(7).get()        class V1User(Place[_Mode]): def __call__(self, id: int) -> ...

An attribute is a segment, a call is a parameter. A segment that is no name of small letters, digits
and `_`, that is a keyword, a method or `socket`, is a subscript: `client.v1["order-line"]`.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping
from functools import cache

from treefold_contract._clients.place_names import ROOT, check_client_name, name_places
from treefold_contract._clients.places import METHODS, Place, build_places
from treefold_contract._clients.python_operations import OperationWriter
from treefold_contract._clients.python_types import PythonTypes, is_name, write_text
from treefold_contract._clients.type_names import Names, list_declared, name_types
from treefold_contract._clients.words import (
    NO_WORDS,
    RouteTexts,
    Words,
    read_runtime,
)
from treefold_contract._facts.facts import Lock, RouteFacts

ATTRIBUTE = re.compile(r"[a-z][a-z0-9_]*")
SPECIAL = frozenset(("socket", *(method.lower() for method in METHODS)))
BUILTINS = (
    *("BaseException", "Exception", "bool", "bytes", "dict", "float", "int", "list", "object"),
    *("property", "str", "tuple", "type"),
)
CALLS = {
    "operation": ("Call", "TestCall[_P]", "_Data", "_Result"),
    "list_operation": ("ListCall", "TestCall[_P]", "_Data", "_Result"),
    "socket_operation": (
        *("OpenSocket", "OpenTestSocket[_P, _Sent, _Received]"),
        *("_Sent", "_Received"),
    ),
}
"""What the decorator of an operation makes of it, with `Sync` or `Async` in front, and in tests."""


def write_python_client(
    lock: Lock, words: Words = NO_WORDS, *, name: str = "client", version: str = ""
) -> dict[str, str]:
    """Return the files of a client in Python, by name.

    Args:
        lock: the facts of the API.
        words: what the stub says beside the facts, by the title of a route.
        name: the name of the package.
        version: the one version that the client has; empty for all.

    Raises:
        LockError: the version is not in the lock, the name is not one of a package, or no client
            can send the path of a route.
    """
    check_client_name(name, is_module=True)
    root = build_places(lock, version)
    prelude = read_runtime("prelude.pyi.txt")
    names = Names(list_taken())
    type_names = name_types(root, lock.definitions, names)
    types = PythonTypes(lock.definitions, type_names)
    place_names = name_places(root, names)
    writer = PlaceWriter(
        RouteTexts(lock, words), OperationWriter(lock, types, names), place_names, names
    )
    places = [writer.write_place(place) for place in root.walk()]
    definitions = [types.write_definition(*each) for each in list_declared(type_names)]
    parts = [prelude, *writer.deprecated.values(), *places, *writer.operations.tables, *definitions]
    return {
        f"{name}/__init__.pyi": "\n".join(parts),
        f"{name}/__init__.py": read_runtime("client.py.txt"),
        f"{name}/py.typed": "",
    }


@cache
def list_taken() -> frozenset[str]:
    """Return the names that the stub of every client has, and the keywords."""
    prelude = read_runtime("prelude.pyi.txt")
    declared = re.findall(r"^(?:class |def )?(\w+)\b(?=[(:]| =)", prelude, re.MULTILINE)
    imported = re.findall(r"\b[A-Za-z]\w+", prelude[: prelude.index("_P =")])
    return frozenset((ROOT, *keyword.kwlist, *BUILTINS, *declared, *imported))


class PlaceWriter:
    """Writes the classes of places."""

    def __init__(
        self,
        texts: RouteTexts,
        operations: OperationWriter,
        place_names: Mapping[int, str],
        names: Names,
    ) -> None:
        self.texts = texts
        self.operations = operations
        self.place_names = place_names
        self.names = names
        self.deprecated: dict[tuple[str, str], str] = {}
        self.decorators: dict[tuple[str, str], str] = {}

    def write_place(self, place: Place) -> str:
        """Return the class of a place."""
        own = self.place_names[id(place)]
        lines = [*self.list_subscripts(place), *self.list_call(place)]
        for method in sorted(place.routes):
            lines += self.write_method(place.routes[method], own)
        used = set(re.findall(r"\w+", "\n".join(lines)))
        bases: list[str] = []
        before: list[str] = []
        attributes: list[str] = []
        for text in sorted(filter(is_attribute, place.statics)):
            line = f"    {text}: {self.place_names[id(place.statics[text])]}[_Mode]"
            if text in used:
                # in the class itself it would hide the type of that name
                base = self.names.claim(f"{own}{text.title()}Base")
                before.append(f"class {base}(Place[_Mode]):\n{line}\n")
                bases.append(f"{base}[_Mode]")
            else:
                attributes.append(line)
        head = f"class {own}({', '.join(bases) or 'Place[_Mode]'}):"
        return "\n".join([*before, head, *attributes, *lines, *_end(attributes, lines), ""])

    def list_subscripts(self, place: Place) -> Iterator[str]:
        """Yield the lines of the segments that are no attributes."""
        texts = [text for text in sorted(place.statics) if not is_attribute(text)]
        for text in texts:
            if len(texts) > 1:
                yield "    @overload"
            yield (
                f"    def __getitem__(self, segment: Literal[{write_text(text)}], /) -> "
                f"{self.place_names[id(place.statics[text])]}[_Mode]: ..."
            )

    def list_call(self, place: Place) -> Iterator[str]:
        """Yield the line of the parameter."""
        parameter = place.parameter
        if parameter is not None:
            name = parameter.path[-1].text
            name = f"{name}: " if is_name(name) and name != "self" else "value: "
            node = self.operations.types.write(parameter.type, "request", is_text=True)
            end = "" if name != "value: " else ", /"
            yield (
                f"    def __call__(self, {name}{node}{end}) -> "
                f"{self.place_names[id(parameter)]}[_Mode]: ..."
            )

    def write_method(self, route: RouteFacts, owner: str) -> Iterator[str]:
        """Yield the lines of one method of a place."""
        decorator, function = self.operations.write_operation(route, owner)
        deprecation = self.texts.describe_deprecation(route)
        if deprecation:
            decorator = self.find_deprecated(decorator, deprecation)
        yield f"    @{decorator}"
        lines = list(self.texts.list_lines(route))
        if len(lines) == 1:
            yield f"    def {function}: ..."
            return
        yield f"    def {function}:"
        yield '        """' + _escape(lines[0])
        yield from (f"        {_escape(line)}".rstrip() for line in lines[1:])
        yield '        """'

    def find_deprecated(self, decorator: str, message: str) -> str:
        """Return the decorator that reports a deprecation, which is made once for each message."""
        key = decorator, message
        if key not in self.decorators:
            name = self.names.claim(f"deprecated_{len(self.decorators) + 1}")
            self.decorators[key] = name
            call, test_call, first, second = CALLS[decorator]
            parameters = f"[_P, {first}, {second}]"
            modes = (
                ("Async", f"{call}{parameters}"),
                ("Sync", f"Sync{call}{parameters}"),
                ("AsyncTests", f"Async{test_call}"),
                ("Tests", test_call),
            )
            lines = [f"class {name}({decorator}{parameters}):"]
            for mode, made in modes:
                lines.append("    @overload")
                if not mode.endswith("Tests"):  # a test calls a deprecated route to check it
                    lines.append(f"    @deprecated({write_text(message)})")
                place = f"place: Place[{mode}]"
                lines.append(f"    def __get__(self, {place}, owner: object) -> {made}: ...")
            self.deprecated[key] = "\n".join([*lines, ""])
        return self.decorators[key]


def is_attribute(text: str) -> bool:
    """Return True for a segment that is an attribute, and not a subscript."""
    is_free = text not in SPECIAL and not keyword.iskeyword(text)
    return is_free and ATTRIBUTE.fullmatch(text) is not None


def _escape(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def _end(*lines: list[str]) -> list[str]:
    return [] if any(lines) else ["    pass"]
