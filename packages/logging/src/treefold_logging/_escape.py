"""Escapes for text that could break a line or move the cursor.

Two alphabets: fields of a line (no space, ASCII only, percent-encoded as in a URL) and free text
(printable characters stay readable). Independent of the meaning of the text. Source: S-77, S-78.
"""

CUT = "...[cut]"
"""End of a text that was longer than its limit."""

PAYLOAD_LIMIT = 2048
"""Characters of a payload or a target that are printed."""

TEXT_LIMIT = 65_536
"""Characters of a message or a traceback that are printed."""

_ENCODED = tuple(chr(byte) if 0x21 <= byte <= 0x7E else f"%{byte:02X}" for byte in range(256))


class Printable(str):
    """Text known to be printable ASCII within its limit, which needs no further check."""

    __slots__ = ()


def escape_log_field(text: str, limit: int = PAYLOAD_LIMIT) -> str:
    """Return a field of the line: no space, no control character, ASCII, never empty.

    Other characters are percent-encoded as UTF-8; an empty text is shown as `-`.
    """
    if text.isascii() and text.isprintable() and " " not in text:
        return shorten_text(text, limit) if text else "-"
    encoded = text[: limit + 1].encode("utf-8", "surrogatepass")
    return shorten_text(percent_encode_unprintable(encoded), limit)


def percent_encode_unprintable(data: bytes) -> str:
    """Return bytes as a field: printable ASCII as it is, anything else percent-encoded."""
    text = data.decode("latin-1")
    if text.isascii() and text.isprintable() and " " not in text:
        return text
    return "".join([_ENCODED[byte] for byte in data])


def escape_unprintable(text: str) -> str:
    """Return free text with every character that does not print, or could move others, escaped.

    Line ends of all kinds, other controls, bidirectional marks, zero-width characters and lone
    surrogates are escaped; letters of any script stay.
    """
    if text.isprintable():
        return text
    return "".join([char if char.isprintable() else _escape_character(char) for char in text])


def shorten_text(text: str, limit: int) -> str:
    """Return the text, shortened to the limit with a visible mark where it was longer."""
    return text if len(text) <= limit else text[: limit - len(CUT)] + CUT


def _escape_character(char: str) -> str:
    return char.encode("unicode_escape", "surrogatepass").decode("ascii")
