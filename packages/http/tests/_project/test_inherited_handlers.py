"""Handlers with an `Inherited`: what they may name, what they take over, what a boot refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application
from treefold_http._plans.handlers import HandlerModule

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

V1 = "async def handler(): return {'a': 1, 'b': 2}\n"
V2 = """
from typing import TypedDict
from treefold_http import Inherited

class A(TypedDict):
    a: int

async def handler({before}):
    return {{"of v2": await before({given})}}
"""


def convert(before: str = 'before: Inherited[A, "v1"]', given: str = "") -> str:
    return V2.format(before=before, given=given)


def tree(v1: str = V1, v2: str = "", **more: str) -> dict[str, str]:
    return {"Api/v1/X/Get.py": v1, "Api/v2/X/Get.py": v2 or convert(), **more}


@pytest.fixture
def get(ask: Callable[..., Answer]) -> Ask:
    """Send a GET."""

    def send(app: Application, target: str) -> Answer:
        return ask(app, "GET", target)

    return send


def errors(app: Application) -> list[str]:
    app.boot()
    return [f"{each.file}: {each.error}" for each in app.report.broken]


def test_a_handler_gets_what_its_type_names_of_the_answer(project: Project, get: Ask) -> None:
    assert get(project(tree()), "/v2/x").json() == {"of v2": {"a": 1}}


def test_the_version_may_be_that_of_version_toml(project: Project, get: Ask) -> None:
    own = {"Api/v2/version.toml": 'inherits = "v1"'}
    app = project(tree(v2=convert("before: Inherited[A]"), **own))
    assert get(app, "/v2/x").json() == {"of v2": {"a": 1}}


@pytest.mark.parametrize(
    "before",
    [
        "before: Inherited[A, Literal['v1']]",
        "before: \"Inherited[A, 'v1']\"",
        "before: treefold_http.Inherited[A, 'v1']",
        "before: Renamed[A, 'v1']",
    ],
)
@pytest.mark.parametrize("later", ["", "from __future__ import annotations\n"])
def test_the_annotation_may_be_written_in_several_ways(
    project: Project, get: Ask, before: str, later: str
) -> None:
    imports = (
        "from typing import Literal\nimport treefold_http\n"
        "from treefold_http import Inherited as Renamed\n"
    )
    app = project(tree(v2=f"{later}{imports}{convert(before)}"))
    assert get(app, "/v2/x").json() == {"of v2": {"a": 1}}


def test_the_old_version_may_convert_the_answer_of_the_new_one(project: Project, get: Ask) -> None:
    app = project(tree(v1=convert('before: Inherited[A, "v2"]'), v2=V1))
    assert get(app, "/v1/x").json() == {"of v2": {"a": 1}}


def test_a_chain_of_versions_is_called_from_the_newest_to_the_oldest(
    project: Project, get: Ask
) -> None:
    third = convert('before: Inherited[dict[str, A], "v2"]')
    app = project(tree(**{"Api/v3/X/Get.py": third}))
    assert get(app, "/v3/x").json() == {"of v2": {"of v2": {"a": 1}}}


def test_an_inherited_file_converts_from_the_base_of_its_own_version(
    project: Project, get: Ask
) -> None:
    settings = {
        "Api/v2/version.toml": 'inherits = "v1"',
        "Api/v3/version.toml": 'inherits = "v2"',
    }
    app = project(tree(v2=convert("before: Inherited[A]"), **settings))
    # as in a copy of v2, which would name v1
    assert get(app, "/v3/x").json() == {"of v2": {"a": 1}}


def test_a_version_that_is_not_served_can_be_the_base(project: Project, get: Ask) -> None:
    app = project(tree(**{"Api/v1/version.toml": "serve = false"}))
    assert get(app, "/v2/x").json() == {"of v2": {"a": 1}}
    assert get(app, "/v1/x").status == 404


def test_parameters_of_the_path_are_matched_by_their_place(project: Project, get: Ask) -> None:
    v1 = (
        "from treefold_http import Depends\n"
        "async def find(isbn: str): return isbn * 2\n"
        "async def handler(shop, isbn: int, found=Depends(find)):\n"
        "    return {'a': isbn, 'b': [shop, found]}\n"
    )
    app = project(
        {
            "Api/v1/[shop]/Book/[isbn]/Get.py": v1,
            "Api/v2/[store]/Book/[id]/Get.py": convert(
                'store, before: Inherited[dict[str, object], "v1"]'
            ),
        }
    )
    answer = get(app, "/v2/main/book/7")
    assert answer.json() == {"of v2": {"a": 7, "b": ["main", "77"]}}
    refused = get(app, "/v2/main/book/x")
    assert refused.status == 422
    assert refused.json()["errors"][0]["loc"] == ["path", "id"]


def test_a_dependency_of_both_runs_once(project: Project, get: Ask) -> None:
    services = {
        "Services/counting.py": "seen = []\nasync def count():\n    seen.append(1)\n"
        "    return len(seen)\n"
    }
    imports = "from treefold_http import Depends\nfrom Services.counting import count\n"
    v1 = f"{imports}async def handler(n: int = Depends(count)): return {{'a': n}}\n"
    v2 = imports + convert('n: int = Depends(count), *, before: Inherited[A, "v1"]')
    app = project(tree(v1, v2, **services))
    assert get(app, "/v2/x").json() == {"of v2": {"a": 1}}
    assert get(app, "/v2/x").json() == {"of v2": {"a": 2}}


def test_only_what_all_calls_give_is_left_out_of_the_inputs(project: Project, get: Ask) -> None:
    v1 = "async def handler(a: int, b: int = 5): return {'a': a + b}\n"
    twice = (
        "from treefold_http import Inherited\nfrom typing import Any\n"
        'async def handler(before: Inherited[dict[str, Any], "v1"]):\n'
        "    first = await before(a=1)\n    second = await before(a=2, b=1)\n"
        "    return [first['a'], second['a']]\n"
    )
    app = project(tree(v1, twice))
    assert get(app, "/v2/x?b=3").json() == [4, 3]
    assert get(app, "/v2/x?b=x").status == 422


@pytest.mark.parametrize("use", ["call = before", "keep(before)", "{'x': before}"])
def test_a_call_under_another_name_reads_all_from_the_request(
    project: Project, get: Ask, use: str
) -> None:
    v1 = "async def handler(a: int): return {'a': a}\n"
    v2 = (
        "from treefold_http import Inherited\nfrom typing import Any\nkeep = id\n"
        'async def handler(before: Inherited[dict[str, Any], "v1"]):\n'
        f"    {use}\n    return await before(a=1)\n"
    )
    app = project(tree(v1, v2))
    assert get(app, "/v2/x").status == 422
    assert get(app, "/v2/x?a=7").json() == {"a": 1}


def test_an_unknown_argument_is_named(project: Project, get: Ask, lines: Lines) -> None:
    app = project(tree(v2=convert(given="wrong=1")))
    assert get(app, "/v2/x").status == 500
    assert "The handler of GET /v1/x has no parameter 'wrong'; give none" in str(lines.errors())


def test_the_response_of_the_base_has_its_status_and_fields(project: Project, get: Ask) -> None:
    v1 = "async def handler(): return {'a': 1}, 201, {'x-a': 'of v1'}\n"
    v2 = convert().replace(
        "return",
        "await before()\n    answer = before.response\n    return [answer.status,"
        " answer.headers['x-a']] or",
    )
    assert get(project(tree(v1, v2)), "/v2/x").json() == [201, "of v1"]


def test_a_response_before_the_call_is_an_error_that_says_so(
    project: Project, get: Ask, lines: Lines
) -> None:
    v2 = convert().replace("return", "return before.response.status or")
    assert get(project(tree(v2=v2)), "/v2/x").status == 500
    assert "GET /v1/x has no response yet; await the call before" in str(lines.errors())


def test_an_answer_of_another_type_is_no_leak(project: Project, get: Ask, lines: Lines) -> None:
    v1 = "async def handler(): return {'a': 'a secret', 'b': 1}\n"
    answer = get(project(tree(v1)), "/v2/x")
    assert answer.status == 500
    assert "The answer of GET /v1/x is no A: 'a' should be int" in str(lines.errors())
    assert "a secret" not in str(lines.errors())


def test_what_the_module_says_comes_before_what_the_base_says(project: Project, get: Ask) -> None:
    v1 = "status_code = 201\nmax_body = 5\ntimeout = 3\nlog_payload = False\n" + V1
    v2 = "status_code = 202\nmax_body = 9\n" + convert()
    app = project(tree(v1, v2))
    assert get(app, "/v2/x").status == 202
    (module,) = (m for r, m in app.project.modules.items() if r.version == "v2")
    assert isinstance(module, HandlerModule)
    assert (module.max_body, module.timeout, module.log_payload) == (9, 3, False)


def test_middleware_of_the_base_runs_once_and_its_cache_not_at_all(
    project: Project, get: Ask
) -> None:
    services = {
        "Services/gate.py": "seen = []\nasync def gate(request, call_next):\n"
        "    seen.append(request.path)\n    return await call_next(request)\n"
    }
    imports = "from Services.gate import gate, seen\nfrom treefold_http.cache import cached\n"
    middlewares = "middlewares = [gate, cached(60)]\n"
    v1 = f"{imports}{middlewares}async def handler(): return {{'a': len(seen)}}\n"
    app = project(tree(v1, **services))
    assert [get(app, "/v2/x").json() for _ in range(2)] == [{"of v2": {"a": n}} for n in (1, 2)]


def test_a_guard_that_covers_the_base_only_is_not_lost(
    project: Project, get: Ask, lines: Lines
) -> None:
    guard = (
        "from treefold_http.middleware import under\n"
        "async def refuse(request, call_next): return ('no', 403)\n"
        "middlewares = [under('/v1/x', refuse)]\n"
    )
    own = {"Api/v2/version.toml": 'inherits = "v1"', "Middleware/__init__.py": guard}
    app = project(tree(**own))
    assert get(app, "/v2/x").status == 403
    assert "lost guard" not in str(lines.texts())


def test_a_guard_of_the_base_stands_before_a_cache_of_the_project(
    project: Project, ask: Callable[..., Answer]
) -> None:
    middlewares = (
        "from treefold_http.cache import cached\nfrom treefold_http.middleware import under\n"
        "async def gate(request, call_next):\n"
        "    if 'x-in' not in request.headers: return ('no', 403)\n"
        "    return await call_next(request)\n"
        "middlewares = [under('/v1/x', gate), cached(60)]\n"
    )
    app = project(tree(**{"Middleware/__init__.py": middlewares}))
    inside = [("x-in", "yes")]
    first, second = (ask(app, "GET", "/v2/x", headers=inside).status for _ in range(2))
    assert [first, second, ask(app, "GET", "/v2/x").status] == [200, 200, 403]


def test_a_cache_around_the_new_handler_knows_the_inputs_of_the_base(
    project: Project, get: Ask
) -> None:
    v1 = "async def handler(a: int): return {'a': a}\n"
    v2 = "from treefold_http.cache import cached\nmiddlewares = [cached(60)]\n" + convert()
    app = project(tree(v1, v2))
    assert [get(app, f"/v2/x?a={n}").json()["of v2"]["a"] for n in (1, 2, 1)] == [1, 2, 1]


REFUSED: dict[str, tuple[dict[str, str], str, str]] = {
    "no type": (
        {"before": "before: Inherited"},
        V1,
        "must name the type of the answer, and may name a version: Inherited[Book] or",
    ),
    "no version": (
        {"before": "before: Inherited[A]"},
        V1,
        "Inherited names no version, and Api/v2/version.toml has no 'inherits'; write",
    ),
    "unknown version": (
        {"before": 'before: Inherited[A, "v7"]'},
        V1,
        "Inherited must name another version, got 'v7'; there is 'v1'",
    ),
    "own version": (
        {"before": 'before: Inherited[A, "v2"]'},
        V1,
        "Inherited must name another version, got 'v2'; there is 'v1'",
    ),
    "generator": (
        {},
        "async def handler():\n    yield 'a'\n",
        "Inherited needs an answer that is made at once, and GET /v1/x sends a stream",
    ),
    "events": (
        {},
        "from treefold_http import EventStream\nasync def handler() -> EventStream: ...\n",
        "GET /v1/x sends a stream or a file",
    ),
    "file": (
        {},
        "from treefold_http import FileResponse\nasync def handler() -> FileResponse: ...\n",
        "GET /v1/x sends a stream or a file",
    ),
    "broken base": ({}, "x = 1\n", "Api/v1/X/Get.py, which this handler calls, does not load"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_boot_refuses_what_cannot_be_converted(project: Project, name: str) -> None:
    given, v1, wanted = REFUSED[name]
    found = errors(project(tree(v1, convert(**given))))
    (own,) = (each for each in found if each.startswith("v2/"))
    assert wanted in own


def test_a_type_that_no_answer_is_read_into_is_refused(project: Project) -> None:
    v2 = "class Odd: ...\n" + convert('before: Inherited[Odd, "v1"]')
    (error,) = errors(project(tree(v2=v2)))
    assert "Inherited[Odd] must name a type of an answer" in error


def test_two_bodies_are_refused_unless_one_is_given(project: Project, ask: Ask) -> None:
    v1 = (
        "from treefold_http import UploadFile\n"
        "async def handler(scan: UploadFile): return {'a': len(await scan.read())}\n"
    )
    model = "from dataclasses import dataclass\n@dataclass\nclass B:\n    a: int\n"
    v2 = model + convert('b: B, before: Inherited[A, "v1"]')
    (error,) = errors(project({"Api/v1/X/Post.py": v1, "Api/v2/X/Post.py": v2}))
    assert "a request has one body" in error


def test_a_plain_function_cannot_await(project: Project) -> None:
    v2 = convert().replace("async def", "def").replace("await ", "")
    (error,) = errors(project(tree(v2=v2)))
    assert "The handler must be an `async def`: it awaits before" in error


def test_a_place_that_the_base_has_not_is_named(project: Project) -> None:
    app = project({"Api/v1/Y/Get.py": V1, "Api/v2/X/Get.py": convert()})
    (error,) = errors(app)
    assert "v1 has no GET /x, which Inherited could call; see treefold routes" in error


def test_handlers_that_call_each_other_are_named(project: Project) -> None:
    found = errors(project(tree(v1=convert('before: Inherited[A, "v2"]'))))
    assert any(
        "Handlers call each other: Api/v1/X/Get.py -> Api/v2/X/Get.py -> Api/v1/X/Get.py" in each
        for each in found
    )


def test_a_dependency_cannot_take_one(project: Project) -> None:
    v2 = (
        "from treefold_http import Depends, Inherited\n"
        'async def ask(before: Inherited[dict, "v1"]): return await before()\n'
        "async def handler(found=Depends(ask)): return found\n"
    )
    (error,) = errors(project(tree(v2=v2)))
    assert "'before' of ask() is an Inherited, which only a handler of a route can take" in error
