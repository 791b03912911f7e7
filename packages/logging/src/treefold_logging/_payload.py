"""The payload of a request as the text behind `payload=`: masked, scrubbed, at most 2 KiB.

Values arrive parsed. Cutting is the last step, so no half of a secret is left at the cut. Source:
S-84, S-85, S-86.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable
from typing import Any

from treefold_logging._escape import PAYLOAD_LIMIT, Printable, escape_log_field, shorten_text
from treefold_logging._graphql import mask_sensitive_graphql_variables
from treefold_logging._mask import copy_masked, describe_value_type, has_no_sensitive_key
from treefold_logging._scrub import json_may_contain_secret, plain_text_may_contain_secret, scrub
from treefold_logging._words import harmless, is_sensitive

LONGEST_TYPE = 100


def _make_json_encoder() -> Callable[[Any], str]:
    plain = json.JSONEncoder(check_circular=False, allow_nan=False, separators=(",", ":"))
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:  # interpreters without the C accelerator
        return plain.encode
    # JSONEncoder creates this object at each call, which costs more than a small payload.
    chunks: Any = make(
        *(None, plain.default, json.encoder.encode_basestring_ascii, None, ":", ","),
        *(False, False, False),
    )
    return lambda value: "".join(chunks(value, 0))


_encode = _make_json_encoder()
_quick_encode: Callable[[Any], bytes] | None = None


def set_payload_encoder(encode: Callable[[Any], bytes] | None) -> None:
    """Write payloads with a faster JSON encoder than the standard library's; None for that one.

    Args:
        encode: returns compact UTF-8; the standard encoder writes values that it refuses, or that
            it writes beyond ASCII.
    """
    global _quick_encode  # one for the process, like the writer
    _quick_encode = encode


def _encode_masked(masked: Any) -> str:
    if _quick_encode is not None:
        try:
            data = _quick_encode(masked)
        except (TypeError, ValueError, RecursionError):
            return _encode(masked)
        if data.isascii():
            return data.decode()
    return _encode(masked)


def json_payload(value: Any) -> str:
    """Return a parsed value as compact JSON for the log line.

    Values under sensitive keys become `***`, secrets inside strings are scrubbed, values without a
    JSON form are shown as their type. Then the text, ASCII without controls, is cut to 2 KiB.
    """
    masked = value if has_no_sensitive_key(value) else copy_masked(value)
    if type(masked) in (dict, list):
        masked = mask_sensitive_graphql_variables(masked)
    try:
        text = _encode_masked(masked)
        if json_may_contain_secret(text):
            text = _encode(copy_masked(masked, convert_leaf=_scrub_or_convert_leaf))
    except (TypeError, ValueError):
        text = _encode_with_scrubbed_leaves(masked)
    except RecursionError:
        text = '"<nested too deeply>"'
    if "\x7f" in text:  # JSON leaves it as it is
        text = text.replace("\x7f", "\\u007f")
    return Printable(shorten_text(text, PAYLOAD_LIMIT))


def compact_payload(text: str, names: Collection[str]) -> str | None:
    """Return compact JSON text as it is for the log line; None where it may hold a secret.

    Args:
        text: valid JSON without white space between its parts, without a backslash, and without a
            colon other than the one behind each member name.
        names: every member name in it, and perhaps more.

    For None, use `json_payload`, which takes several times as long.
    """
    if not harmless.issuperset(names) and any(map(is_sensitive, names)):
        return None
    if not text.isascii() or "\x7f" in text or plain_text_may_contain_secret(text):
        return None
    return Printable(text if len(text) <= PAYLOAD_LIMIT else shorten_text(text, PAYLOAD_LIMIT))


def form_payload(
    fields: Iterable[tuple[str, str]], files: Iterable[tuple[str, str, int, str]] = ()
) -> str:
    """Return the fields and files of a form as the JSON object of the log line.

    Args:
        fields: name and value, in the order of the form; a repeated name becomes a list.
        files: field name, file name, size and media type. Contents are never shown.
    """
    form: dict[str, list[Any]] = {}
    for name, value in fields:
        form.setdefault(name, []).append(value)
    for name, filename, size, kind in files:
        form.setdefault(name, []).append({"name": filename, "size": size, "type": kind})
    return json_payload({name: got[0] if len(got) == 1 else got for name, got in form.items()})


def opaque_payload(media_type: str, size: int) -> str:
    """Return `<type size>` for a body that is not shown; the type is the client's: escaped."""
    kind = escape_log_field(media_type.partition(";")[0].strip(), LONGEST_TYPE)
    return Printable(f"<{kind.replace('<', '%3C').replace('>', '%3E')} {size}>")


def _encode_with_scrubbed_leaves(masked: Any) -> str:
    try:
        return _encode(copy_masked(masked, convert_leaf=_scrub_or_convert_leaf))
    except RecursionError:
        return '"<nested too deeply>"'


def _scrub_or_convert_leaf(value: Any) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return scrub(str(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else f"<{float(value)}>"
    return describe_value_type(value)
