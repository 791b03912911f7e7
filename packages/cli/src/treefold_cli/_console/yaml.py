"""JSON values as YAML: block style, every doubtful text in double quotes.

Avoids a dependency, as documents need a small subset of YAML. YAML 1.1 and 1.2 parsers read the
output alike. It cannot be used to read YAML.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

_plain = re.compile(r"[A-Za-z_/][A-Za-z0-9_/.{}-]*(?: [A-Za-z0-9_/.(){}-]+)*").fullmatch
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"})


def to_yaml(value: object) -> str:
    """Write a JSON value as a YAML document.

    Args:
        value: tables with text keys, lists, texts, finite numbers, booleans and None.

    Raises:
        TypeError, ValueError: for anything that JSON has no form for.
    """
    return "\n".join(_render_value(value, "")) + "\n"


def _render_value(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, item in cast("Mapping[str, Any]", value).items():
            yield from _render_mapping_entry(f"{indent}{_quote_if_needed(key)}:", item, indent)
    elif isinstance(value, (list, tuple)) and value:
        for item in cast("Sequence[Any]", value):
            yield from _render_list_item(item, indent)
    else:
        yield f"{indent}{_format_scalar(value)}"


def _render_mapping_entry(start: str, item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, (Mapping, list, tuple)) and item:
        yield start
        yield from _render_value(item, f"{indent}  ")
    else:
        yield f"{start} {_format_scalar(item)}"


def _render_list_item(item: Any, indent: str) -> Iterator[str]:
    """Yield a list item: its content is indented by two columns, the first line after the dash."""
    lines = _render_value(item, f"{indent}  ")
    yield f"{indent}- {next(lines).removeprefix(f'{indent}  ')}"
    yield from lines


def _format_scalar(value: Any) -> str:
    return _quote_if_needed(value) if isinstance(value, str) else json.dumps(value, allow_nan=False)


def _quote_if_needed(text: str) -> str:
    if _plain(text) and text.lower() not in _WORDS:
        return text
    return "".join(map(_escape_character, json.dumps(text, ensure_ascii=False)))


def _escape_character(char: str) -> str:
    """Escape characters that JSON writes unchanged, but YAML or a terminal does not accept."""
    if char.isprintable():
        return char
    number = ord(char)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
