"""Modules of one root: importable, one object each, and apart from other roots (S-120)."""

from __future__ import annotations

import asyncio
import gc
import importlib
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from treefold_http._modules.modules import ModuleSpace
from treefold_router import RouteTable

Write = Callable[..., Path]

HANDLER = "async def handler(request): ...\n"


def load(root: Path, file: str) -> ModuleType:
    packages = RouteTable.scan(root / "Api").packages
    module, _ = ModuleSpace.get_or_create_space(root).import_file_once(
        "Api", file.removeprefix("Api/"), packages
    )
    return module


def test_a_file_in_brackets_is_what_importlib_gives_for_its_dotted_name(write: Write) -> None:
    root = write({"Api/v1/User/[id]/Get.py": HANDLER})
    space = ModuleSpace.get_or_create_space(root)
    with space.as_current_root():
        module = load(root, "Api/v1/User/[id]/Get.py")

        assert module.__name__ == "Api.v1.User.[id].Get"
        assert module.__package__ == "Api.v1.User.[id]"
        assert module.__file__ == str(root.resolve() / "Api/v1/User/[id]/Get.py")
        assert importlib.import_module("Api.v1.User.[id].Get") is module
        assert sys.modules["Api.v1.User.[id].Get"] is module
        assert space.load_module("Api.v1.User.[id].Get") is module


def test_a_module_that_was_imported_first_is_the_one_that_is_loaded(write: Write) -> None:
    root = write({"Api/v1/Get.py": HANDLER, "Api/v1/[id]/Get.py": HANDLER})
    space = ModuleSpace.get_or_create_space(root)
    plain = space.load_module("Api.v1.Get")
    bracket = space.load_module("Api.v1.[id].Get")

    assert load(root, "Api/v1/Get.py") is plain
    assert load(root, "Api/v1/[id]/Get.py") is bracket


def test_a_file_runs_once_and_the_first_call_says_so(write: Write) -> None:
    root = write(
        {"Api/v1/Get.py": "import Services.count as c\nc.n += 1\n", "Services/count.py": "n = 0\n"}
    )
    space = ModuleSpace.get_or_create_space(root)
    first, ran = space.import_file_once("Api", "v1/Get.py", ())
    again, ran_again = space.import_file_once("Api", "v1/Get.py", ())

    assert first is again
    assert (ran, ran_again) == (True, False)
    assert space.load_module("Services.count").n == 1


@pytest.mark.parametrize(
    "line",
    [
        "from .Services.names import name",
        "from .Services import names; name = names.name",
        "from ..Services.names import name",
        "from ...Services.names import name",
        "from Api.v1.User.Services.names import name",
        "import Api.v1.User.Services.names as n; name = n.name",
        "from Services.names import name",
        "import Services.names; name = Services.names.name",
        "from helper import name",
        "from package.inner import name",
        "import importlib; name = importlib.import_module('.Services.names', __package__).name",
        "import importlib; name = importlib.import_module('Services.names').name",
    ],
)
def test_local_and_global_services_are_imported_in_every_spelling(write: Write, line: str) -> None:
    root = write(
        {
            "Api/v1/User/[id]/Get.py": line,
            "Api/v1/User/[id]/Services/names.py": "name = 'found'",
            "Api/v1/User/Services/names.py": "name = 'found'",
            "Api/v1/Services/names.py": "name = 'found'",
            "Services/names.py": "name = 'found'",
            "helper.py": "name = 'found'",
            "package/__init__.py": "",
            "package/inner.py": "name = 'found'",
        }
    )

    assert load(root, "Api/v1/User/[id]/Get.py").name == "found"


def test_the_init_file_of_a_package_runs_before_its_handlers(write: Write) -> None:
    root = write(
        {
            "Api/v1/__init__.py": "flag = 'v1'",
            "Api/v1/User/__init__.py": "from Api.v1 import flag",
            "Api/v1/User/Get.py": "from . import flag\nfrom .. import flag as outer",
        }
    )
    module = load(root, "Api/v1/User/Get.py")

    assert (module.flag, module.outer) == ("v1", "v1")


def test_a_handler_is_an_attribute_of_its_package(write: Write) -> None:
    root = write({"Api/v1/User/[id]/Get.py": HANDLER})
    module = load(root, "Api/v1/User/[id]/Get.py")
    with ModuleSpace.get_or_create_space(root).as_current_root():
        package = importlib.import_module("Api.v1.User.[id]")

        assert package.Get is module
        assert getattr(importlib.import_module("Api.v1.User"), "[id]") is package


def test_a_folder_is_a_package_once_somebody_asks_for_it(write: Write) -> None:
    root = write({"Api/v1/User/Get.py": HANDLER, "Api/v1/User/[id]/Get.py": HANDLER})
    space = ModuleSpace.get_or_create_space(root)
    with space.as_current_root():
        below, above = load(root, "Api/v1/User/[id]/Get.py"), load(root, "Api/v1/User/Get.py")
        assert "Api" not in sys.modules

        package = importlib.import_module("Api.v1.User.[id]")
        assert package.Get is below
        assert sys.modules["Api.v1.User"].Get is above
        later = load(root, "Api/v1/User/Get.py")
        assert sys.modules["Api"].v1.User.Get is later


def test_a_folder_with_a_dot_in_its_name_has_services_of_its_own(write: Write) -> None:
    root = write(
        {
            "Api/v1/Feed.xml/Get.py": "from .Services.text import NAME\n",
            "Api/v1/Feed.xml/Services/text.py": "NAME = 'feed'\n",
            "Api/v1/Map.xml/__init__.py": "SIZE = 3\n",
            "Api/v1/Map.xml/Get.py": "from . import SIZE\n",
        }
    )

    assert load(root, "Api/v1/Feed.xml/Get.py").NAME == "feed"
    assert load(root, "Api/v1/Map.xml/Get.py").SIZE == 3


def test_files_whose_dots_meet_are_distinct(write: Write) -> None:
    root = write(
        {
            "Api/v1/foo/bar/Get.py": "which = 'foo/bar'",
            "Api/v1/foo.bar/Get.py": "which = 'foo.bar'",
            "Api/v1/foo.bar/[a.b]/Get.py": "from ..Services.x import which",
            "Api/v1/foo.bar/Services/x.py": "which = 'relative'",
        }
    )

    assert load(root, "Api/v1/foo/bar/Get.py").which == "foo/bar"
    assert load(root, "Api/v1/foo.bar/Get.py").which == "foo.bar"
    assert load(root, "Api/v1/foo.bar/[a.b]/Get.py").which == "relative"


def test_spellings_of_one_method_are_distinct_modules(write: Write) -> None:
    root = write({"Api/v1/A/Get.py": "which = 1", "Api/v1/B/get.py": "which = 2"})

    assert load(root, "Api/v1/A/Get.py").which == 1
    assert load(root, "Api/v1/B/get.py").which == 2


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("def", SyntaxError),
        ("import nowhere_to_be_found", ModuleNotFoundError),
        ("raise SystemExit(3)", SystemExit),
        ("1 / 0", ZeroDivisionError),
        ("raise KeyboardInterrupt", KeyboardInterrupt),
        ("x = '\\0'\n\0", (SyntaxError, ValueError)),  # ValueError before Python 3.11.4
        ("from .Services.broken import x", ZeroDivisionError),
    ],
)
def test_a_broken_file_leaves_nothing_behind(
    write: Write, text: str, error: type[BaseException] | tuple[type[BaseException], ...]
) -> None:
    root = write({"Api/v1/Get.py": text, "Api/v1/Services/broken.py": "1 / 0"})
    space = ModuleSpace.get_or_create_space(root)
    for _ in range(2):
        with pytest.raises(error):
            load(root, "Api/v1/Get.py")
        with space.as_current_root():
            assert "Api.v1.Get" not in sys.modules
            assert "Api.v1.Services.broken" not in sys.modules


def test_a_broken_file_that_was_mended_loads(write: Write) -> None:
    root = write({"Api/v1/Get.py": "1 / 0"})
    with pytest.raises(ZeroDivisionError):
        load(root, "Api/v1/Get.py")
    (root / "Api/v1/Get.py").write_text("x = 'a longer text than before'")

    assert load(root, "Api/v1/Get.py").x == "a longer text than before"


def test_nothing_is_put_on_the_search_path(write: Write) -> None:
    before = list(sys.path)
    load(write({"Api/v1/Get.py": "import Services.x", "Services/x.py": ""}), "Api/v1/Get.py")

    assert sys.path == before


@pytest.mark.parametrize("name", ["json", "logging", "asyncio", "types", "ssl", "email", "site"])
def test_no_file_of_a_project_takes_the_place_of_the_standard_library(
    write: Write, name: str
) -> None:
    root = write(
        {
            f"{name}.py": "raise AssertionError('shadowed')",
            f"Services/{name}.py": f"import {name} as real\nmine = True",
            f"Api/v1/{name}/Get.py": f"import {name}\nimport Services.{name} as s\nmine = s.mine",
            f"Api/v1/{name}/{name}/Get.py": f"import {name}\n",
        }
    )
    real = importlib.import_module(name)

    assert load(root, f"Api/v1/{name}/Get.py").mine
    assert getattr(load(root, f"Api/v1/{name}/Get.py"), name) is real
    assert getattr(load(root, f"Api/v1/{name}/{name}/Get.py"), name) is real
    assert importlib.import_module(name) is real


def test_an_installed_package_wins_over_a_file_of_the_root(write: Write) -> None:
    root = write({"pytest.py": "raise AssertionError", "Api/v1/Get.py": "import pytest"})

    assert load(root, "Api/v1/Get.py").pytest is pytest


def test_names_of_the_layout_win_over_what_is_installed(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "installed"
    (other / "Services").mkdir(parents=True)
    (other / "Services" / "__init__.py").write_text("")
    (other / "Services" / "names.py").write_text("name = 'installed'")
    monkeypatch.setattr(sys, "path", [str(other), *sys.path])
    root = write(
        {"Api/v1/Get.py": "from Services.names import name", "Services/names.py": "name = 'own'"}
    )

    assert load(root, "Api/v1/Get.py").name == "own"


def test_a_name_of_the_layout_that_the_project_has_not_is_looked_for_elsewhere(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed" / "providers.py").write_text("name = 'installed'")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "installed"), *sys.path])
    root = write({"Api/v1/Get.py": "from providers import name"})

    assert load(root, "Api/v1/Get.py").name == "installed"
    del sys.modules["providers"]


@pytest.mark.parametrize("name", ["providers", "hooks", "extensions", "Middleware", "Services"])
def test_what_was_imported_under_a_name_of_the_layout_does_not_stand_for_the_project_s_own(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    foreign, inner = ModuleType(name), ModuleType(f"{name}.inner")
    foreign.__file__ = str(tmp_path / "installed" / name / "__init__.py")
    monkeypatch.setitem(sys.modules, name, foreign)
    monkeypatch.setitem(sys.modules, f"{name}.inner", inner)
    own = ModuleSpace.get_or_create_space(write({f"{name}/__init__.py": "value = 'own'"}))
    other = ModuleSpace.get_or_create_space(write({"Api/v1/Get.py": HANDLER}, "without"))

    assert own.load_module(name).value == "own"
    with pytest.raises(ImportError):
        own.load_module(f"{name}.inner")
    assert other.load_module(name) is foreign  # this root has none, and does without ours
    assert own.load_module(name).value == "own"
    other.make_current_root()  # which takes the module back before the end of the test removes it


def test_a_module_of_the_project_that_was_imported_first_is_not_imported_twice(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = write({"Services/__init__.py": "", "Services/count.py": "n = []"})
    (tmp_path / "link").symlink_to(root)
    (tmp_path / "empty").mkdir()
    ModuleSpace.get_or_create_space(
        tmp_path / "empty"
    ).make_current_root()  # or `Services` would be that of the test before
    monkeypatch.setattr(sys, "path", [str(tmp_path / "link"), *sys.path])
    monkeypatch.delitem(sys.modules, "Services", raising=False)
    monkeypatch.delitem(sys.modules, "Services.count", raising=False)
    first = importlib.import_module("Services.count")

    assert ModuleSpace.get_or_create_space(root).load_module("Services.count") is first


# -- two roots in one process

SAME = {
    "Api/v1/Get.py": """
        from Services.names import name
        from helper import name as helped

        def lazy():
            from Services.later import name
            return name

        def lazy_relative():
            from .Services.local import name
            return name

        def lazy_helper():
            import helper
            return helper.name

        def lazy_import_module():
            import importlib
            return importlib.import_module("Services.last").name
    """,
}


def two_roots(write: Write) -> tuple[Path, Path]:
    made: list[Path] = []
    for root in ("one", "two"):
        files = dict(SAME)
        for file in (
            "Services/names",
            "Services/later",
            "Services/last",
            "helper",
            "Api/v1/Services/local",
        ):
            files[f"{file}.py"] = f"name = '{root}'"
        made.append(write(files, root))
    return made[0], made[1]


def test_two_roots_have_modules_of_their_own(write: Write) -> None:
    roots = two_roots(write)
    one, two = (load(root, "Api/v1/Get.py") for root in roots)

    assert one is not two
    assert (one.name, one.helped) == ("one", "one")
    assert (two.name, two.helped) == ("two", "two")
    assert load(roots[0], "Api/v1/Get.py") is one


@pytest.mark.parametrize("function", ["lazy", "lazy_relative", "lazy_helper", "lazy_import_module"])
def test_an_import_inside_a_function_stays_in_its_root(write: Write, function: str) -> None:
    one, two = (load(root, "Api/v1/Get.py") for root in two_roots(write))
    for _ in range(2):
        assert getattr(one, function)() == "one"
        assert getattr(two, function)() == "two"


@pytest.mark.parametrize("function", ["lazy", "lazy_relative", "lazy_helper"])
def test_an_import_inside_a_thread_stays_in_its_root(write: Write, function: str) -> None:
    modules = [load(root, "Api/v1/Get.py") for root in two_roots(write)]
    found: list[str] = []

    def work(module: ModuleType) -> None:
        found.append(getattr(module, function)())

    for module in (*modules, *reversed(modules)):
        thread = threading.Thread(target=work, args=(module,))
        thread.start()
        thread.join(20)

    assert found == ["one", "two", "two", "one"]


def test_a_coroutine_of_one_root_may_wait_while_another_imports(write: Write) -> None:
    async def main() -> None:
        one, two = (load(root, "Api/v1/Get.py") for root in two_roots(write))
        results = await asyncio.gather(
            *(asyncio.to_thread(module.lazy) for module in (one, two, one, two))
        )
        assert results == ["one", "two", "one", "two"]

    asyncio.run(main())


def test_one_root_is_one_space_however_it_is_spelled(write: Write, tmp_path: Path) -> None:
    root = write({"Api/v1/Get.py": HANDLER})
    (tmp_path / "link").symlink_to(root)

    assert ModuleSpace.get_or_create_space(root) is ModuleSpace.get_or_create_space(
        root / "Api" / ".."
    )
    assert ModuleSpace.get_or_create_space(root) is ModuleSpace.get_or_create_space(
        tmp_path / "link"
    )


def test_a_root_inside_another_is_its_own(write: Write) -> None:
    outer = write(
        {"Api/v1/Get.py": "from Services.names import name", "Services/names.py": "name = 'outer'"}
    )
    inner = write(
        {"Api/v1/Get.py": "from Services.names import name", "Services/names.py": "name = 'inner'"},
        "project/inner",
    )

    assert load(outer, "Api/v1/Get.py").name == "outer"
    assert load(inner, "Api/v1/Get.py").name == "inner"
    assert load(outer, "Api/v1/Get.py").name == "outer"
    with ModuleSpace.get_or_create_space(inner).as_current_root():
        assert importlib.import_module("Services.names").name == "inner"
    with ModuleSpace.get_or_create_space(outer).as_current_root():
        assert importlib.import_module("Services.names").name == "outer"


def test_while_a_root_is_current_its_modules_are_those_of_sys_modules(write: Write) -> None:
    one, two = (ModuleSpace.get_or_create_space(root) for root in two_roots(write))
    first, second = one.load_module("Services.names"), two.load_module("Services.names")
    with one.as_current_root():
        assert sys.modules["Services.names"] is first
        with two.as_current_root():
            assert sys.modules["Services.names"] is second
        assert sys.modules["Services.names"] is first


class _ImportsAtItsEnd:
    """Garbage that only the collector finds, and that imports a module when it does."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        name = f"imported_by_a_finalizer_{id(self)}"
        sys.modules[name] = ModuleType(name)


def test_garbage_may_be_collected_while_modules_are_listed(write: Write) -> None:
    space = ModuleSpace.get_or_create_space(write({"Api/v1/Get.py": "N = 1\n"}))
    space.make_current_root()
    before = set(sys.modules)
    pairs = [(number, space) for number in range(5000)]  # Python has no free pair to use again
    thresholds = gc.get_threshold()
    gc.disable()
    try:
        _ImportsAtItsEnd()
        gc.set_threshold(gc.get_count()[0] + 50)  # a collection among the first hundred modules
        gc.enable()
        space.find_loaded_modules()
    finally:
        gc.enable()
        gc.set_threshold(*thresholds)
        pairs.clear()
        gc.collect()
        added = set(sys.modules) - before
        for name in added:
            del sys.modules[name]
    assert [name.startswith("imported_by_a_finalizer") for name in added] == [True]


def test_the_former_root_comes_back_after_a_failure(write: Write) -> None:
    roots = two_roots(write)
    one, two = (ModuleSpace.get_or_create_space(root) for root in roots)
    first = one.load_module("Services.names")
    (roots[1] / "Services" / "broken.py").write_text("1 / 0")
    with one.as_current_root():
        with pytest.raises(ZeroDivisionError):
            two.load_module("Services.broken")

        assert sys.modules["Services.names"] is first


def run_apart(root: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own: one that hangs must not hang the tests."""
    environment = {
        "PYTHONPATH": ":".join(path for path in sys.path if path),
        "PYTHONWARNINGS": "error",
    }
    return subprocess.run(
        [sys.executable, "-c", dedent(script), str(root)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=20,
    )


def test_threads_that_import_the_same_name_in_two_roots_neither_meet_nor_wait_for_each_other(
    write: Write, tmp_path: Path
) -> None:
    # A thread inside the import of one root holds Python's lock for the *name*; the other root
    # wants a module of the same name, and ours is the only lock between them.
    for root in ("one", "two"):
        write(
            {
                "Api/v1/Get.py": """
                    def lazy():
                        from Services.slow import name
                        return name
                """,
                "Services/slow.py": f"""
                    import gate
                    gate.enter()
                    from Services.inner import name
                    assert name == {root!r}
                """,
                "Services/inner.py": f"name = {root!r}",
            },
            root,
        )
    (tmp_path / "gate.py").write_text(
        "import contextlib, threading\nbarrier = threading.Barrier(2)\n\ndef enter():\n"
        "    with contextlib.suppress(threading.BrokenBarrierError):\n        barrier.wait(0.3)\n"
    )
    done = run_apart(
        tmp_path,
        """
        import os, sys, threading, time
        from pathlib import Path
        sys.path.append(sys.argv[1])
        from treefold_http._modules.modules import ModuleSpace
        found = {}
        modules = {}
        for name in ("one", "two"):
            root = (Path(sys.argv[1]) / name).resolve()
            space = ModuleSpace.get_or_create_space(root)
            modules[name], _ = space.import_file_once("Api", "v1/Get.py", ())
        threads = [
            threading.Thread(target=lambda n=n, m=m: found.update({n: m.lazy()}), daemon=True)
            for n, m in modules.items()
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 5
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
        print(sorted(found.items()), flush=True)
        os._exit(0)
        """,
    )

    assert done.stdout.strip() == "[('one', 'one'), ('two', 'two')]", done.stderr


def test_many_threads_importing_in_two_roots_each_get_their_own(
    write: Write, tmp_path: Path
) -> None:
    for root in ("one", "two"):
        lazy = """
            def lazy(n):
                place = dict(globals())
                exec(f"from Services.m{n} import name", place)
                return place["name"]
        """
        files = {"Api/v1/Get.py": lazy}
        files |= {
            f"Services/m{n}.py": f"from Services.base import name\nassert name == {root!r}"
            for n in range(30)
        }
        files["Services/base.py"] = f"name = {root!r}"
        write(files, root)
    done = run_apart(
        tmp_path,
        """
        import os, sys, threading, time
        from pathlib import Path
        from treefold_http._modules.modules import ModuleSpace
        sys.setswitchinterval(1e-5)
        modules = {}
        for name in ("one", "two"):
            root = (Path(sys.argv[1]) / name).resolve()
            space = ModuleSpace.get_or_create_space(root)
            modules[name], _ = space.import_file_once("Api", "v1/Get.py", ())
        wrong = []
        def work(name, module):
            for n in range(30):
                try:
                    found = module.lazy(n)
                    if found != name:
                        wrong.append((name, n, found))
                except BaseException as error:
                    wrong.append((name, n, repr(error)))
        threads = [
            threading.Thread(target=work, args=item, daemon=True)
            for item in [*modules.items(), *modules.items()]
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + 5
        for thread in threads:
            thread.join(max(0, end - time.monotonic()))
        print(wrong[:3], any(thread.is_alive() for thread in threads), flush=True)
        os._exit(0)
        """,
    )

    assert done.stdout.strip() == "[] False", done.stderr
