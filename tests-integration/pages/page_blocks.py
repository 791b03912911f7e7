"""The code blocks of a page, in the order in which a reader meets them.

A block that names a file in its first line, as a comment, is that file (`# Api/v1/Health/Get.py`);
after a paragraph that begins with 'Add to', it is added to the file. Blocks inside an HTML comment
are run but not shown. A block after `<!-- not run: reason -->` is not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(
    r"^(?P<indent> *)(?P<ticks>`{3,})(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^ *(?P=ticks) *$",
    re.DOTALL | re.MULTILINE,
)
_FILE = re.compile(
    r"(?:#|//|<!--) (?P<name>(?:[\w.\[\]/-]+\.\w+|(?:[\w./-]*/)?(?:Dockerfile|\.env)))(?: -->)?\n"
)
_NOT_RUN = re.compile(r"<!-- not run: (?P<reason>[^>]+) -->\s*$")


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block.

    Attributes:
        language: the word after the fence.
        text: the lines inside, without the indentation of the fence.
        line: the line number of the first one, from 1.
        file: the file that the block is, or an empty text.
        adds: True if the block is added to the end of its file.
        not_run: the reason why it is not run, or an empty text.
    """

    language: str
    text: str
    line: int
    file: str = ""
    adds: bool = False
    not_run: str = ""


def read_blocks(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in Markdown."""
    for found in _FENCE.finditer(page):
        before = page[: found.start()]
        text = found["text"]
        if indent := found["indent"]:
            text = re.sub(rf"^{indent}", "", text, flags=re.MULTILINE)
        named = _FILE.match(text) if found["language"] != "console" else None
        reason = _NOT_RUN.search(before)
        paragraph = before.rstrip("\n").rpartition("\n\n")[2]
        yield Block(
            language=found["language"],
            text=text,
            line=before.count("\n") + 2,
            file=named["name"] if named else "",
            adds=bool(re.match(r"(?:\d+\. |- )?Add to ", paragraph)),
            not_run=reason["reason"] if reason else "",
        )


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, with the lines that the page shows below it."""

    typed: str
    shown: list[str]


def read_commands(text: str) -> Iterator[Command]:
    """Yield the commands of a console block: the lines after `$ `, with here-documents and `\\`."""
    lines = text.splitlines()
    while lines:
        line = lines.pop(0)
        if not line.startswith("$ "):
            raise ValueError(f"A console block must begin with a command ('$ ...'), got {line!r}")
        typed = line.removeprefix("$ ")
        while typed.endswith("\\"):
            typed += "\n" + lines.pop(0)
        if heredoc := re.search(r"<<\s*'?(\w+)'?", typed):
            while lines[0] != heredoc[1]:
                typed += "\n" + lines.pop(0)
            typed += "\n" + lines.pop(0) + "\n"
        shown: list[str] = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        yield Command(typed, shown)
