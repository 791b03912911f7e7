"""Pairs of models before and after a change, with the operations that lead from one to the other.

They are in `pairs_data/*.txt`, one after the other:

    # what changes
    ? --rename thing.a:b          the answers that the change needs
    @ postgres                    the databases that have it, without the line both
      n = fields.IntegerField()   a line of both sides
    - a = fields.TextField()      a line of the side before
    + b = fields.TextField()      a line of the side after
    = RenameField("thing", "a", "b")

The lines of a side are the body of one model, `Thing`, or a whole module of models. `PAIRS` is used
without a database here, and on both databases, with rows, by other tests.
"""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import treefold_orm
from treefold_migrations import SchemaState
from treefold_migrations._detect.answers import Answers
from treefold_migrations._detect.models import build_models_state
from treefold_orm import Model, registry

BOTH = ("sqlite", "postgres")
_numbers = itertools.count()
_CLASS = re.compile(r"(class \w+\(Model\):\n)")


@dataclass(frozen=True, slots=True)
class Pair:
    """One change.

    `operations` are their sources; `flags` are the answers that the change needs; `engines` are the
    databases that can hold both sides.
    """

    name: str
    before: str
    after: str
    operations: tuple[str, ...]
    flags: str = ""
    engines: tuple[str, ...] = BOTH

    def old(self) -> SchemaState:
        """The state before."""
        return state_of(self.before)

    def new(self) -> SchemaState:
        """The state after."""
        return state_of(self.after)

    def answers(self) -> Answers:
        """The answers to the questions of the change."""
        return answers_of(self.flags)


def answers_of(flags: str) -> Answers:
    """Return the answers of flags as on a command line, separated by spaces."""
    given: dict[str, list[str]] = {"rename": [], "drop": [], "fill": []}
    words = iter(flags.split())
    allow = False
    for word in words:
        if word == "--allow-destructive":
            allow = True
        else:
            given[word.removeprefix("--")].append(next(words))
    return Answers.from_flags(
        rename=given["rename"], drop=given["drop"], fill=given["fill"], allow_destructive=allow
    )


def module_of(body: str) -> str:
    """Return the source of a module of models."""
    if body.lstrip().startswith("class "):
        return body
    inner = "\n".join(f"    {line}" for line in body.split("\n") if line.strip()) or "    pass"
    return f"class Thing(Model):\n{inner}\n"


@functools.cache
def models_of(body: str) -> tuple[type[Model], ...]:
    """Define the models of a body in a module of their own; return them in order."""
    names: dict[str, Any] = {
        name: getattr(treefold_orm, name) for name in vars(treefold_orm)["__all__"]
    }
    names["__name__"] = space = f"pair_models_{next(_numbers)}"
    # models of other pairs have the same names: each body is a space of its own
    source = _CLASS.sub(rf"\1    _space = {space!r}\n", module_of(body))
    exec("import datetime as dt, decimal, enum, uuid\n" + source, names)
    registry.resolve_pending_targets()
    kinds = [kind for kind in names.values() if isinstance(kind, type)]
    return tuple(
        kind for kind in kinds if issubclass(kind, Model) and kind.__module__ == names["__name__"]
    )


def state_of(body: str) -> SchemaState:
    """Return the state of the models of a body, with the tables between them."""
    module = {model.__module__ for model in models_of(body)}
    return build_models_state([meta for meta in registry if meta.model.__module__ in module])


def read_pairs(text: str) -> list[Pair]:
    """Read the pairs of one file."""
    found: list[Pair] = []
    for part in text.split("\n# ")[1:]:
        name, *lines = part.split("\n")
        marked = [(line[:2], line[2:]) for line in lines if line.strip()]
        assert {mark for mark, _ in marked} <= {"? ", "@ ", "  ", "- ", "+ ", "= "}, name

        def lines_of(*marks: str, marked: list[tuple[str, str]] = marked) -> list[str]:
            return [line for mark, line in marked if mark in marks]

        engines = tuple(" ".join(lines_of("@ ")).split()) or BOTH
        found.append(
            Pair(
                name,
                "\n".join(lines_of("  ", "- ")),
                "\n".join(lines_of("  ", "+ ")),
                tuple(lines_of("= ")),
                " ".join(lines_of("? ")),
                engines,
            )
        )
    return found


PAIRS = [
    pair
    for file in sorted((Path(__file__).parent / "pairs_data").glob("*.txt"))
    for pair in read_pairs(file.read_text(encoding="utf-8"))
]
