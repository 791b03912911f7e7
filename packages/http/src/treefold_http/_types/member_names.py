"""Bodies of models whose members are all required: decoded in one step, checked by their colons.

Each member takes one colon. A valid body with exactly as many colons as members repeats no name and
has no unknown member: `loads` could only refuse NaN and Infinity, which pydantic accepts.

    class Book(BaseModel):  # two members: a body is decoded here with exactly two colons
        a: int
        b: str

    {"a":1,"b":"x"}         Book(a=1, b="x")
    {"a":1,"a":2}           None: two colons, but pydantic misses `b`
    {"a":1,"a":2,"b":"x"}   None: three colons; pydantic would take it, `loads` refuses it
    {"a":1,"b":"x:y"}       None: three colons; valid, so the slow decoder takes it
    {"a":1,"b":"\\u0041"}    None: a backslash; valid, so the slow decoder takes it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from treefold_http._json.json import BACKSLASH
from treefold_http._types import tree

_N, _I = ord("N"), ord("I")


class QuickDecoder(NamedTuple):
    """Decodes bodies into a model without `loads`.

    Attributes:
        decode: takes the body; returns None unless `loads` would accept the body for sure.
        names: every member name of a body that it decoded.
    """

    decode: Callable[[bytes], Any]
    names: frozenset[str]


def build_quick_decoder(node: tree.TypeNode, parse: Callable[[bytes], Any]) -> QuickDecoder | None:
    """Return the quick decoder of a model; None if its type does not determine its members."""
    if (names := list_required_names(node)) is None:
        return None
    members = len(names)

    def decode_or_none(body: bytes) -> Any:
        # The log prints a body of the quick decoder after one search for secrets in its text, where
        # an escape would hide them: `\u003d` is the `=` of `password=`.
        if body.count(b":") != members or BACKSLASH in body:
            return None
        if (_N in body and b"NaN" in body) or (_I in body and b"Infinity" in body):
            return None
        try:
            return parse(body)
        except (ValueError, RecursionError):
            return None  # the slow decoder raises with the reason

    return QuickDecoder(decode_or_none, frozenset(names))


def list_required_names(node: tree.TypeNode, ancestors: tuple[Any, ...] = ()) -> list[str] | None:
    """List the member names of a struct or model, including those of nested structs and models.

    Args:
        ancestors: the types that are being listed already, to detect recursion.

    Returns:
        A name for each member, repeated if types share one; None if the members depend on the body
        (optional ones, models in lists or unions, mappings) or on the author's validators.
    """
    if not isinstance(node, tree.Record) or node.record_type_key in ancestors:
        return None
    if not _has_fixed_members(node):
        return None
    names: list[str] = []
    for member in node.declared_members:
        inner: list[str] | None = []
        if not _has_no_member_names(member.type):
            inner = list_required_names(member.type, (*ancestors, node.record_type_key))
        if inner is None or member.read_as is None or not member.required:
            return None
        names += [member.read_as, *inner]
    return names


def _has_fixed_members(node: tree.Record) -> bool:
    """Return True if the class adds or renames no member by its settings or validators."""
    kind = node.kind
    if node.family == "struct":
        return not kind.__struct_config__.array_like and kind.__struct_config__.tag is None
    if not hasattr(kind, "model_fields"):
        return False
    code = kind.__pydantic_decorators__
    authors = [base for base in kind.__mro__ if not base.__module__.startswith("pydantic")]
    makes_itself = (
        kind.__pydantic_root_model__
        or kind.__pydantic_custom_init__
        or code.model_validators
        or code.root_validators
        or any("__get_pydantic_core_schema__" in vars(base) for base in authors)
    )
    by_name = any(kind.model_config.get(key) for key in ("populate_by_name", "validate_by_name"))
    validated = code.field_validators or code.validators
    return (
        not makes_itself
        and not by_name
        and all(
            _has_no_member_names(member.type) or not (validated or member.type.markers)
            for member in node.declared_members
        )
    )


def _has_no_member_names(node: tree.TypeNode) -> bool:
    """Return True for scalars and lists of scalars, which have no member names."""
    if isinstance(node, tree.UnionType) or (isinstance(node, tree.ListType) and node.kind is list):
        return all(map(_has_no_member_names, node.inner_types))
    return isinstance(node, (tree.Scalar, tree.Choice)) and node.annotation is not bytearray
