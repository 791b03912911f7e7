"""The table of the three things of a change: absent, null and a value, for any kind of model.

`ROWS` are types with the JSON values that they read, the falsy ones first, and values of others.
A model of any kind gets two members for each row: `name`, and `name_or_null`, which allows null.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import uuid
from typing import Any, Literal

from treefold_http import Changes, UnprocessableEntity
from treefold_http._json.json import loads
from treefold_http._types.decode import build_model_decoder
from treefold_http._types.read import parse_annotation
from treefold_http.openapi._components import Components
from treefold_http.openapi._schemas import Schemas

ROWS: dict[str, tuple[Any, list[tuple[Any, Any]], list[Any]]] = {
    "text": (str, [("", ""), ("x", "x")], [1, [], {}]),
    "whole": (int, [(0, 0), (7, 7)], ["x", [], 1.5]),
    "number": (float, [(0, 0.0), (0.5, 0.5)], ["x", {}]),
    "flag": (bool, [(False, False), (True, True)], ["x", []]),
    "items": (list[int], [([], []), ([1], [1])], [0, {}, ["x"]]),
    "table": (dict[str, int], [({}, {}), ({"a": 0}, {"a": 0})], [0, [], {"a": "x"}]),
    "day": (dt.date, [("2026-01-02", dt.date(2026, 1, 2))], ["", "x", []]),
    "amount": (decimal.Decimal, [("0", decimal.Decimal(0))], ["", "x", []]),
    "ident": (uuid.UUID, [(str(uuid.UUID(int=0)), uuid.UUID(int=0))], ["", 0, {}]),
    "colour": (Literal["red", ""], [("", ""), ("red", "red")], ["blue", 0, False]),
}


def list_hints() -> dict[str, Any]:
    """Return the annotations of the members."""
    hints = {name: kind for name, (kind, _, _) in ROWS.items()}
    return hints | {f"{name}_or_null": kind | None for name, kind in hints.items()}


def read_body(annotation: Any, body: bytes) -> Any:
    """Return the value of a body."""
    decoder = build_model_decoder(parse_annotation(annotation))
    assert decoder is not None
    return decoder.decode(body, loads(body))


def decode(model: Any, body: Any) -> Any:
    """Return the changes of a body; None where it is refused."""
    try:
        return read_body(Changes[model], json.dumps(body).encode())
    except UnprocessableEntity:
        return None


def describe(model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of the changes in the document, and all named schemas."""
    components = Components()
    schema = Schemas(components).build_body_schema(parse_annotation(Changes[model]))
    named = components.resolve_named_schemas()
    return named[schema["$ref"].rpartition("/")[2]], named


def allows_null(schema: Any) -> bool:
    """Return True if a schema has null among its options."""
    options = schema.get("anyOf", [schema])
    return any(option.get("type") == "null" or None in option.get("enum", ()) for option in options)


def check_all_rows(model: Any) -> int:
    """Send every value to every member of a model; return the number of bodies."""
    schema, _ = describe(model)
    assert schema["type"] == "object"
    assert not schema.get("required")
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(list_hints())
    assert not any("default" in each for each in schema["properties"].values())
    assert decode(model, {}) == {}
    sent = 1
    for name, (_, taken, others) in ROWS.items():
        assert not allows_null(schema["properties"][name])
        assert allows_null(schema["properties"][f"{name}_or_null"])
        assert decode(model, {name: None}) is None, name
        assert decode(model, {f"{name}_or_null": None}) == {f"{name}_or_null": None}
        for member in (name, f"{name}_or_null"):
            for given, expected in taken:
                found = decode(model, {member: given})
                assert found == {member: expected}, (member, given)
                assert type(found[member]) is type(expected)
                sent += 1
            for given in others:
                assert decode(model, {member: given}) is None, (member, given)
                sent += 1
    refused: list[Any] = [None, [], "x", 0, {"texts": ""}, {"text": "", "": 0}, {"Text": ""}]
    for body in refused:
        assert decode(model, body) is None, body
    return sent
