"""Ends of jobs that are hard to record: texts that no database takes, exceptions that break."""

from __future__ import annotations

import asyncio
import random
from typing import Any

PIECES = [
    *("\0", "\udcff", "\ud800", "\x1b[31m", "\r\n", "\u202e", "\N{PILE OF POO}", "'", '"', "{0}"),
    *("%s", "\\u0000", "$1", "\x7f\x80", "a" * 3000, "", "\ufffe"),
]


class UnreadableError(Exception):
    """An exception whose text cannot be asked for."""

    def __init__(self, reason: Any) -> None:
        super().__init__()
        self.reason = reason

    def __str__(self) -> str:
        if isinstance(self.reason, BaseException):
            raise self.reason
        return self.reason


def text_of(draw: random.Random) -> str:
    return "".join(draw.choices(PIECES, k=draw.randrange(1, 6)))


def exceptions_of(draw: random.Random) -> list[BaseException]:
    text = text_of(draw)
    syntax = SyntaxError(text, (text, 3, 10**9, text))
    noted = KeyError(text)
    noted.add_note(text)
    broken = ValueError(text)
    broken.__notes__ = draw.choice([[7, None], UnreadableError(OSError(text)), text])  # pyright: ignore[reportAttributeAccessIssue] - as no program should
    chained = OSError(text)
    chained.__cause__ = UnreadableError(ValueError(text))
    chained.__cause__.__context__ = chained
    decode = UnicodeDecodeError("utf-8", text.encode("utf-8", "surrogatepass"), 0, 1, text)
    return [
        ValueError(text),
        ValueError("x" * draw.randrange(10**6)),
        UnreadableError(ValueError(text)),
        UnreadableError(SystemExit(text)),
        UnreadableError(7),
        UnreadableError(None),
        UnreadableError(RecursionError()),
        syntax,
        noted,
        broken,
        chained,
        decode,
        BaseExceptionGroup(text, [ValueError(text), KeyboardInterrupt(text)]),
        ExceptionGroup("g", [ExceptionGroup(text, [UnreadableError(ValueError(text))])]),
        SystemExit(text),
        KeyboardInterrupt(),
        GeneratorExit(text),
        asyncio.CancelledError(text),
        StopIteration(text),
        StopAsyncIteration(text),
        MemoryError(),
        type("E" * 5000, (Exception,), {})(text),
    ]


RESULTS: list[Any] = [object(), "\udcff\0", float("nan"), {"\udcff": {1, 2}}, b"\xff", lambda: None]


def is_failure(number: int) -> bool:
    return random.Random(number).random() < 0.8


def end(number: int) -> Any:
    """Raise or return what the number stands for."""
    draw = random.Random(number)
    if draw.random() < 0.8:
        raise draw.choice(exceptions_of(draw))
    return draw.choice(RESULTS)
