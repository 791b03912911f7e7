"""Imports of the own version become relative; every other byte stays."""

import pytest

from treefold_scaffold._relative_imports import make_imports_relative

FOLDERS = ("User", "[id]")


def rewrite(source: str, folders: tuple[str, ...] = FOLDERS) -> tuple[str, tuple[int, ...]]:
    content, _, left = make_imports_relative(source.encode(), "v1", folders)
    return content.decode(), left


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("from Api.v1.User.Services.names import a, b", "from ..Services.names import a, b"),
        ("from Api.v1.User.Services import names", "from ..Services import names"),
        ("from Api.v1.User import names", "from .. import names"),
        (
            "from Api.v1.Book.names import (\n    a,  # one\n)",
            "from ...Book.names import (\n    a,  # one\n)",
        ),
        ("from Api.v1 import Book", "from ... import Book"),
        ("from Api.v1.User.Services.names import *", "from ..Services.names import *"),
        ("from Api . v1 . User import names", "from .. import names"),
        ("from ....v1.Book import x", "from ...Book import x"),
        ("import Api.v1.User.Services.names as n", "from ..Services import names as n"),
        ("import Api.v1.Book as b", "from ... import Book as b"),
        (
            "from importlib import import_module\nimport_module('Api.v1.Book.[no].Get')",
            "from importlib import import_module\nimport_module('...Book.[no].Get', __package__)",
        ),
        (
            "import importlib as i\ni.import_module(f'Api.v1.{n}.x',)",
            "import importlib as i\ni.import_module(f'...{n}.x', __package__,)",
        ),
        (
            "import importlib\nimportlib.import_module('Api.v1.' + n)",
            "import importlib\nimportlib.import_module('...' + n, __package__)",
        ),
        (
            "import importlib\nimportlib.import_module(name='Api.v1')",
            "import importlib\nimportlib.import_module(name='...', package=__package__)",
        ),
        (
            "def handler():\n    from Api.v1.User.names import x\n\treturn".replace(
                "\treturn", "    return x"
            ),
            "def handler():\n    from ..names import x\n    return x",
        ),
    ],
)
def test_an_import_becomes_relative(before: str, after: str) -> None:
    assert rewrite(before) == (after, ())


@pytest.mark.parametrize(
    "source",
    [
        "from Api.v2.User import x",
        "from Api.v10.User import x",
        "from .names import x",
        "from Services.names import x",
        "text = 'Api.v1.User'  # Api.v1",
        "import importlib\nimportlib.import_module('Services.names')",
    ],
)
def test_other_imports_stay(source: str) -> None:
    assert rewrite(source) == (source, ())


@pytest.mark.parametrize(
    "source",
    [
        "import Api.v1.User.names",
        "import Api.v1",
        "from Api import v1",
        "import Api\nprint(Api.v1.User)",
        "import Api\ndef f(x: 'Api.v1.User.X'): ...",
        "__import__('Api.v1.User')",
        "import importlib\nimportlib.import_module('.x', 'Api.v1.User')",
        "import json, Api.v1.User.names as n",
    ],
)
def test_what_has_no_relative_form_is_left_with_its_line(source: str) -> None:
    content, left = rewrite(source)
    assert content == source
    assert left == (max(n for n, line in enumerate(source.split("\n"), 1) if "v1" in line),)


def test_a_file_of_the_version_folder_itself_has_one_dot() -> None:
    assert rewrite("from Api.v1.Book.names import x", ()) == ("from .Book.names import x", ())
    assert rewrite("from Api.v1 import Book", ()) == ("from . import Book", ())
    text = "import importlib\nimportlib.import_module('Api.v1.Book')"
    assert rewrite(text, ())[0].endswith("import_module('.Book', __package__)")


def test_encoding_line_ends_and_layout_stay() -> None:
    source = (
        "\ufeff# -*- coding: utf-8 -*-\r\n\r\n"
        "from Api.v1.User.Services.names import \\\r\n\tx  # \u00e9\r\n"
    )
    content, places, left = make_imports_relative(source.encode(), "v1", FOLDERS)
    assert content == source.replace("Api.v1.User.Services", "..Services").encode()
    assert (places, left) == (1, ())
    latin = "# coding: latin-1\nfrom Api.v1.User import x  # \u00e9\n".encode("latin-1")
    assert make_imports_relative(latin, "v1", FOLDERS)[0] == latin.replace(b"Api.v1.User", b"..")
