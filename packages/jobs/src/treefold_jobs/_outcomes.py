"""The record of a failed job: text that PostgreSQL can keep, whatever the job has raised.

PgQueuer writes the outcomes of several jobs with one statement, so one text that the database
refuses would keep those of the neighbours out too. `add_traceback_note` is the one way to the
record:

    ValueError("a\\x00b")  ->  JobFailed("ValueError: a\\\\x00b") with the traceback as a note
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from typing import TypeVar, cast

E = TypeVar("E", bound=BaseException)
LONGEST_MESSAGE = 2_000
"""Characters of a message: `treefold jobs list` shows it in one line, and it may quote any text."""
LONGEST_TRACEBACK = 20_000
"""Characters of a traceback: some 200 lines, with a bound for an error of endless recursion."""
MOST_EXCEPTIONS = 1_000
"""Exceptions of a chain and its groups that a traceback shows all."""
SHOWN_OF_LONG_CHAIN = 10
"""Links that it shows of a longer chain: those that were raised last."""


class LongChainError(Exception):
    """Stands for an exception with too many others behind it to show them all."""


def escape_unstorable_and_truncate(text: str, limit: int | None = None) -> str:
    """Return a text with escapes for what no database and no terminal takes: NUL, surrogates."""
    cleaned = text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()
    # cut behind the escapes, of which one stands for up to six characters
    if limit is not None and len(cleaned) > limit:
        return f"{cleaned[:limit]}... ({len(text)} characters)"
    return cleaned


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an exception, also of one whose `str()` raises."""
    try:
        message = str(error)
    except BaseException as failure:
        message = f"its str() raised {type(failure).__name__}"
    return escape_unstorable_and_truncate(f"{type(error).__name__}: {message}", LONGEST_MESSAGE)


def without_long_chain(error: BaseException) -> BaseException:
    """Return an exception whose traceback is formatted in a short time: itself, or a stand-in.

    An exception that Python raises while another one is handled walks the chain of that one, and
    formatting raises some for each link: 100,000 links would block a worker for many minutes.
    """
    try:
        return _build_stand_in(error) if _has_long_chain(error) else error
    except Exception:  # of an attribute that is no plain one, which formatting bears
        return error


def _has_long_chain(error: BaseException) -> bool:
    seen: dict[int, BaseException] = {}
    waiting = [error]
    while waiting and len(seen) <= MOST_EXCEPTIONS:
        link = waiting.pop()
        if id(link) in seen:
            continue
        seen[id(link)] = link
        waiting += [one for one in (link.__cause__, link.__context__) if one is not None]
        if isinstance(link, BaseExceptionGroup):
            waiting += cast("Sequence[BaseException]", link.exceptions)
    return len(seen) > MOST_EXCEPTIONS


def _build_stand_in(error: BaseException) -> LongChainError:
    shown = [error]
    while len(shown) < SHOWN_OF_LONG_CHAIN:
        link = shown[-1]
        context = None if link.__suppress_context__ else link.__context__
        behind = link.__cause__ if link.__cause__ is not None else context
        if behind is None:
            break
        shown.append(behind)
    made = LongChainError(f"more than {MOST_EXCEPTIONS} exceptions, of which the last are shown")
    for link in reversed(shown):
        above = LongChainError(describe_error(link)).with_traceback(link.__traceback__)
        above.__cause__, made = made, above
    return made


def add_traceback_note(target: E, cause: BaseException | None) -> E:
    """Return an exception with the traceback of its cause as a note, to be raised `from None`.

    PgQueuer formats the chain of causes, which holds whatever the job has raised.
    """
    if cause is not None:
        try:
            text = "".join(traceback.format_exception(without_long_chain(cause)))
        except Exception as failure:
            text = f"The traceback cannot be shown: formatting it raised {type(failure).__name__}"
        target.add_note(_cut_middle(escape_unstorable_and_truncate(text), LONGEST_TRACEBACK))
    return target


def _cut_middle(text: str, limit: int) -> str:
    # calls come first and the error last: a long message must not push out the line that raised it
    half = limit // 2
    return text if len(text) <= limit else f"{text[:half]}\n...\n{text[-half:]}"
