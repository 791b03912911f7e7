"""Handler modules: what they hold, `init`, module identity, and files that cannot be served."""

from contextlib import ExitStack

import pytest
from serving import Serve, Served, StartFailed, start, write_tree

SOURCES = {
    "Api/v1/Async/Get.py": "async def handler(request): return {'ran': 'async'}",
    "Api/v1/Plain/Get.py": "def handler(request): return {'ran': 'plain'}",
    "Api/v1/Callable/Get.py": """
        class Handler:
            async def __call__(self, request):
                return {"ran": "instance"}

        handler = Handler()
        """,
    "Api/v1/Init/Get.py": """
        calls = []

        def init():
            calls.append(dict(seen=later))

        later = "defined after init"

        async def handler(request):
            return calls
        """,
    "Api/v1/AsyncInit/Get.py": """
        ran = []

        async def init():
            ran.append("init")

        async def handler(request):
            return ran
        """,
    "Api/v1/Local/Get.py": """
        from .Services.names import GREETING
        from Services.shared import NAME

        async def handler(request):
            return GREETING + NAME
        """,
    "Api/v1/Local/Services/names.py": "GREETING = 'hello '",
    "Services/shared.py": "NAME = 'world'",
    "Api/v1/Same/[id]/Get.py": """
        import importlib, sys

        async def handler(request):
            named = importlib.import_module("Api.v1.Same.[id].Get")
            return {"same": named is sys.modules[__name__] and named.handler is handler}
        """,
    # broken ones, each beside a method that works
    "Api/v1/Broken/Syntax/Get.py": "def handler(request:",
    "Api/v1/Broken/Import/Get.py": "import no_such_module",
    "Api/v1/Broken/Raises/Get.py": "raise LookupError('secret-of-the-import')",
    "Api/v1/Broken/Exit/Get.py": "raise SystemExit(7)",
    "Api/v1/Broken/Missing/Get.py": "async def handle(request): ...",
    "Api/v1/Broken/Number/Get.py": "handler = 5",
    "Api/v1/Broken/Init/Get.py": """
        def init():
            raise OSError("init failed")

        async def handler(request): ...
        """,
    "Api/v1/Broken/InitExits/Get.py": """
        import sys

        def init():
            sys.exit()

        async def handler(request): ...
        """,
    "Api/v1/Broken/Parameter/Get.py": "async def handler(request, database): ...",
    "Api/v1/Broken/Circle/Get.py": """
        from treefold import Depends

        class Circle:
            def __init__(self, circle: "Circle" = Depends()): ...

        async def handler(circle: Circle = Depends()): ...
        """,
}
BROKEN = [name.split("/")[3] for name in SOURCES if "/Broken/" in name]
WORKS = "async def handler(request): ..."
TREE = SOURCES | {f"Api/v1/Broken/{name}/Post.py": WORKS for name in BROKEN}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.fixture(scope="module")
def dev(serve: Serve) -> Served:
    return serve(TREE, dev=True)


@pytest.mark.parametrize(
    ("target", "ran"),
    [("/v1/async", "async"), ("/v1/plain", "plain"), ("/v1/callable", "instance")],
)
def test_the_handler_may_be(app: Served, target: str, ran: str) -> None:
    assert app.get(target).json() == {"ran": ran}


def test_init_is_called_once_and_after_the_module_is_imported(app: Served) -> None:
    seen = [{"seen": "defined after init"}]
    assert [app.get("/v1/init").json() for _ in range(2)] == [seen, seen]


def test_the_body_of_an_async_init_never_runs(app: Served) -> None:
    assert app.get("/v1/asyncinit").json() == []


def test_an_async_init_leaves_no_warning_about_its_coroutine(app: Served) -> None:
    booted = app.wait_for(lambda lines: lines if "booted in" in "".join(lines) else [])
    assert "never awaited" not in "\n".join(booted)


def test_local_services_by_relative_and_global_ones_by_absolute_import(app: Served) -> None:
    assert app.get("/v1/local").text == "hello world"


def test_the_module_that_serves_is_the_one_importlib_gives(app: Served) -> None:
    assert app.get("/v1/same/1").json() == {"same": True}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_answers_500(app: Served, name: str) -> None:
    answer = app.get(f"/v1/broken/{name.lower()}")
    assert answer.status == 500
    assert answer.json()["detail"] == "handler failed to load"


@pytest.mark.parametrize("name", BROKEN)
def test_other_methods_beside_a_broken_file_work(app: Served, name: str) -> None:
    assert app.request("POST", f"/v1/broken/{name.lower()}").status == 204


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Syntax", "SyntaxError"),
        ("Import", "No module named 'no_such_module'"),
        ("Raises", "LookupError: secret-of-the-import"),
        ("Exit", "SystemExit: 7"),
        (
            "Missing",
            "v1/Broken/Missing/Get.py has no `handler`; define `async def handler(request)`",
        ),
        ("Number", "`handler` in v1/Broken/Number/Get.py must be a function, got 'int'"),
        ("Init", "OSError: init failed"),
        ("InitExits", "SystemExit"),
        ("Parameter", "Nothing provides parameter 'database' of handler()"),
        ("Circle", "Dependencies form a cycle: Circle() -> Circle()"),
    ],
)
def test_a_broken_file_says_why_in_the_log_and_in_dev_only_to_the_client(
    app: Served, dev: Served, name: str, reason: str
) -> None:
    file = f"v1/Broken/{name}/Get.py failed to load"
    logged = app.wait_for(lambda lines: [line for line in lines if file in line])
    assert len(logged) == 1
    assert logged[0].startswith("[ERROR]")
    assert reason in logged[0]
    assert reason in dev.get(f"/v1/broken/{name.lower()}").json()["detail"]


def test_the_traceback_of_a_broken_file_is_logged_once(app: Served) -> None:
    for _ in range(3):
        app.line(app.get("/v1/broken/raises"))
    frame = '/Api/v1/Broken/Raises/Get.py", line 1'
    assert len(app.wait_for(lambda lines: [line for line in lines if frame in line])) == 1


def test_the_boot_log_counts_routes_middleware_and_files_with_errors(app: Served) -> None:
    booted = app.wait_for(lambda lines: [line for line in lines if "booted in" in line])
    routes = sum(name.endswith(("/Get.py", "/Post.py")) for name in TREE)
    assert len(booted) == 1
    for count in (f"routes {routes}", "middleware 0", f"files with errors {len(BROKEN)}"):
        assert f"{count}," in booted[0]


def test_a_project_without_any_route_starts_and_answers_404(serve: Serve) -> None:
    assert serve({}).get("/v1/anything").status == 404


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"hooks.py": "import no_such_module"}, "hooks.py"),
        ({"hooks.py": "raise SystemExit"}, "hooks.py"),
        ({"hooks.py": "on_startup = 5"}, "`on_startup` must be a list, got 'int'"),
        (
            {"hooks.py": "on_startup = [5]"},
            "`on_startup` must be a list of functions, got the entry 5",
        ),
        ({"hooks.py": "def f(): 1 / 0\non_startup = [f]"}, "Startup hook f failed"),
        (
            {"Middleware/__init__.py": "middlewares = [5]"},
            "`http`, `before`, `after` or `websocket`, got 5",
        ),
        ({"Middleware/__init__.py": "import no_such_module"}, "Middleware/__init__.py"),
        ({"treefold.toml": "max_boddy = 1"}, "did you mean 'max_body'?"),
    ],
)
def test_a_boot_file_that_fails_stops_the_start(
    kind: str, tmp_path_factory: pytest.TempPathFactory, tree: dict[str, str], reason: str
) -> None:
    root = write_tree(tmp_path_factory.mktemp("project"), tree)
    with pytest.raises(StartFailed) as failure:
        start(kind, root)
    assert reason in failure.value.stderr


def test_hooks_run_in_list_order_around_the_life_of_the_application(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hooks = """
        from treefold import get_logger

        def say(text):
            get_logger().info("hook says %s", text)

        async def first(): say("started one")
        def second(app): say(f"started two in {app.root.name}")
        def third(): say("stopped one")
        async def fourth(app): say("stopped two")

        on_startup = [first, second]
        on_shutdown = [third, fourth]
        """
    root = write_tree(tmp_path_factory.mktemp("project"), {"hooks.py": hooks})
    written = start(kind, root).stop()
    said = [line.partition("hook says ")[2] for line in written.split("\n") if "hook says" in line]
    assert [words.partition(" id=")[0] for words in said] == [
        "started one",
        f"started two in {root.name}",
        "stopped one",
        "stopped two",
    ]


def test_applications_of_different_roots_in_one_process_stay_apart(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    handler = """
        from Services.shared import NAME

        async def handler(request):
            from Services import later

            return [NAME, later.NAME]
        """
    with ExitStack() as running:
        shops: dict[str, Served] = {}
        for name in ("one", "two"):
            tree = {
                "Api/v1/Name/Get.py": handler,
                "Services/shared.py": f"NAME = {name!r}",
                "Services/later.py": f"NAME = {name!r}",
            }
            shops[name] = start("asgi", write_tree(tmp_path_factory.mktemp(name), tree))
            running.callback(shops[name].stop)
        answers = [shops[name].get("/v1/name").json() for name in ("one", "two", "one")]
    assert answers == [["one", "one"], ["two", "two"], ["one", "one"]]
