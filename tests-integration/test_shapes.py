"""Absent, null and values of every field type: written exactly so, and documented exactly so.

The table has a row for each field type, with the JSON values that it takes and those that it does
not. Each value is sent alone, as `Changes` of each kind of model, to a column that is never null
and to one that may be; the row is then read again from the database.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import enum
import json
import uuid
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import orm_postgres
import pytest
from jsonschema import Draft202012Validator
from pydantic import create_model
from serving import write_tree

from treefold import Application, Changes, UnprocessableEntity
from treefold.orm import FieldValueError, Model, Shape, close_all, configure, create_all, fields
from treefold_http._json.json import loads
from treefold_http._types.decode import build_model_decoder
from treefold_http._types.read import parse_annotation
from treefold_http.openapi._components import Components
from treefold_http.openapi._schemas import Schemas


class Colour(enum.Enum):
    """Values of an enum field."""

    RED = "red"
    NONE = ""


ALIAS = "shapes"
BY_NAME = {"enum_class": Colour}
UID = uuid.UUID(int=0)
DAY = dt.date(2026, 1, 2)
EPOCH = dt.datetime.fromtimestamp(0, dt.UTC)
NOON = dt.datetime(2026, 1, 2, 12, tzinfo=dt.UTC)
BYTES = base64.b64encode(b"\0x").decode()
ANYTHING: list[Any] = ["", 0, False, [], {}, {"a": None}]
JSON = [(value, value) for value in ANYTHING]
# name: the field, its first value, values that it takes, values that it refuses
TABLE: dict[str, tuple[Any, dict[str, Any], Any, list[tuple[Any, Any]], list[Any]]] = {
    "char": (fields.CharField, {"max_length": 3}, "old", [("", ""), ("x", "x")], ["long", 0, []]),
    "text": (fields.TextField, {}, "old", [("", "")], [False, {}, "\0"]),
    "slug": (fields.SlugField, {}, "old", [("a-b", "a-b")], ["", "a b"]),
    "email": (fields.EmailField, {}, "a@b.de", [("c@d.org", "c@d.org")], ["", "x"]),
    "url": (fields.URLField, {}, "https://a.b", [("http://c.d", "http://c.d")], ["", "x"]),
    "address": (fields.GenericIPAddressField, {}, "::1", [("192.0.2.1", "192.0.2.1")], ["", "x"]),
    "letter": (fields.CharField, {"max_length": 1, "choices": ["", "d"]}, "d", [("", "")], ["x"]),
    "number": (fields.IntegerField, {}, 5, [(0, 0), (-7, -7)], [2**31, "1", 1.5, False, ""]),
    "small": (fields.SmallIntegerField, {}, 5, [(0, 0)], [2**15, True]),
    "big": (fields.BigIntegerField, {}, 5, [(0, 0), (2**40, 2**40)], [2**63, "0"]),
    "positive": (fields.PositiveIntegerField, {}, 5, [(0, 0)], [-1, False]),
    "grade": (fields.IntegerField, {"choices": [0, 5]}, 5, [(0, 0)], [1, False]),
    "flag": (fields.BooleanField, {}, True, [(False, False)], [0, "", "false"]),
    "ratio": (fields.FloatField, {}, 5.5, [(0, 0.0), (0.5, 0.5)], ["", False]),
    "price": (
        *(fields.DecimalField, {"max_digits": 4, "decimal_places": 2}, decimal.Decimal(5)),
        *([("0", decimal.Decimal(0))], ["", "1.234", "x", False]),
    ),
    "day": (fields.DateField, {}, DAY, [("0001-01-01", dt.date.min)], ["", 0]),
    "hour": (fields.TimeField, {}, dt.time(5), [("00:00:00", dt.time(0))], ["", 0]),
    "moment": (fields.DateTimeField, {}, NOON, [("1970-01-01T00:00:00Z", EPOCH)], ["", False]),
    "span": (fields.DurationField, {}, dt.timedelta(5), [("PT0S", dt.timedelta(0))], ["", "x"]),
    "ident": (fields.UUIDField, {}, UID, [(str(uuid.UUID(int=1)), uuid.UUID(int=1))], ["", 0]),
    "blob": (fields.BinaryField, {}, b"old", [("", b""), (BYTES, b"\0x")], [0, "&"]),
    "data": (fields.JSONField, {}, "old", JSON, []),
    "colour": (fields.EnumField, BY_NAME, Colour.RED, [("", Colour.NONE)], ["x", 0]),
}
ITEMS: list[tuple[Any, Any]] = [([], []), ([0], [0])]
ARRAY: Any = (fields.ArrayField, {"base": fields.IntegerField()}, [5], ITEMS, [0, ["x"]])
UNSAID = {"slug", "email", "url", "address", "price", "day", "hour", "moment", "span", "ident"}
"""Columns whose refused values a schema cannot tell, as formats are no assertions."""


def make_model(engine: str) -> tuple[Any, dict[str, Any]]:
    """Return a model with both columns for each row of the table, and the table."""
    table = TABLE | ({"items": ARRAY} if engine == "postgres" else {})
    # an alias of its own: an application takes "default" from its settings, unless it is there
    body: dict[str, Any] = {"__module__": __name__, "Meta": type("Meta", (), {"database": ALIAS})}
    for name, (kind, options, first, _, _) in table.items():
        body[name] = kind(**options, default=first)
        body[f"{name}_or_null"] = kind(**options, null=True)
    return type("Thing", (Model,), body), table


def make_kinds(model: Any, names: list[str]) -> dict[str, Any]:
    """Return models of the columns: a shape, and by hand a dataclass and a pydantic model."""
    columns = {name: getattr(model, name) for name in names}
    shape: Any = type("ThingShape", (Shape,), {"__module__": __name__, "id": model.id, **columns})
    plain = {name: hint for name, hint in get_type_hints(shape).items() if name in columns}
    given: Any = {name: (hint, ...) for name, hint in plain.items()}
    return {
        "shape": shape,
        "dataclass": make_dataclass("ThingRecord", plain.items()),
        "model": create_model("ThingModel", **given),
    }


class Sender:
    """Sends changes to one row, as a handler does."""

    def __init__(self, model: Any, kind: Any) -> None:
        node = parse_annotation(Changes[kind])
        decoder = build_model_decoder(node)
        assert decoder is not None
        self.decode, self.model = decoder.decode, model
        components = Components()
        schema = Schemas(components).build_body_schema(node)
        named = components.resolve_named_schemas()
        self.schema = named[schema["$ref"].rpartition("/")[2]]
        whole = {**self.schema, "components": {"schemas": named}}
        self.validator: Any = Draft202012Validator(whole)

    def send(self, row: Any, body: Any) -> list[str] | None:
        """Change and save the row; None where the body or a value in it is refused."""
        text = json.dumps(body).encode()
        try:
            names = row.assign(self.decode(text, loads(text)))
        except (UnprocessableEntity, FieldValueError):
            return None
        row.save()
        return names


@pytest.fixture
def engine_kinds(engine: str, request: pytest.FixtureRequest) -> Any:
    """A model, its table, and the kinds of models for its changes, on one engine."""
    model, table = make_model(engine)
    names = [each for name in table for each in (name, f"{name}_or_null")]
    if engine == "sqlite":
        configure("sqlite", ":memory:", alias=ALIAS)
        create_all(model, using=ALIAS)
        yield model, table, make_kinds(model, names)
    else:
        with orm_postgres.database(request.getfixturevalue("postgres_server")) as address:
            configure(database=address, alias=ALIAS)
            create_all(model, using=ALIAS)
            yield model, table, make_kinds(model, names)
            close_all()
    close_all()


@pytest.mark.parametrize("kind", ["shape", "dataclass", "model"])
def test_absent_null_and_values_are_written_as_they_were_sent(engine_kinds: Any, kind: str) -> None:
    model, table, kinds = engine_kinds
    sender = Sender(model, kinds[kind])
    row = model.objects.create()
    stored = model.objects.values().get()

    def check(body: dict[str, Any], expected: dict[str, Any] | None) -> None:
        names = sender.send(row, body)
        if expected is None:
            assert names is None, (body, names)
            assert model.objects.values().get() == stored
            return
        assert names == list(expected), body
        stored.update(expected)
        assert model.objects.values().get() == stored
        for name, value in expected.items():
            assert type(stored[name]) is type(value)

    check({}, {})
    check({"id": 7}, None)
    check({"char": "new", "nothing": 1}, None)
    for name, (_, _, _, taken, refused) in table.items():
        check({name: None}, None)
        check({f"{name}_or_null": None}, {f"{name}_or_null": None})
        for column in (name, f"{name}_or_null"):
            for given, expected in taken:
                check({column: given}, {column: expected})
            for given in refused if kind == "shape" else ():
                check({column: given}, None)
                if name != "text":
                    check({"text": "changed", column: given}, None)
        check({f"{name}_or_null": None}, {f"{name}_or_null": None})


def test_the_document_says_what_is_taken(engine_kinds: Any) -> None:
    model, table, kinds = engine_kinds
    sender = Sender(model, kinds["shape"])
    schema, is_valid = sender.schema, sender.validator.is_valid
    assert "required" not in schema
    assert schema["additionalProperties"] is False
    assert is_valid({})
    assert not is_valid({"id": 7})
    assert not any("default" in each for each in schema["properties"].values())
    formats = {name: schema["properties"][name].get("format") for name in ("email", "url", "char")}
    assert formats == {"email": "email", "url": "uri", "char": None}
    for name, (_, _, _, taken, refused) in table.items():
        assert not is_valid({name: None}), name
        assert is_valid({f"{name}_or_null": None}), name
        for column in (name, f"{name}_or_null"):
            for given, _ in taken:
                assert is_valid({column: given}), (column, given)
            for given in refused:
                is_told = name not in {*UNSAID, "blob"} and given not in ("\0", 2**63)
                assert not (is_told and is_valid({column: given})), (column, given)


def test_a_model_of_the_database_is_no_parameter(tmp_path: Path) -> None:
    handler = "from Models.shop import Book\nasync def handler(book: Book): ...\n"
    text = "from treefold.orm import Model, fields\nclass Book(Model): a = fields.TextField()\n"
    tree = {"Api/v1/Book/Post.py": handler, "Models/shop.py": text}
    app = Application(write_tree(tmp_path, tree))
    app.boot()
    (broken,) = app.report.broken
    assert "Parameter 'book' of handler() cannot be of type Book: take Changes[...]" in broken.error
    assert "a Shape of its columns as the body, or find the row in a dependency" in broken.error
