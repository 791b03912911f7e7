"""The path of a route: static segments, and parameters with their types.

`/v1/user/{id:int}` is the static segments `v1` and `user` and the parameter `id`. Parameters are
told apart by position, not by name: renaming one changes no URL.
"""

from __future__ import annotations

from dataclasses import dataclass

from treefold_contract._types.nodes import Scalar, TypeNode

TEXT = Scalar("str")


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of a path: a text, or a parameter with its type."""

    text: str
    is_parameter: bool = False
    type: TypeNode = TEXT

    @property
    def template(self) -> str:
        """The segment without the type: `user` or `{id}`."""
        return f"{{{self.text}}}" if self.is_parameter else self.text


Path = tuple[Segment, ...]


def format_template(path: Path) -> str:
    """Return the path without types, such as `/v1/user/{id}`."""
    return "/" + "/".join(segment.template for segment in path)


def path_key(path: Path) -> str:
    """Return the path with parameters by position, such as `/v1/user/{}`."""
    return "/" + "/".join("{}" if each.is_parameter else each.text for each in path)
