"""The record of a failed job: text that PostgreSQL can keep, whatever the job has raised.

PgQueuer writes the outcomes of several jobs with one statement, so one text that the database
refuses would keep those of the neighbours out too. `add_traceback_note` is the one way to the
record:

    ValueError("a\\x00b")  ->  JobFailed("ValueError: a\\\\x00b") with the traceback as a note
"""

from __future__ import annotations

import traceback
from typing import TypeVar

E = TypeVar("E", bound=BaseException)
LONGEST_MESSAGE = 2_000
"""Characters of a message: `treefold jobs list` shows it in one line, and it may quote any text."""
LONGEST_TRACEBACK = 20_000
"""Characters of a traceback: some 200 lines, with a bound for an error of endless recursion."""


def clean_text(text: str, limit: int | None = None) -> str:
    """Return a text with escapes for what no database and no terminal takes: NUL, surrogates."""
    if limit is not None and len(text) > limit:
        text = f"{text[:limit]}... ({len(text)} characters)"
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def describe_error(error: BaseException) -> str:
    """Return the type and the message of an exception, also of one whose `str()` raises."""
    try:
        message = str(error)
    except BaseException as failure:
        message = f"its str() raised {type(failure).__name__}"
    return clean_text(f"{type(error).__name__}: {message}", LONGEST_MESSAGE)


def add_traceback_note(made: E, error: BaseException | None) -> E:
    """Return an exception with the traceback of its cause as a note, to be raised `from None`.

    PgQueuer formats the chain of causes, which holds whatever the job has raised.
    """
    if error is not None:
        try:
            text = "".join(traceback.format_exception(error))
        except Exception as failure:
            text = f"The traceback cannot be shown: formatting it raised {type(failure).__name__}"
        # the end, which names the error and the line that raised it
        kept = text if len(text) <= LONGEST_TRACEBACK else f"...{text[-LONGEST_TRACEBACK:]}"
        made.add_note(clean_text(kept))
    return made
