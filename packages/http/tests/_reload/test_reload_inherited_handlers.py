"""Saves beside handlers with an `Inherited`: each answers like a new application."""

from __future__ import annotations

from http_reloading import Live, MakeLive

V1 = "from .shelf import book\nasync def handler(): return {'book': book}\n"
V2 = """
from typing import Any
from treefold_http import Inherited

async def handler(before: Inherited[dict[str, Any]]):
    return {"of v2": (await before())["book"]}
"""
TREE = {
    "Api/v1/X/Get.py": V1,
    "Api/v1/X/shelf.py": "book = 1\n",
    "Api/v2/version.toml": 'inherits = "v1"',
    "Api/v2/X/Get.py": V2,
}


def answers(served: Live) -> list[object]:
    return [served.get("/v1/x"), served.get("/v2/x")]


def same(value: object) -> list[object]:
    return [{"book": value}, {"of v2": value}]


def test_a_save_of_the_base_is_served_by_the_handler_that_calls_it(live: MakeLive) -> None:
    served = live(TREE)
    assert answers(served) == same(1)
    served.edit({"Api/v1/X/shelf.py": "book = 2\n"})
    assert answers(served) == same(2)
    served.edit({"Api/v1/X/Get.py": V1.replace("'book': book", "'book': book + 10")})
    assert answers(served) == same(12)
    served.edit({"Api/v2/X/Get.py": V2.replace('["book"]', '["book"] + 100')})
    assert answers(served) == [{"book": 12}, {"of v2": 112}]


def test_a_broken_base_leaves_both_their_last_good_version(live: MakeLive) -> None:
    served = live(TREE)
    served.edit({"Api/v1/X/Get.py": "async def handler(:\n"})
    assert answers(served) == same(1)
    served.edit({"Api/v1/X/Get.py": V1.replace("book}", "book + 5}")})
    assert answers(served) == same(6)
    assert not served.app.report.broken


def test_a_base_that_is_gone_leaves_the_last_good_version_and_comes_back(live: MakeLive) -> None:
    served = live({**TREE, "Api/v1/Y/Get.py": V1.replace("from .shelf import book", "book = 1")})
    served.edit({"Api/v1/X/Get.py": None})
    assert served.get("/v2/x") == {"of v2": 1}
    assert "v1 has no GET /x" in str(served.app.report.broken)
    served.edit({"Api/v1/X/Get.py": V1})
    assert answers(served) == same(1)
    assert not served.app.report.broken


def test_another_base_in_version_toml_is_called_after_the_save(live: MakeLive) -> None:
    other = {"Api/v0/X/Get.py": "async def handler(): return {'book': 'of v0'}\n"}
    served = live({**TREE, **other})
    assert answers(served) == same(1)
    served.edit({"Api/v2/version.toml": 'inherits = "v0"'})
    assert answers(served) == [{"book": 1}, {"of v2": "of v0"}]


def test_a_version_that_is_no_longer_served_stays_the_base(live: MakeLive) -> None:
    served = live(TREE)
    served.edit({"Api/v1/version.toml": "serve = false"})
    assert served.get("/v2/x") == {"of v2": 1}
    served.edit({"Api/v1/X/shelf.py": "book = 3\n"})
    assert served.get("/v2/x") == {"of v2": 3}
    served.edit({"Api/v1/version.toml": None})
    assert answers(served) == same(3)


def test_a_guard_of_the_base_covers_the_other_as_soon_as_it_is_saved(live: MakeLive) -> None:
    guard = (
        "from treefold_http.middleware import under\n"
        "async def refuse(request, call_next): return {'guarded': True}\n"
        "middlewares = [under('/v1/x', refuse)]\n"
    )
    served = live({**TREE, "Middleware/__init__.py": "middlewares = []\n"})
    assert answers(served) == same(1)
    served.edit({"Middleware/__init__.py": guard})
    assert answers(served) == [{"guarded": True}, {"guarded": True}]
    served.edit({"Middleware/__init__.py": "middlewares = []\n"})
    assert answers(served) == same(1)


def test_a_handler_that_begins_to_call_a_base_and_stops(live: MakeLive) -> None:
    own = "async def handler(): return {'of v2': 'own'}\n"
    served = live({**TREE, "Api/v2/X/Get.py": own})
    served.edit({"Api/v2/X/Get.py": V2})
    assert answers(served) == same(1)
    served.edit({"Api/v2/X/Get.py": own})
    assert answers(served) == [{"book": 1}, {"of v2": "own"}]
