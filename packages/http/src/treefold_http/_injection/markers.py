"""The marker of a parameter: `Header()` in `Annotated[str, Header()]`, or `Depends(...)`.

    annotation                             marker
    str                                    None
    Annotated[str, Header()]               Header()
    Annotated[str, Header]                 Header(), an instance of the class
    Annotated[str, Header()] | None        Header()
    Annotated[str, Header(), Depends(f)]   Depends(f): a dependency goes before a source
    Annotated[User, Depends()] | None      Depends(User): the type it stands on would be lost
    list[Annotated[str, Header()]]         InjectionError, at boot

`resolver` asks for it first: a dependency has no source, and the source is for `resolve_source`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from treefold_http._injection import sources
from treefold_http._injection.dependencies import Dependency, Depends
from treefold_http._types import tree
from treefold_http._types.parameters import InjectionError, format_callable
from treefold_http._wire.aliases import AnyCallable


def find_marker(
    node: tree.TypeNode, name: str, function: AnyCallable
) -> sources.Source | Dependency | None:
    """Return the marker that says where a parameter comes from, None without one.

    `Annotated[str, Header()] | None` means the same as `Annotated[str | None, Header()]`. If a
    marker inside a union were ignored, a client could send in the query a value that a dependency
    should provide.

    Raises:
        InjectionError: for a marker inside a list, or on one of several types.
    """
    if any(marker is Depends for marker in node.markers):
        raise InjectionError(
            f"Depends of parameter {name!r} of {format_callable(function)} must be called; write"
            " Annotated[..., Depends(function)]"
        )
    own = list(filter(_is_source_or_dependency, node.markers))
    options = tree.list_options_without_none(node)
    if len(options) == 1 and options[0] is not node:
        inner = options[0]
        found = filter(_is_source_or_dependency, inner.markers)
        own = [*(_fill_dependency_call(inner.bare_annotation, m) for m in found), *own]
        hidden = next(_yield_hidden_markers(inner), None)
    else:
        hidden = next(_yield_hidden_markers(node), None)
    if hidden is not None:
        kind = "Depends" if isinstance(hidden, Dependency) else find_source_class(hidden).__name__
        raise InjectionError(
            f"{kind}() of parameter {name!r} of {format_callable(function)} has no effect inside"
            f" another type; write Annotated[..., {kind}(...)] around the whole type"
        )
    dependency = next((marker for marker in own if isinstance(marker, Dependency)), None)
    marker = dependency or next(iter(own), None)
    return marker() if isinstance(marker, type) else marker


def is_source(marker: Any) -> bool:
    kind = marker if isinstance(marker, type) else type(marker)
    return issubclass(kind, sources.Source)


def find_source_class(source: Any) -> type:
    return source if isinstance(source, type) else type(source)


def _is_source_or_dependency(marker: Any) -> bool:
    return isinstance(marker, Dependency) or is_source(marker)


def _fill_dependency_call(kind: Any, marker: Any) -> Any:
    nameless = isinstance(marker, Dependency) and marker.call is None
    return replace(marker, call=kind) if nameless else marker


def _yield_hidden_markers(node: tree.TypeNode) -> Iterator[Any]:
    """Yield the source and dependency markers inside unions and lists."""
    if isinstance(node, (tree.UnionType, tree.ListType)):
        for part in node.inner_types:
            yield from filter(_is_source_or_dependency, part.markers)
            yield from _yield_hidden_markers(part)
