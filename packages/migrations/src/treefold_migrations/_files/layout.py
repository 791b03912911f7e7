"""Source on one line, laid out over several lines as ruff format leaves it.

Calls, lists, mappings and tuples that are too long get one item a line and a comma at the end,
which every formatter keeps. Text of several lines is written as such. Other expressions stay on
one line.
"""

from __future__ import annotations

import ast

WIDTH = 88
"""Columns of a written file: the default of the formatters that most projects use."""


def format_expression(
    source: str, *, indent: int = 0, prefix_width: int = 0, suffix_width: int = 0
) -> str:
    """Return an expression laid out.

    Args:
        source: the expression on one line.
        indent: the column at which the line begins.
        prefix_width: how many characters stand before the expression in its line.
        suffix_width: how many characters follow it.
    """
    if indent + prefix_width + len(source) + suffix_width <= WIDTH:
        return source
    return _ExpressionFormatter(source).format_node(
        ast.parse(source, mode="eval").body, indent, prefix_width, suffix_width
    )


def _fits_triple_quotes(value: str) -> bool:
    """True for text of several lines that a triple-quoted string holds without any escape."""
    lines = value.split("\n")
    plain = all(line.isprintable() for line in lines) and "\\" not in value
    return len(lines) > 1 and plain and '"""' not in value and not value.endswith('"')


class _ExpressionFormatter:
    def __init__(self, source: str) -> None:
        self._source = source.encode()  # positions of nodes count bytes

    def _slice_source(self, node: ast.expr) -> str:
        return self._source[node.col_offset : node.end_col_offset].decode()

    def format_node(self, node: ast.expr, indent: int, prefix_width: int, suffix_width: int) -> str:
        text = self._slice_source(node)
        if indent + prefix_width + len(text) + suffix_width <= WIDTH:
            return text
        match node:
            case ast.Call() if node.args or node.keywords:
                items = [("", arg) for arg in node.args]
                items += [(f"{k.arg}=" if k.arg else "**", k.value) for k in node.keywords]
                return self._format_bracketed_items(
                    f"{self._slice_source(node.func)}(", items, ")", indent
                )
            case ast.List() if node.elts:
                return self._format_bracketed_items(
                    "[", [("", item) for item in node.elts], "]", indent
                )
            case ast.Tuple() if node.elts:
                return self._format_bracketed_items(
                    "(", [("", item) for item in node.elts], ")", indent
                )
            case ast.Dict() if node.keys:
                pairs = zip(node.keys, node.values, strict=True)
                items = [(f"{self._slice_source(k)}: " if k else "**", value) for k, value in pairs]
                return self._format_bracketed_items("{", items, "}", indent)
            case ast.Constant(value=str(value)) if _fits_triple_quotes(value):
                return f'"""{value}"""'
            case _:
                return text

    def _format_bracketed_items(
        self, start: str, items: list[tuple[str, ast.expr]], end: str, indent: int
    ) -> str:
        pad = " " * (indent + 4)
        lines = [
            f"{pad}{prefix}{self.format_node(value, indent + 4, len(prefix), 1)},"
            for prefix, value in items
        ]
        return "\n".join([start, *lines, " " * indent + end])
