"""The list of uvicorn's undocumented names is what the sources use, and what uvicorn has.

An update of uvicorn may take names away. A test fails for each that is gone, with its use and the
versions on which it was checked.
"""

import ast
import asyncio
import importlib.metadata
import importlib.util
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import treefold_server
from treefold_server import ServerOptions
from treefold_server._uvicorn_names import CHECKED, UVICORN_NAMES, UvicornNames

SOURCES = Path(treefold_server.__file__).parent
MODULES = sorted({user for entry in UVICORN_NAMES for user in entry.users})
HAS_HTTPTOOLS = importlib.util.find_spec("httptools") is not None
INSTALLED = [each for each in UVICORN_NAMES if HAS_HTTPTOOLS or "httptools" not in each.owner]
"""Without httptools the classes of one parser cannot be imported."""


def load_owner(entry: UvicornNames) -> type:
    """Import the class of an entry, which must be there."""
    module, _, name = entry.owner.partition(":")
    owner = getattr(importlib.import_module(module), name, None)
    assert owner is not None, f"{entry.owner} is gone: {describe(entry)}"
    return owner


def describe(entry: UvicornNames) -> str:
    return f"uvicorn was checked on {' and '.join(CHECKED)}; needed because {entry.use}"


def list_own_names(owner: type) -> set[str]:
    """Return the methods and attributes that a class of uvicorn and its bases define."""
    bases = [base for base in inspect.getmro(owner) if base.__module__.startswith("uvicorn")]
    trees = [ast.parse(textwrap.dedent(inspect.getsource(base))) for base in bases]
    return {name for tree in trees for name in iterate_definitions(tree) if name[:2] != "__"}


def iterate_definitions(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Attribute(attr=name, ctx=ast.Store(), value=ast.Name(id="self")):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case _:
                pass


def list_used_names(module: str) -> set[str]:
    """Return what a module of this package reads of objects, and the methods that it defines."""
    tree = ast.parse((SOURCES / f"{module}.py").read_text(encoding="utf-8"))
    read = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return read | set(iterate_definitions(tree))


@pytest.mark.parametrize("entry", INSTALLED, ids=lambda entry: entry.owner)
def test_every_name_is_there(entry: UvicornNames) -> None:
    gone = sorted(set(entry.names) - list_own_names(load_owner(entry)))
    assert not gone, f"{entry.owner} has no {', '.join(gone)} any more: {describe(entry)}"


@pytest.mark.parametrize("entry", UVICORN_NAMES, ids=lambda entry: entry.owner)
def test_every_name_is_used_where_the_list_says(entry: UvicornNames) -> None:
    used = {user: list_used_names(user) for user in entry.users}
    assert set(entry.names) - set().union(*used.values()) == set()
    assert [user for user, names in used.items() if not names & set(entry.names)] == []


@pytest.mark.parametrize("module", MODULES)
def test_no_other_name_of_uvicorn_is_used(module: str) -> None:
    entries = [entry for entry in INSTALLED if module in entry.users]
    listed = {name for entry in entries for name in entry.names}
    documented = {each.name for each in fields(ServerOptions)} | set(dir(asyncio.Protocol))
    for entry in entries:
        owner = load_owner(entry)
        own = list_own_names(owner) - documented
        if entry.owner == "uvicorn:Config":  # the parameters are documented
            own -= set(inspect.signature(owner).parameters)
        assert own & list_used_names(module) <= listed, entry.owner


def test_no_other_module_imports_uvicorn() -> None:
    importers = {
        file.stem
        for file in SOURCES.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("uvicorn"))
        or (isinstance(node, ast.Import) and node.names[0].name.startswith("uvicorn"))
    }
    assert importers == set(MODULES)


def test_the_manifest_allows_the_checked_versions_and_no_later_one() -> None:
    required = importlib.metadata.requires("treefold-server") or []
    (allowed,) = [each.specifier for each in map(Requirement, required) if each.name == "uvicorn"]
    oldest, newest = map(Version, CHECKED)
    assert {f"{each}" for each in allowed} == {
        f">={oldest.major}.{oldest.minor}",
        f"<{newest.major}.{newest.minor + 1}",
    }
    assert Version(importlib.metadata.version("uvicorn")) in allowed


def test_a_name_that_is_gone_fails_with_its_use_and_the_checked_versions() -> None:
    entry = UvicornNames("uvicorn:Config", ("never_there",), (), "of this test")
    message = (
        "uvicorn:Config has no never_there any more: uvicorn was checked on .*; needed because"
    )
    with pytest.raises(AssertionError, match=message):
        test_every_name_is_there(entry)
