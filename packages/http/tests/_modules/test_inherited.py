"""Modules of versions that inherit: their own state, one code, and refusals with a way out."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError
from treefold_http._modules.modules import ModuleSpace

if TYPE_CHECKING:
    from conftest import Answer

Ask = Callable[..., "Answer"]
Project = Callable[..., Application]
Write = Callable[..., Path]

COUNT = "n = [0]\ndef hit():\n    n[0] += 1\n    return n[0]\n"
GET = "from .Services.count import hit\ndef handler():\n    return [__name__, hit()]\n"
V2 = 'inherits = "v1"'
BASE = {
    "Api/v1/User/Get.py": GET,
    "Api/v1/User/Services/count.py": COUNT,
    "Api/v2/version.toml": V2,
}


def get(app: Application, ask: Ask, path: str) -> Any:
    answer = ask(app, "GET", path)
    assert answer.status == 200, answer.body
    return answer.json()


def broken(app: Application) -> dict[str, str]:
    return {one.place: one.error for one in app.report.broken}


def test_an_inherited_handler_runs_as_a_module_of_its_version(project: Project, ask: Ask) -> None:
    app = project(BASE)
    app.boot()
    assert get(app, ask, "/v1/user") == ["Api.v1.User.Get", 1]
    assert get(app, ask, "/v1/user") == ["Api.v1.User.Get", 2]
    assert get(app, ask, "/v2/user") == ["Api.v2.User.Get", 1]
    with ModuleSpace.get_or_create_space(app.root).as_current_root():
        first, second = sys.modules["Api.v1.User.Get"], sys.modules["Api.v2.User.Get"]
        assert importlib.import_module("Api.v2.User.Get") is second
        assert importlib.import_module("Api.v2.User.Services.count") is not importlib.import_module(
            "Api.v1.User.Services.count"
        )
    assert second.__file__ == first.__file__ == str(app.root / "Api/v1/User/Get.py")
    assert second.handler is not first.handler
    assert second.handler.__code__ is first.handler.__code__


def test_an_own_service_is_used_by_an_inherited_handler(project: Project, ask: Ask) -> None:
    app = project({**BASE, "Api/v2/User/Services/count.py": "def hit(): return 'own'\n"})
    assert get(app, ask, "/v2/user") == ["Api.v2.User.Get", "own"]
    assert get(app, ask, "/v1/user") == ["Api.v1.User.Get", 1]


def test_three_layers_meet_in_one_module(project: Project, ask: Ask) -> None:
    source = "from .names import a\nfrom .prices import b\ndef handler(): return [a, b]\n"
    app = project(
        {
            "Api/v1/X/Get.py": source,
            "Api/v1/X/names.py": "a = 1\n",
            "Api/v1/X/prices.py": "b = 1\n",
            "Api/v2/X/prices.py": "b = 2\n",
            "Api/v2/version.toml": V2,
            "Api/v3/X/names.py": "a = 3\n",
            "Api/v3/version.toml": 'inherits = "v2"',
        }
    )
    assert [get(app, ask, f"/v{n}/x") for n in (1, 2, 3)] == [[1, 1], [1, 2], [3, 2]]


def test_packages_are_those_of_a_copy(project: Project, ask: Ask) -> None:
    source = "from . import MARK, __path__ as p\ndef handler(): return [MARK, len(p)]\n"
    app = project(
        {
            "Api/v1/X/__init__.py": "MARK = 1\n",
            "Api/v1/X/Get.py": source,
            "Api/v2/X/Put.py": source,
            "Api/v2/version.toml": V2,
            "Api/v3/X/__init__.py": "MARK = 3\n",
            "Api/v3/version.toml": 'inherits = "v2"',
        }
    )
    assert get(app, ask, "/v2/x") == [1, 2]
    assert get(app, ask, "/v3/x") == [3, 3]


def test_a_module_with_a_mark_is_missing(project: Project, ask: Ask) -> None:
    source = (
        "try:\n    from .names import a\nexcept ModuleNotFoundError as error:\n    a = error.name\n"
        "def handler(): return a\n"
    )
    app = project(
        {
            "Api/v1/X/Get.py": source,
            "Api/v1/X/names.py": "a = 'there'\n",
            "Api/v1/X/Deep/Get.py": "def handler(): ...\n",
            "Api/v2/X/names.gone": "",
            "Api/v2/X/other.py": "",
            "Api/v2/version.toml": V2,
        }
    )
    assert ask(app, "GET", "/v1/x").body == b"there"
    assert ask(app, "GET", "/v2/x").body == b"Api.v2.X.names"
    with ModuleSpace.get_or_create_space(app.root).as_current_root():
        assert importlib.util.find_spec("Api.v2.X.nothing") is None


def test_a_package_lists_the_modules_of_its_bases(project: Project, ask: Ask) -> None:
    source = (
        "import pkgutil\nfrom . import Services\n"
        "def handler(): return sorted(m.name for m in pkgutil.iter_modules(Services.__path__))\n"
    )
    app = project(
        {
            "Api/v1/X/Get.py": source,
            "Api/v1/X/Services/a.py": "",
            "Api/v2/X/Services/b.py": "",
            "Api/v2/version.toml": V2,
        }
    )
    assert get(app, ask, "/v2/x") == ["a", "b"]
    assert get(app, ask, "/v1/x") == ["a"]


def test_an_inherited_service_is_importable_before_a_boot(write: Write) -> None:
    root = write(BASE)
    module = ModuleSpace.get_or_create_space(root).load_module("Api.v2.User.Services.count")
    assert module.hit() == 1
    assert module.__name__ == "Api.v2.User.Services.count"


def test_an_invalid_version_file_is_an_import_error_before_a_boot(write: Write) -> None:
    root = write({**BASE, "Api/v2/version.toml": "inherit = 1"})
    with pytest.raises(ImportError, match=r"Unknown key 'inherit' in Api/v2/version\.toml"):
        ModuleSpace.get_or_create_space(root).load_module("Api.v2.User.Services.count")


def test_init_runs_once_for_each_version(project: Project, ask: Ask) -> None:
    source = "n = []\ndef init(): n.append(__name__)\ndef handler(): return n\n"
    app = project({"Api/v1/X/Get.py": source, "Api/v2/version.toml": V2})
    assert get(app, ask, "/v1/x") == ["Api.v1.X.Get"]
    assert get(app, ask, "/v2/x") == ["Api.v2.X.Get"]


def test_a_file_that_names_its_version_is_broken_where_it_is_inherited(
    project: Project, ask: Ask
) -> None:
    source = (
        "import json\nfrom Api.v1.User.Services.count import hit\ndef handler(): return [hit()]\n"
    )
    app = project({**BASE, "Api/v1/User/Get.py": source})
    assert get(app, ask, "/v1/user") == [1]
    assert ask(app, "GET", "/v2/user").status == 500
    assert broken(app) == {
        "v2/User/Get.py": (
            "NotInheritableError: Api/v1/User/Get.py, line 2, names its version, so v2 cannot"
            " inherit it: it would use the modules of v1; run 'treefold version relative 1', or"
            " give v2 a file of its own"
        )
    }
    (one,) = app.report.broken
    assert (one.file, one.cause) == ("v1/User/Get.py", "Api/v1/User/Get.py")


def test_a_service_that_names_its_version_breaks_the_handlers_that_use_it(
    project: Project, ask: Ask
) -> None:
    count = "import Api.v1.User.Services.other as other\ndef hit(): return other.n\n"
    app = project(
        {
            **BASE,
            "Api/v1/User/Services/count.py": count,
            "Api/v1/User/Services/other.py": "n = 1\n",
        }
    )
    assert get(app, ask, "/v1/user")[1] == 1
    assert ask(app, "GET", "/v2/user").status == 500
    assert (
        "Api/v1/User/Services/count.py, line 1, names its version" in broken(app)["v2/User/Get.py"]
    )


def test_an_own_file_may_name_the_base(project: Project, ask: Ask) -> None:
    own = "from Api.v1.User.Services.count import hit\ndef handler(): return ['own', hit()]\n"
    app = project({**BASE, "Api/v2/User/Get.py": own, "Api/v3/version.toml": 'inherits = "v2"'})
    assert get(app, ask, "/v2/user") == ["own", 1]
    assert get(app, ask, "/v3/user") == ["own", 2]


EVENTS = "created = []\nnamed = {}\ndef on(f):\n    created.append(f)\n    return f\n"


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("from Services.events import on\n@on\ndef send(): ...", "Services.events"),
        (
            "from Services import events\ndef send(): ...\nevents.created.append(('a', send))",
            "Services.events",
        ),
        (
            "from Services.events import named\nclass Sender: ...\nnamed['a'] = Sender()",
            "Services.events",
        ),
        ("from hooks import on_startup\ndef send(): ...\non_startup.append(send)", "hooks"),
    ],
)
def test_a_file_that_registers_something_is_broken_and_leaves_nothing(
    project: Project, ask: Ask, lines: str, place: str
) -> None:
    app = project(
        {
            **BASE,
            "Services/events.py": EVENTS,
            "hooks.py": "on_startup = []\non_shutdown = []\n",
            "Api/v1/X/Get.py": f"{lines}\ndef handler(): ...\n",
            "Api/v1/Y/Get.py": (
                "from Services import events\nimport hooks\ndef handler():\n"
                "    count = len(events.created) + len(events.named) + len(hooks.on_startup)\n"
                "    return [count, *(type(one).__module__ for one in events.named.values())]\n"
            ),
        }
    )
    assert ask(app, "GET", "/v1/x").status == 204
    assert ask(app, "GET", "/v2/x").status == 500
    assert broken(app) == {
        "v2/X/Get.py": (
            f"NotInheritableError: Api/v1/X/Get.py enters something into {place}, which all"
            " versions share, so v2 cannot inherit it; do that in hooks.py or in the Services/ of"
            " the project"
        )
    }
    assert get(app, ask, "/v1/y")[0] == 1
    assert get(app, ask, "/v1/y")[1:] in ([], ["Api.v1.X.Get"])


def test_a_cache_by_module_name_is_no_registration(project: Project, ask: Ask) -> None:
    app = project(
        {
            "Services/log.py": (
                "class Log: ...\nlogs = {}\ndef log(n): return logs.setdefault(n, Log())\n"
            ),
            "Api/v1/X/Get.py": (
                "from Services import log\nmine = log.log(__name__)\n"
                "def handler(): return sorted(log.logs)\n"
            ),
            "Api/v2/version.toml": V2,
        }
    )
    assert get(app, ask, "/v2/x") == ["Api.v1.X.Get", "Api.v2.X.Get"]


def test_a_function_for_the_end_of_the_process_breaks_a_file(project: Project, ask: Ask) -> None:
    source = "import atexit\natexit.register(print)\ndef handler(): ...\n"
    app = project({**BASE, "Api/v1/X/Get.py": source})
    app.boot()
    assert broken(app) == {
        "v2/X/Get.py": (
            "NotInheritableError: Api/v1/X/Get.py registers a function of atexit, for the whole"
            " process, so v2 cannot inherit it; do that in hooks.py"
        )
    }


def test_a_base_that_fails_is_reported_for_each_version(project: Project, lines: Any) -> None:
    app = project({**BASE, "Api/v1/User/Services/count.py": "1 / 0\n"})
    app.boot()
    assert broken(app) == {
        "v1/User/Get.py": "ZeroDivisionError: division by zero",
        "v2/User/Get.py": "ZeroDivisionError: division by zero",
    }
    texts = [text for text in lines.texts() if "failed to load" in text]
    assert len(texts) == 1, texts


def test_a_base_that_is_not_served_is_still_a_base(project: Project, ask: Ask) -> None:
    app = project({**BASE, "Api/v1/version.toml": "serve = false"}, default_version="latest")
    assert ask(app, "GET", "/v1/user").status == 404
    assert get(app, ask, "/user") == ["Api.v2.User.Get", 1]
    assert app.table.versions == ("v2",)


def test_an_invalid_version_file_stops_the_boot(project: Project) -> None:
    with pytest.raises(BootError, match=r"'inherits' in Api/v2/version\.toml must name"):
        project({**BASE, "Api/v2/version.toml": 'inherits = "v7"'}).boot()
