"""Undocumented names of typer: each is there, and each is used.

An update of typer may take the names of the table away. A test fails for each name that is gone,
with its use and the versions on which it was checked.
"""

import importlib
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import treefold_cli

SOURCES = Path(treefold_cli.__file__).parent

CHECKED = "0.27.0 and 0.29.2"
"""Versions of typer on which every name was there."""


@dataclass(frozen=True, slots=True)
class PrivateNames:
    """Undocumented names of one class of another package.

    Attributes:
        owner: the class, as `module:name`.
        names: methods of the class, and attributes that its `__init__` sets.
        users: the modules of this package that use them.
        use: the reason.
    """

    owner: str
    names: tuple[str, ...]
    users: tuple[str, ...]
    use: str


PRIVATE_NAMES = (
    PrivateNames(
        "typer.core:TyperGroup",
        ("get_params", "list_commands", "get_command", "resolve_command"),
        ("_console.application",),
        "commands are imported when their name is typed",
    ),
    PrivateNames(
        "typer.core:TyperOption",
        ("process_value",),
        ("_console.application",),
        "text is passed on without the import of pydantic",
    ),
)


def names_set_by(owner: type) -> Iterator[str]:
    """Yield the methods of a class, and the attributes that its constructors set."""
    yield from dir(owner)
    for base in inspect.getmro(owner):
        for method in vars(base).values():
            if inspect.isfunction(method):
                yield from method.__code__.co_names
        yield from inspect.get_annotations(base)


@pytest.mark.parametrize("entry", PRIVATE_NAMES, ids=lambda entry: entry.owner)
def test_every_private_name_is_there(entry: PrivateNames) -> None:
    module, _, name = entry.owner.partition(":")
    remedy = f"typer was checked on {CHECKED}; needed because {entry.use}"
    owner = getattr(importlib.import_module(module), name, None)
    assert owner is not None, f"{entry.owner} is gone: {remedy}"
    gone = sorted(set(entry.names) - set(names_set_by(owner)))
    assert not gone, f"{entry.owner} has no {', '.join(gone)} any more: {remedy}"


@pytest.mark.parametrize("entry", PRIVATE_NAMES, ids=lambda entry: entry.owner)
def test_every_private_name_is_used_where_the_table_says(entry: PrivateNames) -> None:
    sources = [SOURCES.joinpath(*user.split(".")).with_suffix(".py") for user in entry.users]
    text = "\n".join(source.read_text() for source in sources)
    assert [name for name in entry.names if name not in text] == []


def test_a_name_that_is_gone_fails_with_its_use_and_the_checked_versions() -> None:
    entry = PrivateNames("typer.core:TyperGroup", ("never_there",), (), "of this test")
    message = (
        "typer.core:TyperGroup has no never_there any more: typer was checked on .*; needed because"
    )
    with pytest.raises(AssertionError, match=message):
        test_every_private_name_is_there(entry)
