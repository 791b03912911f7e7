"""Files that name their own version: found by line, and nothing else is."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from treefold_http._modules.version_imports import find_version_import


def find(source: str, version: str = "v1") -> int | None:
    text = dedent(source)
    code = compile(text, "Get.py", "exec")
    return find_version_import(code, text.encode, version, ["User", "[id]"])


@pytest.mark.parametrize(
    "source",
    [
        "import Api.v1.User.Services.names",
        "import Api.v1",
        "import Api.v1.User as u",
        "from Api.v1.User.Services import names",
        "from Api import v1",
        "from Api import tools, v1 as first",
        "from .... import v1",
        "from ....v1.User.Services import names",
        "import Api\nprint(Api.v1.User)",
        "from importlib import import_module\nimport_module('Api.v1.User')",
        "import importlib\nimportlib.import_module(name='Api.v1')",
        "import importlib\nn = 'x'\nimportlib.import_module(f'Api.v1.{n}')",
        "import importlib\nn = 'x'\nimportlib.import_module('Api.v1.' + n)",
        "import importlib\nn = 'x'\nimportlib.import_module('Api.v1.{}'.format(n))",
        "import importlib\nimportlib.import_module('.names', 'Api.v1.User')",
        "__import__('Api.v1.User')",
        "def handler(user: 'Api.v1.User.Services.names.User'): ...",
        "def handler() -> 'list[Api.v1.User.Out]': ...",
        "user: 'Api.v1.User.Out | None' = None",
        "def handler():\n    async def inner():\n        from Api.v1.User import x\n",
        "class A:\n    def f(self):\n        import Api.v1.User\n",
    ],
)
def test_a_file_that_names_its_version_is_found(source: str) -> None:
    wanted = next(n for n, line in enumerate(source.split("\n"), 1) if "v1" in line)
    assert find(source) == wanted


@pytest.mark.parametrize(
    "source",
    [
        "from .Services.names import x",
        "from ..Services import names",
        "from ... import Services",
        "import Services.names\nfrom Models.user import User",
        "from Api.v2.User import x",
        "from Api.v10.User import x",
        "from Api import v2",
        "import Api\nprint(Api.tools.v1)",
        "import Apis.v1",
        "from other import v1",
        "text = 'see Api.v1.User'\n",
        "'''Moved here from Api.v1.User.'''\n",
        "def f(kind: 'MyApi.v1'): ...",
        "import importlib\nn = 1\nimportlib.import_module(f'Api.v1{n}.x')",
        "from ..... import v1",
        "v1 = 3\nprint(v1)",
    ],
)
def test_a_file_that_does_not_is_not_found(source: str) -> None:
    assert find(source) is None


def test_most_files_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(ast, "parse", refuse)
    text = "from .Services.names import x\nfrom Models.user import User\nasync def handler(): ...\n"
    assert find_version_import(compile(text, "Get.py", "exec"), text.encode, "v1", []) is None
