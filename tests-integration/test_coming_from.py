"""Each sentence 'the same' of docs/coming-from/ is held against the other framework.

`SENTENCES` lists them with the tests that ran for them, and sentences that compare in other words;
a new one fails until it has a test. The same source is served by both where both can read it.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from beside_fastapi import Both, both as both

PAGES = Path(__file__).resolve().parent.parent / "docs/coming-from"
BLOCKS = "pages/test_pages.py::test_every_block_of_a_page_runs"
"""The blocks of every page run there, with their assertions."""
CLIENTS = "test_coming_from_clients.py"
DIFFERENCES = "test_coming_from_differences.py"
DJANGO = "test_coming_from_django.py"

SENTENCES = {
    ("django.md", "The model is declared alike:"): ["test_a_model_of_django_is_declared_alike"],
    ("django.md", "`makemigrations`, `migrate`, `sqlmigrate`, `showmigrations`"): [
        "test_the_commands_of_django_have_the_same_names"
    ],
    ("django.md", "**A slash at the end is the same path,**"): [BLOCKS],
    ("django.md", "| W001, W002, W019, W022 |"): [
        f"{DJANGO}::test_the_table_of_checks_has_each_one_of_django",
    ],
    ("django.md", "**Passwords are judged by rules"): [
        f"{DJANGO}::test_a_password_that_one_of_the_validators_refuses",
        f"{DJANGO}::test_four_of_five_passwords_of_the_list_of_django_are_refused",
    ],
    ("django.md", "**The async side is complete.**"): [
        f"{DJANGO}::test_each_method_has_the_async_form_of_django",
    ],
    ("flask.md", "**Plain functions stay.**"): [
        "test_handler_contract.py::test_sync_handlers_run_in_a_worker_thread"
    ],
    ("flask.md", "**Types are checked.**"): [BLOCKS],
    ("fastapi.md", "The models and the dependency are the same code"): [
        "test_the_code_of_the_page_differs_in_the_error_alone"
    ],
    ("fastapi.md", "Both answer the same requests alike:"): [BLOCKS],
    ("fastapi.md", "`Depends`, also in `Annotated`, with `yield`, of dependencies"): [
        "test_dependencies_are_the_same",
        "test_a_dependency_sees_the_failure_of_its_handler",
        "test_a_request_that_is_not_valid_runs_no_later_dependency",
    ],
    ("fastapi.md", "`Query()`, `Header()`, `Cookie()`, `Body()`, `Form()`, `File()`"): [
        "test_parameters_are_the_same",
        "test_bodies_are_the_same",
        "test_files_are_the_same",
    ],
    ("fastapi.md", "`@app.exception_handler`"): [
        "test_exception_handlers_are_the_same",
        f"{DIFFERENCES}::test_an_exception_handler_is_for_a_class",
        f"{DIFFERENCES}::test_a_handler_of_http_errors_sees_unknown_paths_too",
    ],
    ("fastapi.md", "`BackgroundTasks`"): [
        "test_background_tasks_are_the_same",
        f"{DIFFERENCES}::test_background_tasks_start_after_the_part_behind_yield",
    ],
    ("fastapi.md", "`TestClient(app)`"): [BLOCKS, f"{CLIENTS}::test_test_clients_are_the_same"],
    ("fastapi.md", "**A return annotation documents;"): [
        f"{DIFFERENCES}::test_a_return_annotation_drops_fields_in_fastapi_alone"
    ],
    ("fastapi.md", "**Two bodies in one function"): [
        f"{DIFFERENCES}::test_two_bodies_are_an_error_at_boot",
    ],
    ("fastapi.md", "**A file that fails to load breaks its own route**"): [
        f"{DIFFERENCES}::test_a_broken_file_takes_no_other_route_with_it"
    ],
    ("fastapi.md", "**A slash at the end is the same path**"): [BLOCKS],
}
"""The beginning of a sentence or row, by its page, to the tests that ran for it."""

_SAME = re.compile(r"\b(?:same|alike|identical|identically)\b")


def lines_of(page: Path) -> list[str]:
    """Return the lines of a page outside of its blocks."""
    kept, inside = list[str](), False
    for line in page.read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            kept.append(line)
    return kept


def test_each_sentence_has_a_test_that_ran() -> None:
    found = [
        (page.name, line)
        for page in sorted(PAGES.glob("*.md"))
        for line in lines_of(page)
        if _SAME.search(line)
    ]
    untested = [
        (page, line)
        for page, line in found
        if not any(page == name and begin in line for name, begin in SENTENCES)
    ]
    gone = [
        (name, begin)
        for name, begin in SENTENCES
        if not any(begin in line for line in lines_of(PAGES / name))
    ]
    assert (untested, gone) == ([], [])


@pytest.mark.parametrize("test", sorted({test for tests in SENTENCES.values() for test in tests}))
def test_each_test_of_the_table_is_there(test: str) -> None:
    file, _, name = test.rpartition("::")
    source = Path(__file__).parent / file if file else Path(__file__)
    names = [
        node.name
        for node in ast.walk(ast.parse(source.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]
    assert name in names


def blocks_of(page: str) -> Mapping[str, str]:
    """Return the Python files of a page, by the name in their first line."""
    text = (PAGES / page).read_text("utf-8")
    return dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", text, re.DOTALL))


def definitions(source: str, *names: str) -> list[str]:
    found = [
        ast.unparse(node)
        for node in ast.parse(source).body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name in names
    ]
    assert len(found) == len(names)
    return found


def test_the_code_of_the_page_differs_in_the_error_alone() -> None:
    blocks = blocks_of("fastapi.md")
    names = ("NewTool", "Tool", "find_tool")
    theirs, ours = (definitions(blocks[file], *names) for file in ("main.py", "Services/tools.py"))
    assert [text.replace("HTTPException(404, ", "NotFound(") for text in theirs] == ours


def test_a_model_of_django_is_declared_alike() -> None:
    blocks = blocks_of("django.md")
    theirs, ours = (
        definitions(blocks[file], "Tool")[0] for file in ("shed/models.py", "Models/shed.py")
    )
    assert theirs.replace("models.Model", "Model").replace("models.", "fields.") == ours


@pytest.mark.parametrize("command", ["makemigrations", "migrate", "sqlmigrate", "showmigrations"])
def test_the_commands_of_django_have_the_same_names(command: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "treefold", command, "--help"], capture_output=True, text=True
    )
    assert (ran.returncode, command in ran.stdout) == (0, True), ran.stderr


def status_and_json(*targets: str, **options: Any) -> Callable[[Any], Any]:
    def call(client: Any) -> Any:
        answers = [client.get(target, **options) for target in targets]
        return [(a.status_code, a.json() if a.status_code == 200 else None) for a in answers]

    return call


DEPENDENCIES = """
    class Counted:
        def __init__(self, page: int = 1):
            EVENTS.append("class")
            self.page = page

    def inner(counted: Annotated[Counted, Depends(Counted)]):
        EVENTS.append("inner")
        return counted.page * 2

    async def opened(value: int = Depends(inner)):
        EVENTS.append("open")
        yield value + 1
        EVENTS.append("close")

    def plain(value: Annotated[int, Depends(inner)]):
        EVENTS.append("plain open")
        yield value
        EVENTS.append("plain close")

    async def fresh():
        EVENTS.append("fresh")
        return len(EVENTS)

    async def handler(
        a: Annotated[int, Depends(opened)],
        b: int = Depends(plain),
        c: int = Depends(fresh, use_cache=False),
        d: int = Depends(fresh, use_cache=False),
    ):
        EVENTS.append("handler")
        return {"a": a, "b": b, "fresh": d - c}
    """


def test_dependencies_are_the_same(both: Both) -> None:
    ours, theirs = both(DEPENDENCIES, status_and_json("/v1/x?page=4", "/v1/x"))
    assert ours == theirs
    assert [status for status, _ in ours[0]] == [200, 200]
    assert ours[1].count("inner") == 2, "once for each request"


def test_a_request_that_is_not_valid_runs_no_later_dependency(both: Both) -> None:
    ours, theirs = both(DEPENDENCIES, status_and_json("/v1/x?page=no"))
    assert ours == ([(422, None)], [])
    assert theirs == ([(422, None)], ["fresh", "fresh"])


FAILURES = {
    "an HTTP error": "raise HTTPException(409, 'taken')",
    "an exception": "raise LookupError('no')",
    "none": "return {'done': True}",
}


@pytest.mark.parametrize("end", FAILURES)
def test_a_dependency_sees_the_failure_of_its_handler(both: Both, end: str) -> None:
    source = f"""
    async def opened():
        try:
            yield 1
        except BaseException as error:
            EVENTS.append(type(error).__name__.replace("HTTPException", "HTTPError"))
            raise
        finally:
            EVENTS.append("closed")

    def plain():
        try:
            yield 1
        except BaseException as error:
            EVENTS.append(type(error).__name__.replace("HTTPException", "HTTPError"))
            raise

    async def handler(a: int = Depends(opened), b: int = Depends(plain)):
        {FAILURES[end]}
    """
    ours, theirs = both(source, status_and_json("/v1/x"))
    assert ours == theirs
    assert "closed" in ours[1]


PARAMETERS = """
    async def handler(
        search: Annotated[str, Query(), MinLen(2)] = "oak",
        tags: Annotated[list[str], Query()] = [],
        x_page: Annotated[int, Header()] = 1,
        theme: Annotated[str, Cookie()] = "dark",
        other: Annotated[str | None, Query(alias="q")] = None,
    ):
        return {"search": search, "tags": tags, "page": x_page, "theme": theme, "other": other}
    """
BODIES = """
    async def handler(name: Annotated[str, Body(), MinLen(2)]):
        return {"name": name}
    """
FORMS = """
    async def handler(name: Annotated[str, Form()], count: Annotated[int, Form()] = 1):
        return {"name": name, "count": count}
    """


def test_parameters_are_the_same(both: Both) -> None:
    ours, theirs = both(
        PARAMETERS,
        status_and_json(
            "/v1/x",
            "/v1/x?search=ash&tags=a&tags=b&q=1",
            "/v1/x?search=a",
            headers={"X-Page": "3", "Cookie": "theme=light"},
        ),
    )
    assert ours == theirs
    assert [status for status, _ in ours[0]] == [200, 200, 422]
    ours, theirs = both(PARAMETERS, status_and_json("/v1/x", headers={"X-Page": "no"}))
    assert ours == theirs


@pytest.mark.parametrize(
    ("source", "kind", "sent"),
    [
        (BODIES, "json", ["Saw", "S", 5]),
        (FORMS, "data", [{"name": "Saw", "count": 2}, {"count": 2}, {"name": "Saw", "count": "x"}]),
    ],
    ids=["Body", "Form"],
)
def test_bodies_are_the_same(both: Both, source: str, kind: str, sent: list[Any]) -> None:
    def post(client: Any) -> Any:
        answers = [client.post("/v1/x", **{kind: each}) for each in sent]
        return [(a.status_code, a.json() if a.status_code == 200 else None) for a in answers]

    ours, theirs = both(source, post, method="post")
    assert ours == theirs
    assert [status for status, _ in ours[0]] == [200, 422, 422]


def test_files_are_the_same(both: Both) -> None:
    source = """
    async def handler(one: Annotated[UploadFile, File()], note: Annotated[str, Form()] = ""):
        content = await one.read()
        return {"name": one.filename, "type": one.content_type, "size": len(content), "note": note}
    """

    def post(client: Any) -> Any:
        files = {"one": ("a.txt", b"x" * 2_000_000, "text/plain")}
        whole = client.post("/v1/x", files=files, data={"note": "n"})
        return whole.status_code, whole.json(), client.post("/v1/x", data={"note": "n"}).status_code

    ours, theirs = both(source, post, method="post")
    assert ours == theirs
    assert ours[0][0] == 200


def test_exception_handlers_are_the_same(both: Both) -> None:
    source = """
    class Broken(Exception): ...
    class MoreBroken(Broken): ...

    async def handler(kind: str):
        kinds = {"lookup": LookupError, "index": IndexError, "key": KeyError, "more": MoreBroken}
        raise kinds[kind](kind)
    """
    register = """
    def register(app):
        @app.exception_handler(LookupError)
        async def lookup(request, error):
            return text(f"lookup {type(error).__name__} {request.url.path}", 404)

        @app.exception_handler(KeyError)
        def key(request, error):
            return text("key", 400)
    """

    def call(client: Any) -> Any:
        answers = [client.get(f"/v1/x?kind={kind}") for kind in ("lookup", "index", "key", "more")]
        return [(a.status_code, a.text if a.status_code < 500 else "") for a in answers]

    ours, theirs = both(source, call, register=register)
    assert ours == theirs
    assert [status for status, _ in ours[0]] == [404, 404, 400, 500]


TASKS = {
    "a result": "return {'done': True}",
    "an HTTP error": "raise HTTPException(404, 'none')",
    "an exception": "raise ValueError('x')",
    "an answer that cannot be made": "return {'n': object()}",
}


@pytest.mark.parametrize("end", TASKS)
@pytest.mark.parametrize("fails", [False, True])
def test_background_tasks_are_the_same(both: Both, end: str, fails: bool) -> None:
    source = f"""
    add = getattr(BackgroundTasks, "add_task", None) or BackgroundTasks.add

    async def later(name):
        EVENTS.append(name)

    def first(background: BackgroundTasks):
        add(background, later, "dependency")

    def second():
        if {fails}:
            raise HTTPException(403, "no")

    async def handler(background: BackgroundTasks, a=Depends(first), b=Depends(second)):
        add(background, EVENTS.append, "plain")
        add(background, later, "async")
        EVENTS.append("handler")
        {TASKS[end]}
    """

    def call(client: Any) -> Any:
        return client.get("/v1/x").status_code

    ours, theirs = both(source, call)
    assert ours == theirs
    assert ("async" in ours[1]) is (end == "a result" and not fails)
