"""Components of different classes with one name: each is told apart by its folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Document = Callable[..., dict[str, Any]]

ITEM = """
    from dataclasses import dataclass

    @dataclass
    class Item:
        {member}

    async def handler({parameters}) -> Item: ...
"""


def item(member: str, parameters: str = "request") -> str:
    return ITEM.format(member=member, parameters=parameters)


def body_and_answer(document: dict[str, Any], path: str, method: str = "post") -> tuple[str, str]:
    operation = document["paths"][path][method]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    answer = operation["responses"]["200"]["content"]["application/json"]["schema"]
    return last(body.get("schema", {}).get("$ref", "")), last(answer["$ref"])


def last(reference: str) -> str:
    return reference.rpartition("/")[2]


def test_unrelated_classes_of_one_name_are_named_by_their_folders(document: Document) -> None:
    made = document(
        {
            "Api/v1/One/Post.py": item("a: str = ''", "given: Item"),
            "Api/v1/Two/Post.py": item("b: str = ''", "given: Item"),
            "Api/v1/Two/[id]/order-line/Get.py": item("c: float"),
        }
    )

    assert body_and_answer(made, "/v1/one") == ("ItemInput", "Item")
    assert body_and_answer(made, "/v1/two") == ("TwoItemInput", "TwoItem")
    assert body_and_answer(made, "/v1/two/{id}/order-line", "get")[1] == "OrderLineItem"


def test_the_input_of_one_class_never_takes_the_name_of_another(document: Document) -> None:
    """One is only taken and Two is only given: they are no pair."""
    taken = ITEM.replace("-> Item", "-> None").format(member="a: int", parameters="given: Item")
    files = {"Api/v1/One/Post.py": taken}
    alone = document(files)
    with_another = document({**files, "Api/v1/Two/Post.py": item("b: str")}, root="again")

    for made in (alone, with_another):
        content = made["paths"]["/v1/one"]["post"]["requestBody"]["content"]
        assert last(content["application/json"]["schema"]["$ref"]) == "Item"
    assert body_and_answer(with_another, "/v1/two")[1] == "TwoItem"


def test_the_first_name_stays_when_a_file_is_added(document: Document) -> None:
    files = {"Api/v1/B/Get.py": item("a: int")}
    shared = "from Models.item import Item\nasync def handler() -> Item: ...\n"
    added = {
        "Api/v1/B/[id]/Get.py": item("b: int"),
        "Api/v1/C/Get.py": item("c: int"),
        "Api/v2/A/Get.py": item("d: int"),
    }

    before = body_and_answer(document(files), "/v1/b", "get")
    after = document({**files, **added}, root="again")
    assert before == body_and_answer(after, "/v1/b", "get") == ("", "Item")
    assert body_and_answer(after, "/v1/c", "get")[1] == "CItem"

    model = {"Models/item.py": item("e: int"), "Api/v1/Z/Get.py": shared}
    with_model = document({**files, **added, **model}, root="third")
    assert body_and_answer(with_model, "/v1/z", "get")[1] == "Item"


def test_two_methods_of_a_folder_are_named_by_their_methods(document: Document) -> None:
    made = document(
        {
            "Api/v1/Shop/Get.py": item("a: int"),
            "Api/v1/Shop/Post.py": item("b: int"),
            "Api/v1/Get.py": item("c: int"),
            "Api/v1/[id]/PUT.py": item("d: int"),
        }
    )

    assert set(made["components"]["schemas"]) == {
        *("Item", "PutItem", "ShopItem", "ShopPostItem"),
        "Problem",  # of the path parameter
    }


def test_a_changed_copy_is_named_by_its_version(document: Document) -> None:
    made = document(
        {
            "Api/v1/One/Get.py": item("a: int"),
            "Api/v1/Two/Get.py": item("b: int"),
            "Api/v2/One/Get.py": item("a: str"),
            "Api/v2/Two/Get.py": item("b: str"),
        }
    )

    assert list(made["components"]["schemas"]) == ["Item", "Item_v2", "TwoItem", "TwoItem_v2"]


def test_a_made_name_leaves_that_of_a_class_alone(document: Document) -> None:
    made = document(
        {
            "Api/v1/One/Get.py": item("a: int"),
            "Api/v1/Two/Get.py": item("b: int"),
            "Api/v1/Three/Get.py": item("c: int").replace("Item", "TwoItem"),
        }
    )

    assert body_and_answer(made, "/v1/three", "get")[1] == "TwoItem"
    assert body_and_answer(made, "/v1/two", "get")[1] == "TwoGetItem"


def test_names_that_differ_in_case_or_signs_only_are_told_apart(document: Document) -> None:
    made = document(
        {
            "Api/v1/One/Get.py": item("a: int").replace("Item", "HTTPItem"),
            "Api/v1/Two/Get.py": item("b: int").replace("Item", "HttpItem"),
            "Api/v1/Two/Put.py": item("c: int").replace("Item", "Http_Item"),
            "Api/v1/Zoo/Get.py": item("d: int").replace("Item", "TwoHTTPItem"),
        }
    )

    assert list(made["components"]["schemas"]) == [
        *("HTTPItem", "TwoGetHttpItem", "TwoHTTPItem", "TwoPutHttp_Item")
    ]
    assert body_and_answer(made, "/v1/zoo", "get")[1] == "TwoHTTPItem"


def test_folders_of_other_scripts_make_names_that_components_may_have(document: Document) -> None:
    made = document(
        {
            "Api/v1/A/Get.py": item("a: int"),
            "Api/v1/Книга/Get.py": item("b: int"),
            "Api/v1/$/Get.py": item("c: int"),
        }
    )

    assert len(made["components"]["schemas"]) == 3
    assert all(name.replace("_", "").isascii() for name in made["components"]["schemas"])
