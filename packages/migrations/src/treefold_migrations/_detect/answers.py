"""Questions that a change of models leaves open, and their answers.

An answer comes from a flag (`--rename post.title:headline`, `--drop post.title`,
`--fill post.slug:text`) or from a callable that is asked. Without an answer nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field as attribute
from typing import Literal

from treefold_migrations._base.errors import Ambiguous, MigrationError

Ask = Callable[["Question"], str]


@dataclass(frozen=True, slots=True)
class Question:
    """One open question.

    `kind` is "table" or "field" where something may have been renamed to one of `candidates`, and
    "fill" where rows that exist need a value. `flags` are the answers to choose from; the answer to
    "fill" is the text of a value.
    """

    kind: Literal["table", "field", "fill"]
    subject: str
    candidates: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    text: str = ""


@dataclass(slots=True)
class Answers:
    """Decisions of the caller: renames by the old name (`post`, `post.title`), names that are
    dropped, texts of values by the field, and whether data may be lost.
    """

    renames: dict[str, str] = attribute(default_factory=dict[str, str])
    drops: set[str] = attribute(default_factory=set[str])
    fills: dict[str, str] = attribute(default_factory=dict[str, str])
    allow_destructive: bool = False
    ask: Ask | None = None
    used: set[str] = attribute(default_factory=set[str])

    @classmethod
    def from_flags(
        cls,
        *,
        rename: Iterable[str] = (),
        drop: Iterable[str] = (),
        fill: Iterable[str] = (),
        allow_destructive: bool = False,
        ask: Ask | None = None,
    ) -> Answers:
        """Return the answers of command-line flags.

        Raises `MigrationError` for a flag that has not its form.
        """
        renames = dict(_split_flag("--rename", text, "post.title:headline") for text in rename)
        for old, new in renames.items():
            if not new or new.count(".") > old.count("."):
                raise MigrationError(
                    f"--rename must be such as post:article or post.title:headline, got "
                    f"'{old}:{new}'"
                )
        fills = parse_fill_flags(fill)
        moved = {old: new.rpartition(".")[2] for old, new in renames.items()}
        return cls(moved, set(drop), fills, allow_destructive, ask)

    def ask_for_flag(self, question: Question) -> str:
        """Return the flag that answers a question, or raise `Ambiguous`."""
        if self.ask is None:
            raise Ambiguous(question.text, flags=question.flags)
        return self.ask(question)

    def record_flag(self, flag: str) -> None:
        """Record the answer that a flag gives."""
        name, _, text = flag.partition(" ")
        if name == "--rename":
            old, new = _split_flag(name, text, "post.title:headline")
            self.renames[old] = new.rpartition(".")[2]
        elif name == "--drop":
            self.drops.add(text)
        else:
            raise MigrationError(
                f"An answer must be one of the flags of its question, got {flag!r}"
            )

    def refuse_unused(self, valid_names_by_flag: Mapping[str, Iterable[str]]) -> None:
        """Raise `MigrationError` for an answer to a question that there was not.

        Args:
            valid_names_by_flag: the names that each flag could have had.
        """
        given: Mapping[str, Iterable[str]] = {
            "--rename": self.renames,
            "--drop": self.drops,
            "--fill": self.fills,
        }
        for flag, names in given.items():
            for name in names:
                if f"{flag} {name}" not in self.used:
                    raise MigrationError(
                        f"{flag} {name} does not fit: there is nothing of that name to decide"
                        f"{_suggest_flags(flag, name, valid_names_by_flag)}"
                    )


def _suggest_flags(flag: str, name: str, valid_names_by_flag: Mapping[str, Iterable[str]]) -> str:
    import difflib  # only an error needs it

    close = difflib.get_close_matches(
        name, list(valid_names_by_flag.get(flag, ())), n=3, cutoff=0.5
    )
    return f"; did you mean {' or '.join(f'{flag} {found}' for found in close)}?" if close else ""


def parse_fill_flags(flags: Iterable[str]) -> dict[str, str]:
    """Return the texts of `--fill post.slug:text` by their field.

    Raises `MigrationError` for a flag that has not its form.
    """
    return dict(_split_flag("--fill", text, "post.slug:text") for text in flags)


def _split_flag(flag: str, text: str, example: str) -> tuple[str, str]:
    name, mark, value = text.partition(":")
    if not mark or not name:
        raise MigrationError(f"{flag} must be such as {example}, got {text!r}")
    return name, value
