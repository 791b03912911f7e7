"""What nobody, or the wrong one, would read of a body: refused at boot, and all else is checked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Serving = Callable[..., Application]
Ask = Callable[..., "Answer"]

NAMES = """
import typing, typing_extensions
from dataclasses import InitVar, dataclass
from typing import *
from annotated_types import Gt, Len
from msgspec import Meta, Struct
from pydantic import AfterValidator, BaseModel, Field, PositiveInt
"""
KINDS = {
    "dataclass": "@dataclass\nclass Inner:",
    "TypedDict": "class Inner(typing.TypedDict):",
    "TypedDict of typing_extensions": "class Inner(typing_extensions.TypedDict):",
    "model": "class Inner(BaseModel):",
    "struct": "class Inner(Struct):",
}
PYDANTIC = ["Field(gt=4)", "Gt(4)", "AfterValidator(positive)"]
MSGSPEC = ["Meta(gt=4)"]
BOTH = ["Gt(4), Meta(lt=99)", "Meta(gt=4), Field(lt=99)"]
BOTH_KINDS = "A body must consist of msgspec structs or of pydantic models, not of both"


def source(kind: str, member: str, body: str = "Inner") -> str:
    """A handler that takes a body with one constrained member and says that it got one."""
    return (
        f"{NAMES}\n"
        "def positive(n):\n"
        "    if n <= 4: raise ValueError('too small')\n"
        "    return n\n"
        f"{KINDS[kind]}\n    a: {member}\n"
        f"async def handler(body: {body}):\n    return 'taken'\n"
    )


def statuses(serving: Serving, ask: Ask, text: str, *bodies: str) -> list[int]:
    app = serving(text, file="Api/v1/X/Post.py")
    headers = [("content-type", "application/json")]
    return [
        ask(app, "POST", "/v1/x", headers=headers, chunks=[body.encode()]).status for body in bodies
    ]


def refusal(serving: Serving, text: str) -> str:
    app = serving(text, file="Api/v1/X/Post.py")
    app.boot()
    (broken,) = app.report.broken
    return broken.error


READ = [
    *((kind, each) for kind in list(KINDS)[:3] for each in [*PYDANTIC, *MSGSPEC, *BOTH]),
    *(("model", each) for each in PYDANTIC),
    *(("struct", each) for each in MSGSPEC),
]


@pytest.mark.parametrize(("kind", "constraint"), READ)
def test_a_member_is_checked(serving: Serving, ask: Ask, kind: str, constraint: str) -> None:
    text = source(kind, f"Annotated[int, {constraint}]")
    assert statuses(serving, ask, text, '{"a": 5}', '{"a": 4}', '{"a": "x"}') == [200, 422, 422]


@pytest.mark.parametrize(("kind", "constraint"), READ)
@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("list[Annotated[int, {}]]", '{"a": [5, 6]}', '{"a": [5, 4]}'),
        ("dict[str, Annotated[int, {}]]", '{"a": {"b": 5}}', '{"a": {"b": 4}}'),
        ("Annotated[int, {}] | None", '{"a": 5}', '{"a": 4}'),
        ("Annotated[int, {}] | str", '{"a": "x"}', '{"a": 4}'),
    ],
)
def test_it_is_checked_wherever_it_stands(
    serving: Serving, ask: Ask, kind: str, constraint: str, member: str, good: str, bad: str
) -> None:
    text = source(kind, member.format(constraint))
    assert statuses(serving, ask, text, good, bad) == [200, 422]


@pytest.mark.parametrize("constraint", [*PYDANTIC, *MSGSPEC, *BOTH])
def test_it_is_checked_on_what_only_post_init_gets(
    serving: Serving, ask: Ask, constraint: str
) -> None:
    member = f"InitVar[Annotated[int, {constraint}]]"
    text = source("dataclass", f"{member}\n    def __post_init__(self, a): ...")
    assert statuses(serving, ask, text, '{"a": 5}', '{"a": 4}', '{"a": "x"}', "{}") == [
        200,
        *[422] * 3,
    ]


@pytest.mark.parametrize("kind", ["TypedDict", "TypedDict of typing_extensions"])
@pytest.mark.parametrize(
    "member", ["NotRequired[Annotated[int, {}]]", "Annotated[NotRequired[int], {}]"]
)
@pytest.mark.parametrize("constraint", [*PYDANTIC, *MSGSPEC, *BOTH])
def test_a_member_that_may_be_left_out_is_checked_where_it_is(
    serving: Serving, ask: Ask, kind: str, member: str, constraint: str
) -> None:
    text = source(kind, member.format(constraint))
    assert statuses(serving, ask, text, '{"a": 5}', "{}", '{"a": 4}') == [200, 200, 422]


@pytest.mark.parametrize("kind", ["TypedDict", "TypedDict of typing_extensions"])
@pytest.mark.parametrize("constraint", ["Field(gt=4)", "Meta(gt=4)", "Gt(4), Meta(lt=99)"])
def test_so_is_one_whose_annotation_is_text(
    serving: Serving, ask: Ask, kind: str, constraint: str
) -> None:
    text = source(kind, f"'Annotated[NotRequired[int], {constraint}]'")
    assert statuses(serving, ask, text, '{"a": 5}', "{}", '{"a": 4}') == [200, 200, 422]


@pytest.mark.parametrize(("kind", "constraint"), READ)
@pytest.mark.parametrize("body", ["list[Inner]", "Inner | None"])
def test_a_list_of_them_and_one_or_none_too(
    serving: Serving, ask: Ask, kind: str, constraint: str, body: str
) -> None:
    text = source(kind, f"Annotated[int, {constraint}]", body)
    good, bad = ('[{"a": 5}]', '[{"a": 4}]') if "list" in body else ('{"a": 5}', '{"a": 4}')
    assert statuses(serving, ask, text, good, bad) == [200, 422]


@pytest.mark.parametrize(
    ("kind", "constraint", "words"),
    [
        *(("struct", each, "pydantic, but msgspec reads the body") for each in PYDANTIC),
        *(("struct", each, "pydantic, but msgspec reads the body") for each in BOTH),
        *(("model", each, "msgspec, but pydantic reads the body") for each in MSGSPEC),
        *(("model", each, "msgspec, but pydantic reads the body") for each in BOTH),
    ],
)
@pytest.mark.parametrize("member", ["Annotated[int, {}]", "list[Annotated[int, {}]]"])
@pytest.mark.parametrize("body", ["Inner", "list[Inner] | None", "Outer"])
def test_what_the_reader_of_a_body_would_pass_over_is_refused_at_boot(
    serving: Serving, kind: str, constraint: str, words: str, member: str, body: str
) -> None:
    outer = "@dataclass\nclass Outer:\n    inner: Inner\n    next: 'Outer | None' = None\n"
    text = source(kind, member.format(constraint), body)
    error = refusal(serving, text.replace("async def handler", f"{outer}async def handler"))
    assert f"The constraint on Inner.a is of {words}" in error
    assert "would ignore it; use a constraint of " in error


@pytest.mark.parametrize("kind", ["struct", "dataclass", "TypedDict"])
def test_words_about_a_member_are_no_constraint(serving: Serving, ask: Ask, kind: str) -> None:
    text = source(kind, "Annotated[int, Field(description='So many')]")
    assert statuses(serving, ask, text, '{"a": 5}', '{"a": "x"}') == [200, 422]


@pytest.mark.parametrize("kind", ["model", "dataclass", "TypedDict"])
def test_words_of_msgspec_are_no_constraint(serving: Serving, ask: Ask, kind: str) -> None:
    text = source(kind, "Annotated[int, Meta(title='Count', examples=[5])]")
    assert statuses(serving, ask, text, '{"a": 5}', '{"a": "x"}') == [200, 422]


@pytest.mark.parametrize("constraint", ["Field(min_length=2)", "Len(2)", "Meta(min_length=2)"])
@pytest.mark.parametrize("kind", ["dataclass", "TypedDict"])
def test_how_many_items_there_are_is_checked(
    serving: Serving, ask: Ask, kind: str, constraint: str
) -> None:
    text = source(kind, f"Annotated[list[Annotated[int, Gt(0)]], {constraint}]")
    bodies = ['{"a": [1, 2]}', '{"a": [1]}', '{"a": [1, 0]}']
    assert statuses(serving, ask, text, *bodies) == [200, 422, 422]


MIXED = """
class Inner(BaseModel):
    x: int

class Holder({base}):
    inner: Inner

async def handler(body: {body}): return 'taken'
"""


@pytest.mark.parametrize("body", ["Holder", "list[Holder] | None"])
def test_a_struct_that_holds_a_model_is_refused_at_boot(serving: Serving, body: str) -> None:
    words = refusal(serving, NAMES + MIXED.format(base="Struct", body=body))
    assert BOTH_KINDS in words


@pytest.mark.parametrize("module", ["typing", "typing_extensions"])
@pytest.mark.parametrize("body", ["Holder", "list[Holder] | None"])
def test_a_typed_dict_that_holds_a_model_is_read_or_refused_at_boot(
    serving: Serving, ask: Ask, module: str, body: str
) -> None:
    text = NAMES + MIXED.format(base=f"{module}.TypedDict", body=body)
    if module == "typing" and sys.version_info < (3, 12):
        assert "import TypedDict from typing_extensions" in refusal(serving, text)
        return
    sent = ['{"inner": {"x": 1}}', '{"inner": {"x": "y"}}']
    bodies = [f"[{each}]" for each in sent] if "list" in body else sent
    assert statuses(serving, ask, text, *bodies) == [200, 422]


PYDANTICS = {
    "Field as the default": "@dataclass\nclass Holder:\n    {member}\n    n: int = Field(gt=4)",
    "dataclass of pydantic": (
        "@pydantic.dataclasses.dataclass\nclass Holder:\n    {member}\n    n: int = 5\n"
        "    @pydantic.field_validator('n')\n"
        "    def above(cls, n):\n        assert n > 4\n        return n"
    ),
    "configuration": (
        "@dataclass\nclass Holder:\n    __pydantic_config__ = {{'extra': 'forbid'}}\n    {member}\n"
        "    n: Annotated[int, Gt(4)] = 5"
    ),
    "another name": (
        "@dataclass\nclass Holder:\n    {member}\n    n: Annotated[int, Field(alias='n', gt=4)] = 5"
    ),
}


def pydantics(record: str, member: str) -> str:
    """A handler that takes a record which only pydantic reads as it is written."""
    holder = PYDANTICS[record].format(member=member)
    return (
        f"{NAMES}\nimport pydantic, pydantic.dataclasses\n"
        f"class Row(Struct):\n    x: int\n"
        f"class Pair(typing.TypedDict):\n    x: int\n"
        f"{holder}\nasync def handler(body: Holder): return 'taken'\n"
    )


@pytest.mark.parametrize("record", PYDANTICS)
def test_what_only_pydantic_hears_is_read_by_pydantic(
    serving: Serving, ask: Ask, record: str
) -> None:
    text = pydantics(record, "a: int")
    assert statuses(serving, ask, text, '{"a": 1, "n": 5}', '{"a": 1, "n": 4}') == [200, 422]


@pytest.mark.parametrize("record", PYDANTICS)
def test_a_constraint_that_pydantic_passes_over_beside_it_is_refused(
    serving: Serving, record: str
) -> None:
    words = refusal(serving, pydantics(record, "a: Annotated[int, Meta(gt=4)]"))
    assert "Holder.a is of msgspec, but pydantic reads the body" in words


@pytest.mark.parametrize("record", ["Field as the default", "configuration", "another name"])
def test_a_struct_beside_it_is_refused_at_boot(serving: Serving, record: str) -> None:
    words = refusal(serving, pydantics(record, "a: Row"))
    assert BOTH_KINDS in words


@pytest.mark.parametrize(
    ("member", "named"),
    [
        ("AnyUrl", "AnyUrl in Inner.a"),
        ("list[dict[str, AnyUrl]] | None", "AnyUrl in Inner.a"),
        ("Box", "Path in Box.place"),
    ],
)
def test_a_type_that_msgspec_does_not_know_is_refused_at_boot(
    serving: Serving, member: str, named: str
) -> None:
    box = (
        "from pathlib import Path\nfrom pydantic import AnyUrl\n"
        "class Box(Struct):\n    place: Path\n    inside: 'Box | None' = None\n"
    )
    words = refusal(serving, f"{NAMES}\n{box}{source('struct', member)}")
    assert f"msgspec cannot decode {named} and would reject every body; use a type" in words


def test_a_struct_may_hold_itself_and_all_that_msgspec_knows(serving: Serving, ask: Ask) -> None:
    text = (
        f"{NAMES}\nimport datetime, decimal, uuid, enum\n"
        "class Kind(enum.Enum):\n    A = 'a'\n"
        "class Inner(Struct):\n    when: datetime.datetime\n    price: decimal.Decimal\n"
        "    key: uuid.UUID | None = None\n    kind: Kind = Kind.A\n"
        "    next: 'Inner | None' = None\n"
        "    more: tuple[int, ...] = ()\n    some: frozenset[str] = frozenset()\n"
        "    pair: tuple[int, str] | None = None\n    any: Any = None\n    raw: bytes = b''\n"
        "async def handler(body: Inner): return 'taken'\n"
    )
    whole = '{"when": "2026-01-02T03:04:05Z", "price": "1.5", "next": null, "more": [1]}'
    assert statuses(serving, ask, text, whole, '{"when": 1}') == [200, 422]


def test_another_name_in_a_struct_is_refused_at_boot(serving: Serving) -> None:
    words = refusal(serving, source("struct", "Annotated[int, Field(alias='b')]"))
    assert BOTH_KINDS in words
