"""Markdown as plain lines for a terminal: no marks but those that a reader needs.

Only what our pages use: headings, paragraphs, lists, tables, quotes and blocks of code.
"""

import re
import textwrap
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile

_FENCE = re.compile(r" *(`{3,})")
_HEADING = re.compile(r"(#{1,6}) (.+)")
_ITEM = re.compile(r"(?P<indent> *)(?P<mark>[-*]|\d+\.) +(?P<text>.*)")
_RULE = re.compile(r"\|(?:\s*:?-+:?\s*\|)+")
_CELLS = re.compile(r"(?<!\\)\|")
_LINK = re.compile(
    r"(?P<image>!?)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>(?:#|https?:|[\w./-]+\.)[^)\s]*)\)"
)
_STRONG = re.compile(r"(?<![\w*`])\*\*([^*\n]+)\*\*")
_UNDERLINES = {1: "=", 2: "-"}
_CODE = "    "
_GAP = "  "

Resolve = Callable[[str], str]
"""Returns the name of the page that a link leads to; empty where it is none."""


def render_markdown(text: str, width: int, resolve: Resolve) -> list[str]:
    """Return the lines of a page.

    Args:
        text: the page in Markdown.
        width: characters of a line; code and tables may be wider.
        resolve: names the pages that links lead to.
    """
    lines: list[str] = []
    for block in split_blocks(text):
        rendered = render_block(block, width, resolve)
        if lines and rendered:
            lines.append("")
        lines += rendered
    return lines


def split_blocks(text: str) -> Iterator[list[str]]:
    """Yield the blocks of a page: a heading, a block of code, a table, an item, a paragraph."""
    lines = text.splitlines()
    while lines:
        first = lines[0]
        if not first.strip():
            del lines[0]
            continue
        count = measure_block(first, lines)
        yield lines[:count]
        del lines[:count]


def measure_block(first: str, lines: Sequence[str]) -> int:
    """Return the number of lines of the block that begins here."""
    if fence := _FENCE.match(first):
        inside = takewhile(lambda line: line.strip() != fence[1], lines[1:])
        return min(sum(1 for _ in inside) + 2, len(lines))
    if _HEADING.fullmatch(first):
        return 1
    if first.startswith("|"):
        return sum(1 for _ in takewhile(lambda line: line.startswith("|"), lines))

    def goes_on(line: str) -> bool:
        begins = _ITEM.fullmatch(line) or _HEADING.fullmatch(line) or _FENCE.match(line)
        return bool(line.strip()) and not begins and not line.startswith("|")

    return 1 + sum(1 for _ in takewhile(goes_on, lines[1:]))


def render_block(block: list[str], width: int, resolve: Resolve) -> list[str]:
    """Return the lines of one block."""
    first = block[0]
    if _FENCE.match(first):
        return [f"{_CODE}{line}".rstrip() for line in block[1:-1]]
    if heading := _HEADING.fullmatch(first):
        title = strip_marks(heading[2], resolve)
        underline = _UNDERLINES.get(len(heading[1]))
        return [title, underline * len(title)] if underline else [title]
    if first.startswith("|"):
        return render_table(block, width, resolve)
    if item := _ITEM.fullmatch(first):
        text = " ".join([item["text"], *map(str.strip, block[1:])])
        mark = f"{item['indent']}{item['mark']} "
        return wrap_text(strip_marks(text, resolve), width, mark, " " * len(mark))
    indent = " " * (len(first) - len(first.lstrip()))
    text = " ".join(line.strip() for line in block)
    return wrap_text(strip_marks(text, resolve), width, indent, indent)


def wrap_text(text: str, width: int, first: str = "", others: str = "") -> list[str]:
    """Break a text into lines; a word that is longer than a line stays whole."""
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def render_table(block: list[str], width: int, resolve: Resolve) -> list[str]:
    """Return a table in columns, or, where it is too wide, each row as a list."""
    rows = [split_cells(line, resolve) for line in block if not _RULE.fullmatch(line)]
    head, *body = rows
    columns = range(max(map(len, rows)))
    rows = [row + [""] * (len(columns) - len(row)) for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in columns]
    if sum(widths) + len(_GAP) * len(widths) <= width:
        lines = [format_row(row, widths) for row in rows]
        rule = format_row(["-" * each for each in widths], widths)
        return [lines[0], rule, *lines[1:]] if any(head) else lines[1:]
    lines: list[str] = []
    for row in body:
        lines += wrap_text(row[0], width)
        for title, cell in zip(head[1:], row[1:], strict=False):
            told = f"{title}: {cell}" if title and len(head) > 2 else cell
            lines += wrap_text(told, width, _CODE, _CODE + _GAP) if cell else []
    return lines


def format_row(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return the cells of a row, each in its column."""
    cells = (f"{cell:{width}}" for cell, width in zip(row, widths, strict=True))
    return _GAP.join(cells).rstrip()


def split_cells(line: str, resolve: Resolve) -> list[str]:
    """Return the texts of the cells of a row."""
    cells = _CELLS.split(line.strip().removeprefix("|").removesuffix("|"))
    return [strip_marks(cell.strip().replace("\\|", "|"), resolve) for cell in cells]


def strip_marks(text: str, resolve: Resolve) -> str:
    """Return a text without the marks of Markdown; a link is followed by its page in `<>`."""

    def name_target(found: re.Match[str]) -> str:
        text, target = found["text"], found["target"]
        if found["image"]:
            return text
        if target.startswith("http"):
            return text if text == target else f"{text} <{target}>"
        name = resolve(target)
        if not name or name.startswith("#"):
            return text
        return f"<{name}>" if text.replace("`", "") == name else f"{text} <{name}>"

    text = _LINK.sub(name_target, text).replace("<br>", " ")
    return _STRONG.sub(r"\1", text)
