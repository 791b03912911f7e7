"""The target of a request as the log shows it: the path as sent, the query without its secrets.

Works on the bytes of the request; it decodes keys only to test them, and once (S-02, S-80). The
result has no space and no control character, so no client can end the field or the line early.
"""

import re
from collections.abc import Sequence
from urllib.parse import unquote, unquote_plus, unquote_to_bytes

from treefold_logging._escape import PAYLOAD_LIMIT, percent_encode_unprintable, shorten_text
from treefold_logging._mask import MASK
from treefold_logging._scrub import scrub, scrub_path
from treefold_logging._words import is_sensitive_in_query

# ';' parts fields for some servers; a secret behind one must not hide in the value before it.
_NESTED = 4
"""How often a value may be encoded: an address in an address, and one more in that."""
_FIELD_ENDS = re.compile(r"([&;])")


def request_target(
    raw_path: bytes, query_string: bytes, masked_segments: Sequence[int] = ()
) -> str:
    """Return the target for the log line.

    Args:
        raw_path: the path as sent, percent-encoded.
        query_string: the part after the question mark, as sent.
        masked_segments: indexes, among the segments that are not empty, whose text is a secret.

    The path stays percent-encoded; bytes that are no printable ASCII are encoded too. In the query
    the value of a sensitive key is `***`. The result is cut to 2 KiB. Source: S-76 to S-81.
    """
    if masked_segments:
        raw_path = _mask_segments(raw_path, masked_segments)
    target = percent_encode_unprintable(raw_path)
    if "%" in target:
        target = "/".join(
            MASK if _segment_contains_secret(part) else part for part in target.split("/")
        )
    if ":" in target and "://" in target:
        target = scrub_path(target)
    if ("J" in target and "eyJ" in target) or not target.startswith("/"):
        segments = (MASK if _value_contains_secret(part) else part for part in target.split("/"))
        target = scrub("/".join(segments))
    if query_string:
        target = f"{target or '/'}?{_mask_query(query_string)}"
    return (
        target if 0 < len(target) <= PAYLOAD_LIMIT else shorten_text(target or "/", PAYLOAD_LIMIT)
    )


def _mask_segments(raw_path: bytes, masked: Sequence[int]) -> bytes:
    segments = raw_path.split(b"/")
    filled = [place for place, segment in enumerate(segments) if segment]
    for index in masked:
        if 0 <= index < len(filled):
            segments[filled[index]] = MASK.encode()
    return b"/".join(segments)


def _mask_query(query_string: bytes) -> str:
    shown: list[str] = []
    length = 0
    for part in _FIELD_ENDS.split(query_string.decode("latin-1")):
        shown.append(_mask_query_field(part))
        length += len(part)
        if length > PAYLOAD_LIMIT:  # the rest would be cut anyway
            break
    return percent_encode_unprintable("".join(shown).encode("latin-1"))


def _mask_query_field(part: str) -> str:
    key, equals, value = part.partition("=")
    if not equals:
        return MASK if _value_contains_secret(key) else part
    if is_sensitive_in_query(_decode_component(key)) or _value_contains_secret(value):
        return f"{key}={MASK}"
    return part


def _value_contains_secret(value: str) -> bool:
    if not value or value.isalnum():  # every shape has a separator in it
        return False
    text = _decode_component(value)
    for _ in range(_NESTED):
        if scrub(text) != text:
            return True
        if "%" not in text or (inner := unquote_plus(text, errors="replace")) == text:
            return False
        text = inner
    return True  # encoded too often to be read


def _segment_contains_secret(segment: str) -> bool:
    """Return True if a segment of a path, decoded as often as it is encoded, has a secret form."""
    for _ in range(_NESTED):
        if "%" not in segment:
            return False
        segment = unquote(segment, errors="replace")
        if scrub_path(segment) != segment:
            return True
    return False


def _decode_component(text: str) -> str:
    if "%" not in text and "+" not in text and text.isascii():
        return text
    return unquote_to_bytes(text.replace("+", " ").encode("latin-1")).decode("utf-8", "replace")
