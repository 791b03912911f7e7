"""Names of types in a lock: what a new route or a new version renames, and what it does not."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest

Lock = Callable[..., str]
ANSWER = """
from dataclasses import dataclass

@dataclass
class Answer:
    {member}

async def handler() -> Answer: ...
"""


def handler(member: str) -> str:
    return ANSWER.format(member=member)


def types(text: str) -> dict[str, str]:
    """The members of each type, in one line."""
    _, mark, definitions = text.partition("\ntype ")
    found: dict[str, str] = {}
    name = ""
    for line in f"{mark}{definitions}".split("\n"):
        if line.startswith("type "):
            name, _, rest = line.removeprefix("type ").partition(" = ")
            found[name] = rest
        elif line:
            found[name] = f"{found[name]} {' '.join(line.split())}".strip()
    return found


def test_equal_types_of_one_name_are_one(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/User/Get.py": handler("id: int"),
            "Api/v1/Book/Get.py": handler("id: int"),
            "Api/v2/Book/Get.py": handler("id: int"),
        }
    )

    assert types(text) == {"Answer": "id int"}
    assert "  gone    v2\n" in text


def test_different_types_of_one_name_have_their_folder(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/User/Get.py": handler("id: int"),
            "Api/v1/Book/Get.py": handler("isbn: str"),
        }
    )

    assert types(text) == {"BookAnswer": "isbn str", "UserAnswer": "id int"}


def test_of_one_folder_they_have_their_method_too(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/User/Get.py": handler("id: int"),
            "Api/v1/User/Post.py": handler("name: str"),
        }
    )

    assert types(text) == {"UserGetAnswer": "id int", "UserPostAnswer": "name str"}


def test_a_new_version_renames_nothing(lock: Lock) -> None:
    first = {"Api/v1/User/Get.py": handler("id: int"), "Api/v1/Book/Get.py": handler("id: int")}
    second = {"Api/v2/User/Get.py": handler("id: str"), "Api/v2/Book/Get.py": handler("id: int")}

    before, after = lock(first), lock({**first, **second}, root="later")

    assert types(before) == {"Answer": "id int"}
    assert types(after) == {"Answer": "id int", "Answer@v2": "id str"}


def test_a_changed_copy_has_its_version(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/User/Get.py": handler("id: int"),
            "Api/v2/User/Get.py": handler("id: str"),
            "Api/v3/User/Get.py": handler("id: str"),
            "Api/v10/User/Get.py": handler("id: float"),
        }
    )

    assert types(text) == {"Answer": "id int", "Answer@v10": "id float", "Answer@v2": "id str"}


def test_a_change_deep_inside_makes_another_type(lock: Lock) -> None:
    def tree(kind: str) -> str:
        return f"""
            from __future__ import annotations
            from dataclasses import dataclass

            @dataclass
            class Leaf:
                value: {kind}

            @dataclass
            class Tree:
                leaf: Leaf
                parts: list[Tree]

            async def handler() -> Tree: ...
            """

    text = lock({"Api/v1/T/Get.py": tree("int"), "Api/v2/T/Get.py": tree("str")})

    assert types(text) == {
        "Leaf": "value int",
        "Leaf@v2": "value str",
        "Tree": "leaf Leaf parts [Tree]",
        "Tree@v2": "leaf Leaf@v2 parts [Tree@v2]",
    }


def test_a_type_has_two_views_where_bodies_and_answers_differ(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/User/Post.py": """
                from dataclasses import dataclass, field

                @dataclass
                class User:
                    name: str
                    id: int = field(init=False)

                async def handler(user: User) -> User: ...
                """
        }
    )

    # pydantic, where it is installed, decodes a dataclass and ignores other members
    closed = "" if find_spec("pydantic") or find_spec("msgspec") else " closed"
    assert types(text) == {f"User in{closed}": "name str", "User out": "id int name str"}


def test_shared_classes_keep_their_plain_name(lock: Lock) -> None:
    text = lock(
        {
            "Models/book.py": """
                from dataclasses import dataclass

                @dataclass
                class Answer:
                    isbn: str
                """,
            "Api/v1/Book/Get.py": "from Models.book import Answer\n"
            "async def handler() -> Answer: ...",
            "Api/v1/User/Get.py": handler("id: int"),
        }
    )

    assert types(text) == {"Answer": "isbn str", "UserAnswer": "id int"}


def test_named_values_and_aliases_are_types(lock: Lock) -> None:
    text = lock(
        {
            "Api/v1/X/Get.py": """
                from dataclasses import dataclass
                from enum import Enum, IntEnum, IntFlag
                from typing import Literal
                from treefold_http import Open

                class Role(Enum):
                    ADMIN = "admin"
                    MEMBER = "member"

                class Size(IntEnum):
                    SMALL = 1

                class Rights(IntFlag):
                    READ = 1

                @dataclass
                class Answer:
                    role: Role
                    size: Size
                    rights: Rights
                    kind: Open[Literal["a", "b"]]
                    other: Literal["c"] | str

                async def handler() -> Answer: ...
                """
        }
    )

    assert types(text) == {
        "Answer": 'kind "a" | "b" | ... other "c" | ... rights Rights role Role size Size',
        "Rights": "int",
        "Role": '"admin" (ADMIN) | "member" (MEMBER)',
        "Size": "1 (SMALL)",
    }


@pytest.mark.parametrize(
    "annotation",
    [
        "Dict[str, Union[bool, int, None, Literal['b', 'a']]]",
        "Dict[str, Union[Literal['a', 'b'], None, int, bool]]",
        "dict[str, None | int | bool | Literal['b', 'a']]",
    ],
)
def test_the_order_of_a_union_is_that_of_its_text(lock: Lock, annotation: str) -> None:
    text = lock(f"from typing import *\nasync def handler() -> {annotation}: ...")

    assert '  200     json {str: "a" | "b" | bool | int | null} unchecked\n' in text


@pytest.mark.parametrize("annotation", ["str | int", "int | str"])
def test_a_body_has_the_order_in_which_types_are_tried(lock: Lock, annotation: str) -> None:
    text = lock(
        f"from typing import TypedDict\nclass Sent(TypedDict): a: {annotation}\n"
        "async def handler(sent: Sent) -> None: ...",
        file="Api/v1/X/Post.py",
    )

    assert text.endswith(f"  a       {annotation}\n")


@pytest.mark.parametrize("members", ["TEN = 10; TWO = 2; ONE = 1", "ONE = 1; TWO = 2; TEN = 10"])
def test_the_members_of_an_enum_are_sorted(lock: Lock, members: str) -> None:
    text = lock(
        "from enum import Enum\n"
        f"class Size(Enum): {members}\n"
        "async def handler() -> dict[str, Size]: ..."
    )

    assert types(text) == {"Size": "1 (ONE) | 2 (TWO) | 10 (TEN)"}
