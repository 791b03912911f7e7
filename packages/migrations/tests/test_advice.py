"""Messages advise commands and flags of the command line, never a call of Python.

Operations and their arguments are the language of the files, which a message may ask for. The texts
are read from the source, so that a message which no other test reaches is tested as well.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import treefold_migrations
from treefold_migrations import Limits, Operation, Runner
from treefold_migrations._run import runner

SOURCE = Path(treefold_migrations.__file__).parent
FOR_ASYNC_CODE = "await aapplied()"
"""Completes the error of a blocking call inside of an event loop, where no command runs."""
NO_COMMANDS = {"after", "replaces"}
"""Names in backticks that are no command: arguments of `Migration`."""


def list_texts() -> Iterator[tuple[str, str]]:
    """Yield the place and the words of each text that is no docstring; values are `{}`."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        apart = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                apart |= {id(part) for part in ast.walk(node)} - {id(node)}
        for node in ast.walk(tree):
            if id(node) in apart:
                continue
            place = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                if not node.value.isidentifier():
                    yield place, node.value
            elif isinstance(node, ast.JoinedStr):
                words = (p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
                yield place, "".join(map(str, words))


TEXTS = list(list_texts())


def list_parameters(function: Callable[..., Any]) -> set[str]:
    return set(inspect.signature(function).parameters) - {"self", "args", "kwargs"}


def build_python_call() -> re.Pattern[str]:
    """Return the pattern of a call of the package's functions, or of one of their arguments."""
    exported: list[str] = vars(treefold_migrations)["__all__"]
    public = [getattr(treefold_migrations, name) for name in exported]
    operations = [o for o in public if isinstance(o, type) and issubclass(o, Operation)]
    functions = [f for f in public if inspect.isfunction(f)]
    methods = [m for name, m in inspect.getmembers(Runner, inspect.isfunction) if name[0] != "_"]
    called = [*functions, *methods, Runner, Limits]
    names = "|".join(sorted({function.__name__ for function in called}))
    arguments = set[str]().union(*map(list_parameters, called))
    arguments -= set[str]().union(*map(list_parameters, operations))
    assert {"interrupted", "allow_destructive", "plan"} <= arguments
    keywords = "|".join(sorted(arguments | {"force"}))
    return re.compile(rf"\b(?:{names})\(|\b(?:{keywords})=|\bawait \w+\(|\bRunner\b")


def test_no_message_advises_a_call_of_python() -> None:
    pattern = build_python_call()
    examples = ("run migrate()", "give interrupted='again'", "use await amigrate()", "force=True")
    assert all(map(pattern.search, examples))
    language = ("SetOptions('a', as_found=[])", "fill= in AddField(", "null=True", "using=")
    assert not any(map(pattern.search, language))
    found = [(p, text) for p, text in TEXTS if pattern.search(text) and text != FOR_ASYNC_CODE]
    assert found == []


def test_the_one_call_of_python_is_advised_inside_of_an_event_loop() -> None:
    (place,) = [place for place, text in TEXTS if text == FOR_ASYNC_CODE]
    assert place.startswith("_run/runner.py")
    assert "_read_records(), " in inspect.getsource(runner.Runner.applied)


def test_commands_and_flags_that_messages_name_exist() -> None:
    commands = {
        entry.name: {f"--{name.replace('_', '-')}" for name in list_parameters(entry.load())}
        for entry in entry_points(group="treefold.commands")
        if entry.value.startswith("treefold_migrations.")
    }
    assert {"migrate", "rollback", "makemigrations", "migrations drift"} <= commands.keys()
    every = set[str]().union(*commands.values())
    wrong: list[tuple[str, str]] = []
    named = 0
    for place, text in TEXTS:
        wrong += [
            (place, flag) for flag in re.findall(r"--[a-z][a-z-]*", text) if flag not in every
        ]
        # a text may close the backtick of another one, which a letter does not follow
        for shown in re.findall(r"`(?:treefold )?([a-z][^`]*)|'treefold ([^']*)'", text):
            words = "".join(shown)
            known = [name for name in commands if f"{words} ".startswith(f"{name} ")]
            if not known:
                wrong += [(place, words)] if words not in NO_COMMANDS else []
                continue
            named += 1
            flags = re.findall(r"--[a-z][a-z-]*", words)
            wrong += [(place, words) for f in flags if f not in commands[max(known, key=len)]]
    assert wrong == []
    assert named > 30
