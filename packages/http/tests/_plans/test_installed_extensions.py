"""Extensions of other distributions: what they may offer, and how an application asks for it."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings
from treefold_http.extensions import (
    Extension,
    apply,
    explain,
    find_session_store,
    install,
    observe,
    pending,
    prepare_tests,
    readiness,
)
from treefold_http.reload import Reloader, RestartNeeded

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

PARTS = """
from types import SimpleNamespace

entries = []

class Queue:
    def setup(self, app): entries.append(f"queue setup {app.root.name}")
    async def startup(self): entries.append("queue startup")
    def shutdown(self): entries.append("queue shutdown")
    async def ready(self):
        return [SimpleNamespace(topic="queue", name="main", ok=True, text="answers", advice="")]
    def explain(self, error):
        return "The queue knows: see the manual" if isinstance(error, LookupError) else ""
    def pending(self): return [SimpleNamespace(text="queue 'main' is missing", advice="make it")]
    def apply(self): return ["made queue 'main'"]
    def session_store(self): return "store of the queue"

class Databases:
    def setup(self, app): entries.append("databases setup")
    def startup(self): entries.append("databases startup")
    async def shutdown(self): entries.append("databases shutdown")
    def prepare_tests(self): entries.append("databases prepared")

class Broken:
    def __init__(self): raise RuntimeError("half installed")

class Nothing: ...
"""
SHADOWED = {"databases": "Nothing", "jobs": "Nothing", "migrations": "Nothing"}
"""Ours of these names come first on the path, whatever the environment of the tests holds."""
TREE = {"Api/v1/Get.py": "async def handler(request): raise LookupError('gone')"}
ON = Settings(installed_extensions=True)


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., list[str]]]:
    """Install a distribution that declares extensions; return what is noted when they are used."""
    site = tmp_path / "site"
    info = site / "parts-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: parts\nVersion: 1.0\n")
    (site / "parts_of_others.py").write_text(PARTS)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])

    def write(**points: str) -> list[str]:
        shown = {**SHADOWED, **points}.items()
        lines = [f"{name} = parts_of_others:{kind}" for name, kind in shown]
        text = "\n".join(["[treefold.extensions]", *lines])
        (info / "entry_points.txt").write_text(f"{text}\n")
        importlib.invalidate_caches()
        return importlib.import_module("parts_of_others").entries

    yield write
    sys.modules.pop("parts_of_others", None)


def failures_of(app: Application) -> dict[str, str]:
    """Install the extensions of an application; return the failures by name."""
    failures: dict[str, str] = {}
    install(app, lambda name, error: failures.update({name: repr(error)}))
    return failures


def notes(lines: Lines) -> list[str]:
    """The notes of all exceptions in the log; a traceback shows them below the message."""
    errors = [record.exc_info[1] for record in lines.records if record.exc_info]
    return [note for error in errors for note in getattr(error, "__notes__", [])]


def live(app: Application) -> None:
    async def main() -> None:
        await app.lifespan.run_startup()
        await app.lifespan.run_shutdown()

    asyncio.run(main())


def test_databases_come_first_and_end_last(
    project: Project, declare: Callable[..., list[str]]
) -> None:
    entries = declare(a_queue="Queue", databases="Databases")
    app = project(TREE, settings=ON)
    live(app)
    assert entries == [
        "databases setup",
        f"queue setup {app.root.name}",
        "databases startup",
        "queue startup",
        "queue shutdown",
        "databases shutdown",
    ]


@pytest.mark.parametrize(
    ("asked", "models", "count"),
    [(None, False, 0), (None, True, 1), (True, False, 1), (False, True, 0)],
)
def test_they_are_looked_up_with_models_or_on_request(
    project: Project,
    declare: Callable[..., list[str]],
    asked: bool | None,
    models: bool,
    count: int,
) -> None:
    declare(queue="Queue")
    tree = {**TREE, **({"Models/shop.py": ""} if models else {})}
    app = project(tree, settings=Settings(installed_extensions=asked))
    app.boot()
    assert [type(one).__name__ for one in app.extensions].count("Queue") == count


def test_one_that_fails_stops_the_boot_each_time_and_is_named(
    project: Project, declare: Callable[..., list[str]]
) -> None:
    declare(queue="Queue", broken="Broken")
    app = project(TREE, settings=ON)
    for _ in range(2):
        with pytest.raises(BootError, match="broken cannot be used: RuntimeError: half installed"):
            app.boot()


def test_a_tool_installs_them_without_a_boot(
    project: Project, declare: Callable[..., list[str]]
) -> None:
    entries = declare(queue="Queue", broken="Broken")
    app = project({"Api/v1/Get.py": "raise SystemExit(9)"}, settings=ON)
    assert failures_of(app) == {"broken": "RuntimeError('half installed')"}
    assert entries == [f"queue setup {app.root.name}"]
    (check,) = asyncio.run(readiness(app))
    assert (check.topic, check.name, check.ok, check.text) == ("queue", "main", True, "answers")


def test_a_second_installation_sets_nothing_up_again(
    project: Project, declare: Callable[..., list[str]]
) -> None:
    entries = declare(queue="Queue")
    app = project(TREE, settings=ON)
    assert failures_of(app) == {}
    app.boot()
    assert len(entries) == 1


def test_what_is_missing_is_collected_and_applied(
    project: Project, declare: Callable[..., list[str]]
) -> None:
    entries = declare(queue="Queue", databases="Databases")
    app = project(TREE, settings=ON)
    app.boot()
    assert [(one.text, one.advice) for one in pending(app)] == [
        ("queue 'main' is missing", "make it")
    ]
    assert apply(app) == ["made queue 'main'"]
    prepare_tests(app)
    assert "databases prepared" not in entries
    assert find_session_store(app) == "store of the queue"


def test_tests_are_prepared_where_there_is_nothing_to_apply(
    project: Project, declare: Callable[..., list[str]]
) -> None:
    entries = declare(databases="Databases")
    app = project(TREE, settings=ON)
    app.boot()
    assert apply(app) is None
    prepare_tests(app)
    assert entries[-1] == "databases prepared"
    assert find_session_store(app) is None


# -- explain --------------------------------------------------------------------------------------


def test_an_explanation_follows_the_error_in_answer_and_log(
    project: Project, declare: Callable[..., list[str]], ask: Ask, lines: Lines
) -> None:
    declare(queue="Queue")
    app = project(TREE, settings=ON, dev=True)
    detail = ask(app, "GET", "/v1").json()["detail"]
    assert detail == "LookupError: gone\nThe queue knows: see the manual"
    assert "The queue knows: see the manual" in notes(lines)


def test_in_production_the_explanation_is_in_the_log_only(
    project: Project, declare: Callable[..., list[str]], ask: Ask, lines: Lines
) -> None:
    declare(queue="Queue")
    answer = ask(project(TREE, settings=ON), "GET", "/v1")
    assert b"queue" not in answer.body
    assert "The queue knows: see the manual" in notes(lines)


def test_a_startup_hook_that_fails_is_explained(
    project: Project, declare: Callable[..., list[str]]
) -> None:
    declare(queue="Queue")
    hooks = "def fail(): raise LookupError('no table')\non_startup = [fail]"
    app = project({**TREE, "hooks.py": hooks}, settings=ON)
    message = r"Startup hook fail failed: LookupError\('no table'\); The queue knows: see the man"
    with pytest.raises(BootError, match=message):
        live(app)


def test_an_explanation_that_fails_hides_nothing(project: Project, lines: Lines) -> None:
    class Wrong:
        def explain(self, error: BaseException) -> str:
            raise ZeroDivisionError

    app = project(TREE)
    app.boot()
    app.installed.append(Wrong())
    error = LookupError("gone")
    assert asyncio.run(explain(app, error)) == ""
    assert not hasattr(error, "__notes__")
    assert lines.texts(logging.WARNING) == ["extension Wrong failed to explain an error"]


# -- readiness ------------------------------------------------------------------------------------


def test_one_that_hangs_or_fails_is_not_ready_and_quotes_nothing(project: Project) -> None:
    class Hangs:
        async def ready(self) -> list[Any]:
            await asyncio.Event().wait()
            return []

    class Fails:
        async def ready(self) -> list[Any]:
            raise ValueError("postgresql://ann:hunter2@host")

    app = project(TREE)
    app.installed.extend([Hangs(), Fails()])
    checks = asyncio.run(readiness(app, timeout=0.05))
    assert [(c.name, c.ok, c.text) for c in checks] == [
        ("Hangs", False, "does not answer within 0.05 s"),
        ("Fails", False, "cannot say: it raised ValueError"),
    ]


# -- the contract ---------------------------------------------------------------------------------


def test_a_class_that_derives_from_the_contract_does_nothing_by_default(
    project: Project, ask: Ask
) -> None:
    class Quiet(Extension):
        """Offers nothing of its own."""

    app = project({"Api/v1/Get.py": "async def handler(request): return {}"}, dev=True)
    app.installed.append(Quiet())
    assert ask(app, "GET", "/v1").status == 200
    assert asyncio.run(readiness(app)) == []
    assert (pending(app), apply(app), find_session_store(app)) == ([], None, None)
    observe(app, lambda name, attributes: nullcontext())()
    live(app)


def test_spans_are_observed_until_it_is_stopped(project: Project) -> None:
    seen: list[str] = []

    class Works(Extension):
        def __init__(self) -> None:
            self.factories: list[Any] = []

        def observe(self, span_factory: Any) -> Callable[[], None]:
            self.factories.append(span_factory)
            return self.factories.clear

        def work(self) -> None:
            for factory in self.factories:
                with factory("work", {"part": 1}):
                    seen.append("inside")

    def span(name: str, attributes: Mapping[str, str | int]) -> AbstractContextManager[None]:
        seen.append(f"{name} {dict(attributes)}")
        return nullcontext()

    app = project(TREE)
    works = Works()
    app.installed.append(works)
    stop = observe(app, span)
    works.work()
    stop()
    works.work()
    assert seen == ["work {'part': 1}", "inside"]


def test_an_extension_of_the_project_offers_the_same(project: Project) -> None:
    source = (
        "from types import SimpleNamespace as Check\n"
        "class Mail:\n"
        "    async def ready(self):\n"
        "        return [Check(topic='mail', name='relay', ok=False, text='away', advice='')]\n"
        "extensions = [Mail()]\n"
    )
    app = project({**TREE, "extensions.py": source})
    app.boot()
    (check,) = asyncio.run(readiness(app))
    assert (check.name, check.ok) == ("relay", False)
    assert isinstance(check, SimpleNamespace)


def test_models_that_come_while_it_runs_ask_for_a_restart(project: Project) -> None:
    app = project({"Api/v1/Get.py": "async def handler(request): ..."}, dev=True)
    app.boot()
    reloader = Reloader(app)
    (app.root / "Models").mkdir()
    (app.root / "Models" / "shop.py").write_text("")
    assert reloader.reload(["Models/shop.py"]) == RestartNeeded("the project has models now")
