"""Tests whose URL cannot be read from their source, so that no route can be named for them.

A request is a call of a client with a URL: one that is a name, a call or another expression is
known only when the test runs. Reads sources; imports and runs nothing.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from treefold_cli._checks.sources import parse_source

_REQUESTS = frozenset(
    {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream", "websocket"}
)
_Tests = (ast.FunctionDef, ast.AsyncFunctionDef)


def find_computed_url_tests(source: bytes, is_served_url: Callable[[str], bool]) -> Iterator[str]:
    """Yield the tests of a file that send a request to a URL that is computed.

    Args:
        source: the file.
        is_served_url: return True if some route serves a URL in which each computed part is `0`.
    """
    if (tree := parse_source(source)) is None:
        return
    shared = set(_find_string_variables(tree.body))
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for test in inner:
            if isinstance(test, _Tests) and test.name.startswith("test"):
                reading = _RequestDetector(set(_yield_client_names(test)), shared, is_served_url)
                reading.holds_url = any(map(reading.is_known_url_literal, ast.walk(test)))
                if any(map(reading.requests_computed_url, ast.walk(test))):
                    yield f"{prefix}{test.name}"


def _find_string_variables(body: Iterable[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str())):
                yield name
            case _:
                pass


def _yield_client_names(test: ast.AST) -> Iterator[str]:
    """Yield the names that stand for a client: fixtures called so, and those that a test makes."""
    for node in ast.walk(test):
        match node:
            case ast.arg(arg=name) if "client" in name.lower():
                yield name
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=made)
                | ast.withitem(context_expr=made, optional_vars=ast.Name(id=name))
            ) if _makes_client(made):
                yield name
            case _:
                pass


def _makes_client(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.endswith("Client")
        case ast.Await(value=inner):
            return _makes_client(inner)
        case _:
            return False


@dataclass(slots=True)
class _RequestDetector:
    """The names of one test that tell which of its calls are requests, and to which URL."""

    clients: set[str]
    texts: set[str]
    is_known: Callable[[str], bool]
    holds_url: bool = False

    def is_known_url_literal(self, node: ast.AST) -> bool:
        """Return True for a URL that is written out, such as one of the parameters of a test."""
        text = node.value if isinstance(node, ast.Constant) else None
        return isinstance(text, str) and text.startswith("/") and self.is_known(text)

    def requests_computed_url(self, node: ast.AST) -> bool:
        """Return True for a request to a URL that is not written out."""
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id=name), attr=verb), args=given, keywords=named
            ) if name in self.clients and verb in _REQUESTS:
                given = given[1:] if verb in ("request", "stream") else given
                urls = [*given[:1], *(one.value for one in named if one.arg == "url")]
                return bool(urls) and not self._is_static_url(urls[0])
            case _:
                return False

    def _is_static_url(self, url: ast.expr) -> bool:
        match url:
            case ast.Constant():
                return True
            case ast.Name(id=name):
                return self.holds_url or name in self.texts
            case ast.JoinedStr(values=parts):
                texts = (part.value if isinstance(part, ast.Constant) else "0" for part in parts)
                return self.is_known("".join(map(str, texts)))
            case _:
                return False
