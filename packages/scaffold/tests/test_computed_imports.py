"""Imports of computed names are found, whatever the importer is called."""

import ast

import pytest

from treefold_scaffold._computed_imports import find_computed_imports

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
    ],
)
def test_a_computed_name_is_found_with_its_line(call: str):
    assert find_computed_imports(ast.parse(f"{HEAD}x = {call}\n")) == (3,)


@pytest.mark.parametrize(
    "call",
    [
        'load("Api.v1.User")',
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
    assert find_computed_imports(ast.parse(f"{HEAD}x = {call}\n")) == ()
