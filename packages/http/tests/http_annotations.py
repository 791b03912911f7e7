"""Annotations that users of FastAPI, pydantic and msgspec write, and the tree of each in words.

No `from __future__ import annotations` here: the annotations are values, as `read` gets them from a
handler whose names are resolved.
"""

# ruff: noqa: UP006, UP007, UP045 - all spellings of a type are in the table

import collections
import datetime as dt
import decimal
import enum
import pathlib
import typing
import uuid
from collections.abc import Iterable, Mapping, MutableMapping, Sequence, Set as AbstractSet
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, ClassVar, Generic, Literal, NewType, Optional, TypeVar, Union

import annotated_types as at
import msgspec
import pydantic
import typing_extensions as te
from msgspec import Meta, Struct
from pydantic import BaseModel, Field

from treefold_http import UploadFile

T = TypeVar("T")
B = TypeVar("B", bound=int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Rank(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Letter(str, enum.Enum):  # noqa: UP042 - how it was written before StrEnum
    A = "a"
    B = "b"


class Mixed(enum.Enum):
    A = "a"
    ONE = 1


class MyInt(int): ...


class Pair(typing.NamedTuple):
    left: int
    right: str


UserId = NewType("UserId", int)
Sizes = NewType("Sizes", list[int])
Limit: Any = Annotated[int, at.Gt(0)]
Positive = NewType("Positive", Limit)  # pyright: ignore[reportGeneralTypeIssues] - it has limits


@dataclass
class Item:
    name: str
    price: float = 0.0


@dataclass
class Small:
    n: int
    s: str | None = None


@dataclass
class Tree:
    value: int
    children: "list[Tree]" = field(default_factory=list["Tree"])


@dataclass
class Scaled:
    size: int = field(init=False, default=0)
    unit: ClassVar[int] = 10
    times: InitVar[int] = 1


@dataclass
class Page(Generic[T]):
    items: list[T]
    first: T | None = None


@dataclass
class IntPage(Page[int]):
    more: bool = False


@dataclass
class Sub(Item):
    extra: int = 0


@dataclass
class Holder:
    item: Item
    table: dict[str, Item] = field(default_factory=dict[str, Item])
    either: Item | Small | None = None


@dataclass
class Limited:
    a: Annotated[int, at.Gt(4)]
    b: Annotated[list[Annotated[int, at.Gt(0)]], at.Len(1)] = field(default_factory=lambda: [1])


@dataclass
class Dated:
    day: dt.date
    at: dt.datetime | None = None
    price: decimal.Decimal = decimal.Decimal(1)
    colour: Colour = Colour.RED


class Point(typing.TypedDict):
    x: int
    y: typing.NotRequired[int]


class Partial(typing.TypedDict, total=False):
    x: typing.Required[int]
    y: str


class Later(te.TypedDict):
    x: te.ReadOnly[int]
    y: te.NotRequired[str]


class TablePage(typing.TypedDict, Generic[T]):
    items: list[T]


class Model(BaseModel):
    name: str
    n: int = 0


class Aliased(BaseModel):
    name: str = Field(alias="theName")


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Node(BaseModel):
    v: int
    kids: "list[Node]" = []


class Constrained(BaseModel):
    a: int = Field(gt=4)
    b: Annotated[str, Field(min_length=1)] = "b"


class Forbidding(BaseModel, extra="forbid"):
    a: int


class ModelPage(BaseModel, Generic[T]):
    items: list[T]


@pydantic.dataclasses.dataclass
class Checked:
    a: int = Field(gt=4)


class Row(Struct):
    name: str
    n: int = 0


class Camel(Struct, rename="camel"):
    my_name: str


class One(Struct, tag="one", tag_field="kind"):
    a: int


class Two(Struct, tag="two", tag_field="kind"):
    b: str


class Deep(Struct):
    v: int
    kids: "list[Deep]" = []


class Bounded(Struct):
    a: Annotated[int, Meta(gt=4)]


class RowPage(Struct, Generic[T]):
    items: list[T]


Number = te.TypeAliasType("Number", int)
Large = te.TypeAliasType("Large", Annotated[int, at.Gt(4)])
Many = te.TypeAliasType("Many", list[T], type_params=(T,))

TABLE: list[tuple[Any, str]] = [
    # scalars
    (str, "str"),
    (int, "int"),
    (float, "float"),
    (bool, "bool"),
    (None, "None"),
    (type(None), "None"),
    (bytes, "bytes"),
    (decimal.Decimal, "Decimal"),
    (uuid.UUID, "UUID"),
    (dt.datetime, "datetime"),
    (dt.date, "date"),
    (dt.time, "time"),
    (dt.timedelta, "timedelta"),
    (Any, "any"),
    (object, "any"),
    (T, "any"),
    (B, "int"),
    # choices
    (Colour, "one of 'red', 'blue'"),
    (Rank, "one of 1, 2"),
    (Letter, "one of 'a', 'b'"),
    (Mixed, "one of 'a', 1"),
    (Literal["a"], "one of 'a'"),
    (Literal["a", "b"], "one of 'a', 'b'"),
    (Literal[1, 2], "one of 1, 2"),
    (Literal["a", 1], "one of 'a', 1"),
    (Literal[True], "one of True"),
    (Literal["a", None], "one of 'a', None"),
    # unions
    (int | None, "(int | None)"),
    (Optional[int], "(int | None)"),
    (Union[int, None], "(int | None)"),
    (Union[int, str], "(int | str)"),
    (str | int, "(str | int)"),
    (int | float, "(int | float)"),
    (int | str | None, "(int | str | None)"),
    (bool | int, "(bool | int)"),
    (Colour | None, "(one of 'red', 'blue' | None)"),
    (Colour | int, "(one of 'red', 'blue' | int)"),
    (Optional[Literal["a"]], "(one of 'a' | None)"),
    (dt.date | dt.datetime, "(date | datetime)"),
    (list[int] | None, "(list[int] | None)"),
    (dict[str, int] | list[int], "(dict[str, int] | list[int])"),
    # lists, sets and tuples
    (list, "list[any]"),
    (typing.List, "list[any]"),
    (typing.List[int], "list[int]"),
    (list[int], "list[int]"),
    (list[str], "list[str]"),
    (list[float], "list[float]"),
    (list[bool], "list[bool]"),
    (list[Any], "list[any]"),
    (list[int | None], "list[(int | None)]"),
    (list[int | str], "list[(int | str)]"),
    (list[list[int]], "list[list[int]]"),
    (list[Colour], "list[one of 'red', 'blue']"),
    (list[dt.date], "list[date]"),
    (list[uuid.UUID], "list[UUID]"),
    (Sequence[int], "Sequence[int]"),
    (typing.Sequence[int], "Sequence[int]"),
    (set, "set[any]"),
    (set[int], "set[int]"),
    (typing.Set[str], "set[str]"),
    (frozenset[str], "frozenset[str]"),
    (AbstractSet[int], "Set[int]"),
    (tuple, "tuple[any]"),
    (typing.Tuple, "tuple[any]"),
    (tuple[int, ...], "tuple[int]"),
    (tuple[int, str], "(int, str)"),
    (typing.Tuple[int, str], "(int, str)"),
    (tuple[int], "(int)"),
    (tuple[()], "()"),
    (list[tuple[int, str]], "list[(int, str)]"),
    # mappings
    (dict, "dict[any, any]"),
    (typing.Dict, "dict[any, any]"),
    (dict[str, int], "dict[str, int]"),
    (typing.Dict[str, int], "dict[str, int]"),
    (dict[str, Any], "dict[str, any]"),
    (dict[str, list[int]], "dict[str, list[int]]"),
    (dict[str, dict[str, int]], "dict[str, dict[str, int]]"),
    (dict[str, int | None], "dict[str, (int | None)]"),
    (Mapping[str, int], "Mapping[str, int]"),
    (MutableMapping[str, int], "MutableMapping[str, int]"),
    (dict[Colour, int], "dict[one of 'red', 'blue', int]"),
    (dict[Literal["a", "b"], int], "dict[one of 'a', 'b', int]"),
    # names of types
    (UserId, "int"),
    (Sizes, "list[int]"),
    (Positive, "int where gt=0"),
    (list[UserId], "list[int]"),
    (UserId | None, "(int | None)"),
    (Number, "Number: int"),
    (list[Number], "list[Number: int]"),
    (Optional[Number], "(Number: int | None)"),
    (Large, "Large: int where gt=4"),
    (Many[int], "Many: list[int]"),
    (Many[Number], "Many: list[Number: int]"),
    # dataclasses
    (Item, "Item(name: str, price=: float)"),
    (Item | None, "(Item(name: str, price=: float) | None)"),
    (list[Item], "list[Item(name: str, price=: float)]"),
    (dict[str, Item], "dict[str, Item(name: str, price=: float)]"),
    (Item | Small, "(Item(name: str, price=: float) | Small(n: int, s=: (str | None)))"),
    (list[Item | Small],
     "list[(Item(name: str, price=: float) | Small(n: int, s=: (str | None)))]"),
    (Tree, "Tree(value: int, children=: list[Tree(...)])"),
    (list[Tree], "list[Tree(value: int, children=: list[Tree(...)])]"),
    (Scaled, "Scaled(size (out)=: int, times (in)=: int)"),
    (Page, "Page(items: list[any], first=: (any | None))"),
    (Page[int], "Page(items: list[int], first=: (int | None))"),
    (Page[Page[int]], "Page(items: list[Page(items: list[int], first=: (int | None))],"
     " first=: (Page(...) | None))"),
    (list[Page[str]], "list[Page(items: list[str], first=: (str | None))]"),
    (IntPage, "IntPage(items: list[int], first=: (int | None), more=: bool)"),
    (Sub, "Sub(name: str, price=: float, extra=: int)"),
    (Holder, "Holder(item: Item(name: str, price=: float), table=: dict[str, Item(...)],"
     " either=: (Item(...) | Small(n: int, s=: (str | None)) | None))"),
    (Dated, "Dated(day: date, at=: (datetime | None), price=: Decimal,"
     " colour=: one of 'red', 'blue')"),
    (NewType("Stock", Item), "Item(name: str, price=: float)"),
    # TypedDicts
    (Point, "Point(x: int, y?: int)"),
    (list[Point], "list[Point(x: int, y?: int)]"),
    (Point | None, "(Point(x: int, y?: int) | None)"),
    (Partial, "Partial(x: int, y?: str)"),
    (TablePage[int], "TablePage(items: list[int])"),
    # constraints
    (Annotated[int, at.Gt(4)], "int where gt=4"),
    (Annotated[float, at.Ge(1)], "float where ge=1"),
    (Annotated[int, at.Gt(0), at.Lt(3)], "int where gt=0 lt=3"),
    (Annotated[int, at.MultipleOf(2)], "int where multiple_of=2"),
    (Annotated[str, at.MinLen(2)], "str where min_length=2"),
    (Annotated[str, at.MaxLen(1)], "str where max_length=1"),
    (Annotated[list[int], at.MinLen(1)], "list[int] where min_length=1"),
    (Annotated[dict[str, int], at.MaxLen(1)], "dict[str, int] where max_length=1"),
    (list[Annotated[int, at.Gt(0)]], "list[int where gt=0]"),
    (dict[str, Annotated[int, at.Gt(0)]], "dict[str, int where gt=0]"),
    (Optional[Annotated[int, at.Gt(0)]], "(int where gt=0 | None)"),
    (Union[Annotated[int, at.Gt(0)], str], "(int where gt=0 | str)"),
    (Annotated[UserId, at.Gt(0)], "int where gt=0"),
    (Annotated[int, "words"], "int"),
    (Annotated[int, te.Doc("An id.")], "int"),
    (Annotated[list[Item], at.MinLen(1)],
     "list[Item(name: str, price=: float)] where min_length=1"),
    (Limited, "Limited(a: int where gt=4, b=: list[int where gt=0] where min_length=1)"),
    (list[Limited],
     "list[Limited(a: int where gt=4, b=: list[int where gt=0] where min_length=1)]"),
    (Annotated[int, Field(gt=4)], "int where gt=4"),
    (Annotated[str, Field(min_length=2)], "str where min_length=2"),
    (Annotated[str, Field(description="Words")], "str"),
    (pydantic.PositiveInt, "int where gt=0"),
    (list[pydantic.PositiveInt], "list[int where gt=0]"),
    (Annotated[int, Meta(gt=4)], "int where gt=4"),
    (Annotated[str, Meta(max_length=1)], "str where max_length=1"),
    (list[Annotated[int, Meta(gt=4)]], "list[int where gt=4]"),
    (Annotated[list[int], Meta(max_length=1)], "list[int] where max_length=1"),
    # models of pydantic
    (Model, "Model(name: str, n=: int)"),
    (Model | None, "(Model(name: str, n=: int) | None)"),
    (list[Model], "list[Model(name: str, n=: int)]"),
    (dict[str, Model], "dict[str, Model(name: str, n=: int)]"),
    (Aliased, "Aliased(theName: str)"),
    (Cat | Dog, "(Cat(kind: one of 'cat', lives: int) | Dog(kind: one of 'dog', name: str))"),
    (Annotated[Cat | Dog, Field(discriminator="kind")],
     "(Cat(kind: one of 'cat', lives: int) | Dog(kind: one of 'dog', name: str))"),
    (Owner, "Owner(pet: (Cat(kind: one of 'cat', lives: int) |"
     " Dog(kind: one of 'dog', name: str)))"),
    (Node, "Node(v: int, kids=: list[Node(...)])"),
    (Constrained, "Constrained(a: int where gt=4, b=: str where min_length=1)"),
    (Forbidding, "Forbidding(a: int)"),
    (Checked, "Checked(a: int where gt=4)"),
    (ModelPage[int], "ModelPage[int](items: list[int])"),
    (ModelPage[Model], "ModelPage[Model](items: list[Model(name: str, n=: int)])"),
    # structs of msgspec
    (Row, "Row(name: str, n=: int)"),
    (Row | None, "(Row(name: str, n=: int) | None)"),
    (list[Row], "list[Row(name: str, n=: int)]"),
    (dict[str, Row], "dict[str, Row(name: str, n=: int)]"),
    (Camel, "Camel(myName: str)"),
    (Deep, "Deep(v: int, kids=: list[Deep(...)])"),
    (Bounded, "Bounded(a: int where gt=4)"),
    (RowPage[int], "RowPage(items: list[int])"),
    (RowPage[Row], "RowPage(items: list[Row(name: str, n=: int)])"),
]  # fmt: skip
"""Annotation, and its tree in words: `=` after a member with a default, `?` after one that may be
left out, `(...)` for a record that was described before."""

UNKNOWN: list[tuple[Any, str]] = [
    (MyInt, "foreign MyInt"),
    (Pair, "foreign Pair"),
    (complex, "foreign complex"),
    (pathlib.Path, "foreign Path"),
    (collections.deque[int], "foreign deque"),
    (type[int], "foreign type"),
    (pydantic.HttpUrl, "foreign HttpUrl"),
    (pydantic.SecretStr, "foreign SecretStr"),
    (msgspec.Raw, "foreign Raw"),
    (UploadFile, "foreign UploadFile"),
    (list[UploadFile], "list[foreign UploadFile]"),
    (One | Two, "(One(a: int) | Two(b: str))"),
    (bytearray, "bytearray"),
    (Iterable[int], "Iterable[int]"),
    (Later, "Later(x: int, y?: str)"),
]
"""Types that have more than the tree says, which is left to the package that knows them."""

JSON: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, 5, 6, -1, 1.5, "", "a", "b", "aa", "red", "5", "x y"),
    *("2020-01-02", "2020-01-02T03:04:05Z", "10:11:12", "00000000-0000-0000-0000-000000000005"),
    *([], [1], [5], [0], [1, 2], [5, 6], ["a"], [1, "a"], ["a", 1], [None], [1.5], [True], [[1]]),
    *(["red"], ["2020-01-02"], [[1, "a"]], [{"name": "a"}], [{"n": 1}], [{"x": 1}], [{"a": 5}]),
    *({}, {"a": 1}, {"a": 5}, {"a": 0}, {"a": "x"}, {"a": None}, {"a": [1]}, {"a": {"b": 1}}),
    *({"red": 1}, {"a": 1, "b": 2}, {"a": 5, "b": [1]}, {"a": 5, "b": []}, {"a": 5, "b": [0]}),
    *({"a": 5, "b": ""}, {"name": "a"}, {"name": 1}, {"name": "a", "price": 2}, {"name": None}),
    *({"name": "a", "price": "x"}, {"name": "a", "n": 2}, {"name": "a", "n": "x"}, {"n": 1}),
    *({"name": "a", "price": 1, "extra": 2}, {"n": 1, "s": "a"}, {"n": 1, "s": 2}, {"n": "x"}),
    *({"x": 1}, {"x": 1, "y": 2}, {"x": 1, "y": "a"}, {"y": 2}, {"x": "a"}, {"items": [1]}),
    *({"items": ["a"]}, {"items": [1], "first": 1}, {"items": [1], "first": "a"}, {"items": 1}),
    *({"items": [{"items": [1]}]}, {"items": [1], "more": True}, {"items": [{"name": "a"}]}),
    *({"value": 1}, {"value": 1, "children": [{"value": 2}]}, {"value": 1, "children": [{}]}),
    *({"item": {"name": "a"}}, {"item": {"name": "a"}, "either": {"n": 1}}, {"item": {}}),
    *({"item": {"name": "a"}, "table": {"k": {"name": "a"}}}, {"day": "2020-01-02"}, {"day": 1}),
    *({"day": "2020-01-02", "colour": "green"}, {"day": "2020-01-02", "colour": "blue"}),
    *({"k": {"name": "a"}}, {"k": {"name": 1}}, {"theName": "a"}, {"theName": 1}, {"myName": "a"}),
    *({"kind": "cat", "lives": 9}, {"kind": "dog", "name": "a"}, {"kind": "cow"}, {"times": 2}),
    *({"pet": {"kind": "cat", "lives": 9}}, {"pet": {"kind": "cow"}}, {"times": "x"}),
    *({"v": 1}, {"v": 1, "kids": [{"v": 2}]}, {"v": 1, "kids": [{}]}, [{"value": 1}], [{"a": 0}]),
]  # fmt: skip
"""Bodies that every annotation gets; some fit, most do not."""

SOURCES: list[tuple[str, str, str, str, bool]] = [
    ("id: int", "path", "id", "int", True),
    ("q: str", "query", "q", "str", True),
    ("q: str | None = None", "query", "q", "(str | None)", False),
    ("q: list[int] = []", "query", "q", "list[int]", False),
    ("q: Annotated[int, Query('page')] = 1", "query", "page", "int", False),
    ("q: Annotated[int, Query, Gt(4)]", "query", "q", "int where gt=4", True),
    ("q: Annotated[list[int], MinLen(1)]", "query", "q", "list[int] where min_length=1", True),
    ("user_agent: Annotated[str, Header()]", "header", "user-agent", "str", True),
    ("h: Annotated[str, Header('X-Key')] | None = None", "header", "X-Key", "(str | None)", False),
    ("c: Annotated[str, Cookie()]", "cookie", "c", "str", True),
    ("f: Annotated[int, Form()]", "form", "f", "int", True),
    ("f: Annotated[list[str], Form()] = []", "form", "f", "list[str]", False),
    ("f: UploadFile", "file", "f", "foreign UploadFile", True),
    ("f: list[UploadFile]", "file", "f", "list[foreign UploadFile]", True),
    ("f: Annotated[UploadFile, File('doc')]", "file", "doc", "foreign UploadFile", True),
    ("f: UploadFile | None = None", "file", "f", "(foreign UploadFile | None)", False),
    ("b: Item", "json", "b", "Item(name: str, price=: float)", True),
    ("b: Item | None = None", "json", "b", "(Item(name: str, price=: float) | None)", False),
    ("b: Annotated[list[int], Body()]", "json", "b", "list[int]", True),
]
"""Parameter, and its input: place, name there, type and whether it is required."""
