"""Reads the text of types; the grammar is in `type_text`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

from treefold_contract._text.type_text import NUMBERS
from treefold_contract._types.nodes import (
    KINDS,
    AnyType,
    Choice,
    ChoiceValue,
    ForeignType,
    Limits,
    ListType,
    MapType,
    Reference,
    Scalar,
    TupleType,
    TypeNode,
    UnionType,
)

TOKEN = re.compile(
    r'\s*(?:("(?:[^"\\]|\\.)*")|(\.\.\.?)|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)'
    r"|(\$?[^\W\d][\w@.-]*)|(>=|<=|[][(){}|,:<>?=]))"
)
TEXT, DOTS, NUMBER, NAME, SIGN = 1, 2, 3, 4, 5
WORDS_AFTER_TYPES = frozenset(("alias", "unchecked", "lenient"))
"""Words of a line of facts that may stand after a type."""
SIGNS = {sign: attribute for attribute, sign in NUMBERS}
DEEPEST = 50
"""The deepest nesting that is read; a type of a handler is far from it."""


@lru_cache(maxsize=8192)
def read_type(text: str) -> TypeNode:
    """Return the type of a text.

    Raises:
        ValueError: the text is not a type.
    """
    node, rest = read_type_prefix(text)
    if rest:
        raise ValueError(f"Type must end after {text[: len(text) - len(rest)]!r}, got {text!r}")
    return node


def read_type_prefix(text: str) -> tuple[TypeNode, str]:
    """Return the type at the beginning of a text, and the text after it."""
    parser = _Parser(text)
    node = parser.read_union()
    return node, text[parser.position :].strip()


@dataclass
class _Parser:
    text: str
    position: int = 0
    depth: int = 0

    def peek(self) -> tuple[int, str]:
        """Return the kind and the text of the next token; 0 at the end."""
        found = TOKEN.match(self.text, self.position)
        if found is None or found.lastindex is None:
            return 0, ""
        return found.lastindex, found[found.lastindex]

    def take(self) -> tuple[int, str]:
        found = TOKEN.match(self.text, self.position)
        if found is None or found.lastindex is None:
            raise self.build_error("a type")
        self.position = found.end()
        return found.lastindex, found[found.lastindex]

    def take_if(self, *texts: str) -> str:
        """Take the next token if it is one of these texts; return it, or an empty text."""
        kind, text = self.peek()
        if kind in (DOTS, NAME, SIGN) and text in texts:
            self.take()
            return text
        return ""

    def expect(self, sign: str) -> None:
        if not self.take_if(sign):
            raise self.build_error(repr(sign))

    def build_error(self, expected: str) -> ValueError:
        rest = self.text[self.position :].strip()
        return ValueError(f"Type must have {expected} before {rest!r}, got {self.text!r}")

    def read_union(self) -> TypeNode:
        self.depth += 1
        if self.depth > DEEPEST:
            raise ValueError(f"Type must be nested at most {DEEPEST} deep, got {self.text[:40]!r}")
        options: list[TypeNode] = [self.read_option()]
        is_open = False
        while self.take_if("|"):
            if not self.take_if("..."):
                option = self.read_option()
                last = options[-1]
                if isinstance(option, Choice) and isinstance(last, Choice) and not last.is_open:
                    options[-1] = replace(last, values=last.values + option.values)
                else:
                    options.append(option)
            elif isinstance(last := options[-1], Choice) and not last.is_open:
                options[-1] = replace(last, is_open=True)
            else:
                is_open = True
        tag = self.read_key() if self.take_if("tag") else ""
        self.depth -= 1
        if len(options) == 1 and not is_open and not tag:
            return options[0]
        return UnionType(tuple(options), is_open, tag)

    def read_key(self) -> str:
        kind, text = self.take()
        return str(json.loads(text)) if kind == TEXT else text

    def read_option(self) -> TypeNode:
        kind, text = self.take()
        if kind in (TEXT, NUMBER) or text in ("true", "false"):
            return self.read_choice(text)
        if kind == NAME:
            return self.read_named(text)
        match text:
            case "[":
                return self.read_list()
            case "(":
                return self.read_tuple()
            case "{":
                key = self.read_union()
                self.expect(":")
                node = MapType(key, self.read_union())
                self.expect("}")
                return node
            case _:
                raise ValueError(f"Type must not begin with {text!r}, got {self.text!r}")

    def read_choice(self, literal: str) -> Choice:
        json.loads(literal)
        name = ""
        if self.take_if("("):
            name = self.take()[1]
            self.expect(")")
        return Choice((ChoiceValue(literal, name),))

    def read_list(self) -> ListType:
        item = self.read_union()
        self.expect("]")
        least, most = self.read_range() if self.take_if("items") else (None, None)
        return ListType(item, least, most, bool(self.take_if("unique")))

    def read_tuple(self) -> TupleType:
        items: list[TypeNode] = []
        while not self.take_if(")"):
            items.append(self.read_union())
            if not self.take_if(","):
                self.expect(")")
                break
        return TupleType(tuple(items))

    def read_named(self, word: str) -> TypeNode:
        if word == "any":
            return AnyType()
        if word == "foreign":
            return ForeignType(self.read_key())
        if word in KINDS:
            return self.read_scalar(Scalar(next(kind for kind in KINDS if kind == word)))
        if word[0].islower():
            raise ValueError(f"Type must be of a known kind, got {word!r} in {self.text!r}")
        return Reference(word.removeprefix("$"))

    def read_scalar(self, node: Scalar) -> Scalar:
        limits: dict[str, int | float | str | None] = {}
        while True:
            kind, text = self.peek()
            if text in SIGNS:
                self.take()
                limits[SIGNS[text]] = self.read_number()
            elif kind != NAME or text in WORDS_AFTER_TYPES or text == "tag":
                break
            elif self.take_if("lax"):
                node = replace(node, is_lax=True)
            elif self.take_if("len"):
                limits["min_length"], limits["max_length"] = self.read_range()
            elif self.take_if("match"):
                limits["pattern"] = self.read_key()
            else:
                node = replace(node, format=self.take()[1])
        if not limits:
            return node
        return replace(node, limits=Limits(**cast("dict[str, Any]", limits)))

    def read_number(self) -> int | float:
        kind, text = self.take()
        if kind != NUMBER:
            raise ValueError(f"Limit must be a number, got {text!r} in {self.text!r}")
        return float(text) if set(text) & set(".eE") else int(text)

    def read_range(self) -> tuple[int | None, int | None]:
        least = int(self.take()[1]) if self.peek()[0] == NUMBER else None
        self.expect("..")
        return least, int(self.take()[1]) if self.peek()[0] == NUMBER else None
