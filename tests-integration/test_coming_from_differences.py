"""Sentences of `docs/coming-from/fastapi.md` that say what differs, held against both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from beside_fastapi import Both, ask_peer, both as both
from serving import write_tree

from treefold import Application, TestClient


def status(client: Any) -> int:
    return client.get("/v1/x").status_code


def document(client: Any) -> Any:
    return client.get("/v1/x").json()


def test_background_tasks_start_after_the_part_behind_yield(both: Both) -> None:
    source = """
    add = getattr(BackgroundTasks, "add_task", None) or BackgroundTasks.add

    async def opened():
        yield
        EVENTS.append("closed")

    async def handler(background: BackgroundTasks, a=Depends(opened)):
        add(background, EVENTS.append, "task")
        return {}
    """
    ours, theirs = both(source, status)
    assert ours == (200, ["closed", "task"])
    assert theirs == (200, ["task", "closed"])


def test_an_exception_handler_is_for_a_class() -> None:
    with pytest.raises(TypeError, match="must be for an exception class such as ValueError, got 4"):
        Application(".").exception_handler(404)  # pyright: ignore[reportArgumentType] - refused on purpose


def test_a_handler_of_http_errors_sees_unknown_paths_too(both: Both) -> None:
    source = """
    async def handler():
        raise HTTPException(409, "taken")
    """
    register = """
    def register(app):
        @app.exception_handler(HTTPException)
        async def every(request, error):
            return text("handled", 418)
    """

    def call(client: Any) -> Any:
        asked = [client.get("/v1/x"), client.get("/v1/none"), client.post("/v1/x")]
        return [answer.status_code for answer in asked]

    ours, theirs = both(source, call, register=register)
    assert ours[0] == [418, 418, 418]
    assert theirs[0] == [418, 404, 405]


def test_a_return_annotation_drops_fields_in_fastapi_alone(both: Both) -> None:
    source = """
    from dataclasses import dataclass

    @dataclass
    class Shown:
        name: str

    async def handler(limited: bool = False) -> Shown:
        return {"name": "Saw", "price": 5}
    """
    ours, theirs = both(source, document)
    assert (ours[0], theirs[0]) == ({"name": "Saw", "price": 5}, {"name": "Saw"})
    limited, _ = both(f"{source}\n    response_model = Shown\n", document)
    assert limited[0] == {"name": "Saw"}


TWO_BODIES = """
    from dataclasses import dataclass

    @dataclass
    class Tool:
        name: str

    @dataclass
    class Owner:
        name: str

    async def handler(tool: Tool, owner: Owner):
        return {"tool": tool.name, "owner": owner.name}
    """


def test_two_bodies_are_an_error_at_boot(tmp_path: Path) -> None:
    sent = {"tool": {"name": "Saw"}, "owner": {"name": "Ann"}}

    def post(client: Any) -> Any:
        return client.post("/v1/x", json=sent).json()

    assert ask_peer(TWO_BODIES, "", post, "post")[0] == {"tool": "Saw", "owner": "Ann"}
    app = Application(write_tree(tmp_path, {"Api/v1/X/Post.py": dedent(TWO_BODIES)}))
    app.boot()
    (broken,) = app.report.broken
    assert broken.file == "v1/X/Post.py"
    assert "body" in broken.error


def test_a_broken_file_takes_no_other_route_with_it(tmp_path: Path) -> None:
    tree = {
        "Api/v1/Broken/Get.py": "import nothing_of_this_name",
        "Api/v1/Ok/Get.py": "async def handler(): return {}",
        "main.py": """
            from fastapi import FastAPI
            import nothing_of_this_name
            app = FastAPI()
            """,
    }
    root = write_tree(tmp_path, tree)
    with TestClient(Application(root)) as client:
        assert client.get("/v1/ok").status_code == 200
        assert client.get("/v1/broken").status_code == 500
    serve = [sys.executable, "-m", "treefold", "serve", "--port", "0", "--app-dir", str(root)]
    ran = subprocess.run(serve, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, "nothing_of_this_name" in ran.stderr) == (1, True)
    with pytest.raises(ModuleNotFoundError):
        exec((root / "main.py").read_text("utf-8"), {})
