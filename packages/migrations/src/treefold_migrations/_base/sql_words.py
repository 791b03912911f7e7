"""The statements of SQL that the author of a migration wrote, and the words of each.

ALTER TABLE "a" ADD c text DEFAULT 'DROP'; -- x   ->   ALTER TABLE quoted_name ADD c text ...
"""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"--[^\n]*|/\*.*?\*/|(?P<dollar>\$[A-Za-z_]*\$).*?(?P=dollar)|'(?:[^']|'')*'"
    r"|\"(?P<name>(?:[^\"]|\"\")*)\"|(?P<end>;)|(?P<text>[^-/$'\";]+|.)",
    re.DOTALL,
)


def split_statements(sql: str) -> list[tuple[str, str]]:
    """Split SQL into statements, each as written and as words without strings and comments."""
    made: list[tuple[str, str]] = []
    written, words = "", ""
    for piece in _PIECE.finditer(sql):
        if piece["end"]:
            made.append((written, words))
            written = words = ""
            continue
        written += piece[0]
        if piece["text"]:
            words += piece["text"]
        elif piece["name"] is not None:
            words += "quoted_name"
        elif piece[0][0] in "'$":
            words += "'text'"
        else:
            words += " "
    made.append((written, words))
    return [(" ".join(a.split()), " ".join(b.split())) for a, b in made if b.strip()]
