"""Examples of models of pydantic, with the names that the members have in JSON.

An author writes an example with the names of attributes or with aliases; documents show aliases:

    class Book(BaseModel):
        title: str = Field(alias="Title")

    class Author(BaseModel):
        name: str = Field(alias="Name")
        books: list[Book]

    type            example                      in the document
    Book            {"title": "x"}               {"Title": "x"}
    Book            {"Title": "x"}               {"Title": "x"}
    Book            Book(Title="x")              {"Title": "x"}
    list[Book]      [{"title": "x"}]             [{"Title": "x"}]
    Book | Author   {"name": "n", "books": []}   {"Name": "n", "books": []}
    Book            3, which is no Book          3
"""

from __future__ import annotations

from typing import Any, cast

from treefold_http._description.constraint_keywords import to_json_value
from treefold_http._types import tree
from treefold_http._wire.aliases import JSONObject


def encode_example(node: tree.TypeNode, value: Any, *, for_input: bool = False) -> Any:
    """Return the JSON form of an example, with attribute names replaced by aliases.

    Args:
        node: the type of the example.
        for_input: True for the aliases of a body, which may differ from those of a response.
    """
    try:
        return _apply_aliases(node, to_json_value(value), for_input)
    except Exception:  # the types are user code, and the example may not be of the type
        return to_json_value(value)


def rename_in_examples(node: tree.TypeNode, schema: JSONObject, *, for_input: bool) -> None:
    """Replace the names in the examples of a schema that its author wrote."""
    if isinstance(schema.get("examples"), list):
        examples = schema["examples"]
        schema["examples"] = [encode_example(node, e, for_input=for_input) for e in examples]
    if "example" in schema:
        schema["example"] = encode_example(node, schema["example"], for_input=for_input)


def _apply_aliases(node: tree.TypeNode, value: Any, for_input: bool) -> Any:
    """Return the JSON value with the aliases of every record that its type has in it."""
    if isinstance(node, tree.TypeStatement):
        return _apply_aliases(node.target_type, value, for_input)
    if isinstance(node, tree.UnionType):
        return _apply_aliases(_choose_option(node, value), value, for_input)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if isinstance(node, tree.TupleType):
            pairs = zip(node.items, items, strict=True)
            return [_apply_aliases(inner, each, for_input) for inner, each in pairs]
        item = node.item if isinstance(node, tree.ListType) else node
        return items if item is node else [_apply_aliases(item, each, for_input) for each in items]
    if not isinstance(value, dict):
        return value
    table = cast("JSONObject", value)
    if isinstance(node, tree.Table):
        return {key: _apply_aliases(node.value, each, for_input) for key, each in table.items()}
    return _rename_members(node, table, for_input) if isinstance(node, tree.Record) else table


def _rename_members(node: tree.Record, table: JSONObject, for_input: bool) -> JSONObject:
    """Return the members under their aliases, in the order of the example.

    Only names of pydantic's models are replaced; for a struct or a dataclass, a dictionary is shown
    as its author wrote it. The members inside are renamed in either.
    """
    renamed = dict(table)
    for member in node.declared_members:
        alias = (member.read_as if for_input else member.written_as) or member.name
        written_name = alias if alias in table else member.name
        if written_name in table:
            renamed[written_name] = _apply_aliases(member.type, table[written_name], for_input)
            if written_name != alias and node.family == "model":
                renamed = {
                    alias if key == written_name else key: each for key, each in renamed.items()
                }
    return renamed


def _choose_option(node: tree.UnionType, value: Any) -> tree.TypeNode:
    """Return the option of a union that an example is written for.

    For an object, the first record that knows all of its names, by attribute or alias; for an
    array, the first list; otherwise the first option.
    """
    if not isinstance(value, dict):
        kinds = [option for option in node.options if isinstance(option, tree.ListType)]
        return kinds[0] if kinds and isinstance(value, list) else node.options[0]
    names = set(cast("JSONObject", value))
    for option in node.options:
        if isinstance(option, tree.Record):
            known = {
                name for member in option.declared_members for name in _list_member_names(member)
            }
            if names <= known:
                return option
    return node.options[0]


def _list_member_names(member: tree.Member) -> tuple[str | None, ...]:
    return member.name, member.read_as, member.written_as
