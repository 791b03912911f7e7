"""Ends of jobs that are hard to record: texts that no database takes, exceptions that break."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, NoReturn

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


# -- ends that are long ---------------------------------------------------------------------------

CHAINED = 100_000
FIVE_MEGABYTES = 5_000_000


def raise_error(error: BaseException) -> NoReturn:
    raise error


def raise_chained(link: str) -> NoReturn:
    """Raise an exception with a chain of others behind it, by `__cause__` or `__context__`."""
    error = ValueError("the first of the chain")
    for number in range(CHAINED):
        above = ValueError(f"link {number}")
        setattr(above, link, error)
        error = above
    raise error


def raise_nested_groups() -> NoReturn:
    error: Exception = ValueError("the innermost")
    for _ in range(2_000):
        members: list[Exception] = [error]
        error = ExceptionGroup("g", members)
    raise error


def raise_noted() -> NoReturn:
    error = ValueError("noted")
    error.add_note("n" * FIVE_MEGABYTES)
    raise error


def descend(depth: int) -> int:
    return descend_further(depth + 1)


def descend_further(depth: int) -> int:  # two functions: lines of one alone are shown once
    return descend(depth + 1)


LONG_FAILURES: dict[str, Callable[[], Any]] = {
    "message": lambda: raise_error(ValueError("m" * FIVE_MEGABYTES)),
    "message of surrogates": lambda: raise_error(ValueError("\udcff" * FIVE_MEGABYTES)),
    "key": lambda: raise_error(KeyError("\0" * FIVE_MEGABYTES)),
    "lines": lambda: raise_error(SystemExit("\r\n" * (FIVE_MEGABYTES // 2))),
    "name": lambda: raise_error(type("E" * FIVE_MEGABYTES, (Exception,), {})()),
    "note": raise_noted,
    "str": lambda: raise_error(UnreadableError("s" * FIVE_MEGABYTES)),
    "causes": lambda: raise_chained("__cause__"),
    "contexts": lambda: raise_chained("__context__"),
    "recursion": lambda: descend(0),
    "group": lambda: raise_error(ExceptionGroup("g", [OSError(n) for n in range(CHAINED)])),
    "nested groups": raise_nested_groups,
}
LONG_RESULTS: dict[str, Callable[[], Any]] = {
    "text": lambda: "r" * 50_000_000,
    "bytes": lambda: bytes(50_000_000),
    "rows": lambda: [{"id": number} for number in range(300_000)],
}
