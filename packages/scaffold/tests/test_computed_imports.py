"""Imports of computed names are found, whatever the importer is called."""

import ast

import pytest

from treefold_scaffold._computed_imports import find_computed_import_lines

HEAD = "import importlib as il, Api\nfrom importlib import import_module as load\n"


@pytest.mark.parametrize(
    "call",
    [
        'il.import_module(f"Api.{version}.User")',
        'load("Api." + version + ".User")',
        "load(name)",
        "load(name=name)",
        "__import__(name)",
        'load("Api.{}.User".format(version))',
        'load("Api")',
        "getattr(Api, version)",
        'load(".".join(["Api", version]))',
        'load(f"Api.v1{digits}.User")',
        'load("Api.v1" + digits)',
        'load("Api.v1{}.User".format(digits))',
        'load("Api.v1%s.User" % digits)',
        'load(f"Api.v1" f"{digits}.User")',
        'load("Api" + rest)',
        'load(f"Api{rest}")',
        'load("Api." + "v1")',
        'load("{}.v1.User".format(package))',
        'load("%s.v1.User" % package)',
        'getattr(Api, f"v{number}")',
        'getattr(Api, f"v1{digits}")',
        'getattr(Api, "v1" + digits)',
        'getattr(Api, "v{}".format(number))',
    ],
)
def test_a_computed_name_is_found_with_its_line(call: str):
    assert find_computed_import_lines(ast.parse(f"{HEAD}x = {call}\n")) == (3,)


@pytest.mark.parametrize(
    "call",
    [
        'load("Api.v1.User")',
        'load("Api.v1")',
        'load("Api.v1" + ".User")',
        'load("Api.v1" + f".{name}")',
        'load("Api.v1.%s" % name)',
        'load(f"Api.v1.{name}")',
        'load("Api.v1." + name)',
        'load("Api.v1.{}".format(name))',
        'load("Services.mail")',
        'load(f"Services.{name}")',
        'load("." + name, package=__package__)',
        'getattr(Api, "v1")',
        "getattr(other, name)",
        "other.import_module(name)",
        'load("Apiary")',
    ],
)
def test_a_name_that_is_written_out_or_outside_of_the_versions_is_not(call: str):
    assert find_computed_import_lines(ast.parse(f"{HEAD}x = {call}\n")) == ()


IMPORTS = {
    "import {}": "{}",
    "import {}.other": "{}",
    "import other, {}.other": "{}",
    "import {0}\nimport {0}.other": "{}",
    "import {0}.other\nimport {0}": "{}",
    "import {} as short": "short",
    "import {0}.other\nimport {0} as short": "short",
}


@pytest.mark.parametrize(("statement", "name"), IMPORTS.items())
def test_an_import_of_a_submodule_binds_its_package(statement: str, name: str):
    for module, call in (
        ("importlib", "{}.import_module(name)"),
        ("builtins", "{}.__import__(name)"),
        ("Api", "getattr({}, name)"),
    ):
        source = f"{statement.format(module)}\nx = {call.format(name.format(module))}\n"
        assert find_computed_import_lines(ast.parse(source)) == (source.count("\n"),), source


def test_a_submodule_with_a_name_of_its_own_is_not_its_package():
    source = "import Api.v1 as one\nx = getattr(one, name)\n"
    assert find_computed_import_lines(ast.parse(source)) == ()
