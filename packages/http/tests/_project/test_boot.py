"""Reading a project: what it finds, what stops it, what never does (S-121)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings, SettingsError, TreefoldError

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]

GET = "async def handler(request):\n    return {'file': __name__}\n"


def test_a_boot_counts_what_it_found(project: Project) -> None:
    app = project(
        {
            "Api/v1/User/Get.py": GET,
            "Api/v1/User/Post.py": GET,
            "Api/v1/Broken/Get.py": "1 / 0",
            "Api/loose/Get.py": GET,
            "Api/v1/Services/Get.py": GET,
            "Middleware/__init__.py": "async def m(request, call_next): ...\nmiddlewares = [m, m]",
        }
    )
    report = app.report

    assert report.routes == 3
    assert report.middleware == 2
    assert [broken.file for broken in report.broken] == ["v1/Broken/Get.py"]
    assert sorted(skipped.file for skipped in report.skipped) == [
        "loose/Get.py",
        "v1/Services/Get.py",
    ]
    assert app.table.latest == "v1"


def test_a_boot_says_so_in_one_line(project: Project, lines: Lines) -> None:
    project({"Api/v1/User/Get.py": GET, "Api/loose/Get.py": GET, "Api/v1/user/Get.py": GET}).boot()

    assert any("skipped loose/Get.py: " in text for text in lines.texts())
    assert any(
        "duplicate GET /v1/user: v1/User/Get.py, v1/user/Get.py" in text for text in lines.texts()
    )
    assert lines.texts()[-1].startswith("booted in ")
    assert lines.texts()[-1].endswith(
        ": routes 1, middleware 0, files with errors 0, skipped files 1"
    )


def test_a_second_boot_does_nothing(project: Project, lines: Lines) -> None:
    app = project({"Api/v1/Get.py": GET})
    app.boot()
    table = app.table
    before = len(lines.records)
    app.boot()

    assert app.table is table
    assert len(lines.records) == before


def test_an_application_is_cheap_until_it_is_used(project: Project) -> None:
    project({"Api/v1/Get.py": "raise AssertionError('imported')", "hooks.py": "1 / 0"})


def test_a_project_without_the_optional_files_boots(project: Project) -> None:
    report = project({}).report

    assert (report.routes, report.middleware, report.broken) == (0, 0, ())


def test_a_traceback_shows_the_frames_of_the_project_only(project: Project) -> None:
    bad = "from treefold_http import HTTPError\nHTTPError(200)\n"
    app = project({"Api/v1/Bad/Get.py": bad})
    app.boot()
    (broken,) = app.report.broken

    assert broken.traceback.count("  File ") == 1
    assert "Api/v1/Bad/Get.py" in broken.traceback


NO_ENTRY = "or an object with a method `http`, `before`, `after` or `websocket`, got 5"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def handler(request)\n", "SyntaxError: expected ':'"),
        ("import nowhere_at_all\n", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("raise SystemExit(3)\n", "SystemExit: 3"),
        ("exit()\n", "SystemExit: None"),
        ("", "has no `handler`"),
        ("handler = 5\n", "must be a function, got 'int'"),
        (f"{GET}def init():\n    1 / 0\n", "ZeroDivisionError: division by zero"),
        ("async def handler(thing): ...\n", "Nothing provides parameter 'thing' of handler()"),
        (f"{GET}max_body = 'x'\n", "`max_body` in v1/Bad/Get.py must be int, got 'x'"),
        (f"{GET}middlewares = [5]\n", NO_ENTRY),
        ("raise ValueError('first\\nsecond')\n", "ValueError: first second"),
        ("e = ValueError('first')\ne.add_note('a note')\nraise e\n", "ValueError: first"),
        ("raise BaseException('odd')\n", "BaseException: odd"),
        ("class E(BaseException): ...\nraise E('own')\n", "E: own"),
        ("def f():\n    f()\nf()\n", "RecursionError: maximum recursion depth exceeded"),
        ("raise ValueError\n", "ValueError"),
    ],
)
def test_a_broken_handler_answers_500_and_nothing_else_does(
    project: Project, ask: Callable[..., Answer], lines: Lines, text: str, error: str
) -> None:
    app = project({"Api/v1/Bad/Get.py": text, "Api/v1/Bad/Post.py": GET, "Api/v1/Good/Get.py": GET})
    app.boot()
    (broken,) = app.report.broken

    assert broken.file == "v1/Bad/Get.py"
    assert error in broken.error
    assert "\n" not in broken.error
    assert broken.traceback.startswith("Traceback (most recent call last):")
    assert len(lines.errors()) == 1
    assert ask(app, "GET", "/v1/good").status == 200
    assert ask(app, "POST", "/v1/bad").status == 200
    answer = ask(app, "GET", "/v1/bad")
    assert answer.status == 500
    assert answer.json()["detail"] == "handler failed to load"
    assert ask(app, "PUT", "/v1/bad").fields("allow") == ["GET, POST"]


def test_with_dev_the_answer_says_why(project: Project, ask: Callable[..., Answer]) -> None:
    app = project({"Api/v1/Get.py": "import nowhere_at_all"}, dev=True)

    assert "No module named 'nowhere_at_all'" in ask(app, "GET", "/v1").json()["detail"]


def test_a_socket_file_is_no_broken_file(project: Project) -> None:
    app = project({"Api/v1/Chat/Ws.py": "async def handler(websocket): ...\n"})

    assert app.report.broken == ()


def test_a_missing_api_folder_stops_the_boot(tmp_path: Any) -> None:
    for root in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(BootError) as caught:
            Application(root).boot()
        assert "Api" in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"hooks.py": "1 / 0"}, "hooks.py cannot be used: ZeroDivisionError: division by zero"),
        ({"hooks.py": "raise SystemExit(1)"}, "hooks.py cannot be used: SystemExit: 1"),
        (
            {"hooks.py": "on_startup = 5"},
            "hooks.py cannot be used: TypeError: `on_startup` must be a list, got 'int'",
        ),
        (
            {"hooks.py": "on_shutdown = [5]"},
            "`on_shutdown` must be a list of functions, got the entry 5",
        ),
        (
            {"hooks.py": "on_shutdown = [5]"},
            "hooks.py cannot be used: TypeError: `on_shutdown` must be a list",
        ),
        ({"hooks/__init__.py": "1 / 0"}, "hooks/__init__.py cannot be used: ZeroDivisionError"),
        ({"Middleware/__init__.py": "1 / 0"}, "Middleware/__init__.py cannot be used: Zero"),
        ({"Middleware.py": "1 / 0"}, "Middleware.py cannot be used: ZeroDivisionError"),
        ({"Middleware/__init__.py": "middlewares = 5"}, "`middlewares` must be a list, got 'int'"),
        (
            {"Middleware/__init__.py": "middlewares = None"},
            "`middlewares` must be a list, got 'NoneType'",
        ),
        ({"Middleware/__init__.py": "middlewares = [5]"}, NO_ENTRY),
        (
            {"Middleware/__init__.py": "class M:\n    def http(self): ...\nmiddlewares = [M]"},
            "must be an instance, got the class M; put an instance in the list",
        ),
    ],
)
def test_a_boot_file_that_fails_stops_the_boot(
    project: Project, files: dict[str, str], message: str
) -> None:
    app = project({"Api/v1/Get.py": GET, **files})
    with pytest.raises(BootError) as caught:
        app.boot()

    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_message_names_the_boot_file_and_not_a_handler_that_fails_too(
    project: Project, lines: Lines
) -> None:
    app = project(
        {"Api/v1/Get.py": "1 / 0", "hooks.py": "import nowhere_at_all", "Api/v1/Z/Get.py": ""}
    )
    with pytest.raises(BootError, match=r"^hooks\.py cannot be used: ModuleNotFoundError"):
        app.boot()

    assert len(lines.errors()) == 3  # everything wrong is said before it stops


def test_a_boot_that_failed_fails_again(project: Project) -> None:
    app = project({"Api/v1/Get.py": GET, "hooks.py": "1 / 0"})
    for _ in range(2):
        with pytest.raises(BootError):
            app.boot()


@pytest.mark.parametrize(
    "text", ["[tool.treefold]\nmax_bdy = 1", "[tool.treefold]\nlog_level = 'LOUD'", "tool = 1", "["]
)
def test_a_wrong_setting_stops_the_boot(project: Project, text: str) -> None:
    app = project({"Api/v1/Get.py": GET, "pyproject.toml": text})
    with pytest.raises(SettingsError) as caught:
        app.boot()

    assert isinstance(caught.value, TreefoldError)


def test_settings_given_in_code_take_the_place_of_files(project: Project) -> None:
    app = project(
        {"pyproject.toml": "[tool.treefold]\nmax_body = 1"}, settings=Settings(max_body=2)
    )

    assert app.settings.max_body == 2


@pytest.mark.parametrize("settings", [None, Settings(default_version="v1")])
def test_a_default_version_given_in_code_wins(project: Project, settings: Settings | None) -> None:
    app = project(
        {"treefold.toml": "default_version = 'v1'"}, default_version="latest", settings=settings
    )

    assert app.settings.default_version == "latest"


def test_two_applications_on_one_root_share_modules_and_run_init_once(project: Project) -> None:
    files = {"Api/v1/Get.py": f"ran = []\ndef init():\n    ran.append(1)\n{GET}"}
    one, two = project(files), project(files)
    one.boot()
    two.boot()
    (module,) = one.project.modules.values()
    (twin,) = two.project.modules.values()

    handler: Any = getattr(module, "handler", None)
    assert handler is getattr(twin, "handler", 0)
    assert handler.__globals__["ran"] == [1]


def test_a_file_whose_init_failed_is_broken_for_the_next_application_too(project: Project) -> None:
    files = {"Api/v1/Get.py": f"def init():\n    1 / 0\n{GET}"}

    assert len(project(files).report.broken) == 1
    assert len(project(files).report.broken) == 1


def test_applications_of_two_roots_serve_their_own_modules(
    project: Project, ask: Callable[..., Answer]
) -> None:
    handler = """
        from Services.name import name

        async def handler(request):
            from Services.late import name as late
            return [name, late]
    """
    apps = [
        project(
            {
                "Api/v1/Get.py": handler,
                "Services/name.py": f"name = {root!r}",
                "Services/late.py": f"name = {root!r}",
                "Middleware/__init__.py": f"""
                    async def mark(request, call_next):
                        response = await call_next(request)
                        response.headers["x-root"] = {root!r}
                        return response

                    middlewares = [mark]
                """,
            },
            root=root,
        )
        for root in ("one", "two")
    ]
    for app in apps:
        app.boot()
    for app, root in zip([*apps, *apps], ["one", "two"] * 2, strict=True):
        answer = ask(app, "GET", "/v1")
        assert answer.json() == [root, root]
        assert answer.fields("x-root") == [root]


def test_the_traceback_of_one_cause_is_logged_once(project: Project, lines: Lines) -> None:
    files = {f"Api/v1/R{n}/Get.py": f"from Services import shared\n{GET}" for n in range(24)}
    app = project(files | {"Services/shared.py": "1 / 0\n", "Api/v1/Own/Get.py": "1 / 0\n"})

    assert len(app.report.broken) == 25
    failed = [one for one in lines.records if "failed to load" in one.getMessage()]
    assert sum(one.exc_info is not None for one in failed) == 2
    (told,) = [one.getMessage() for one in failed if one.exc_info is None]
    assert told.startswith("Services/shared.py failed to load, and 23 more files that import it: ")
    assert told.endswith(", ...")
    assert told.count("Get.py") == 20
