"""The file `.env` of a project: variables `TREEFOLD_*` that the environment does not set.

Only lines that begin with such a name are read: the file may belong to other programs as well.
Nothing is put into `os.environ`, and no message shows a value.
"""

from __future__ import annotations

import re
from pathlib import Path

from treefold_http._runtime.boot_report import SettingsError

NAME = ".env"
PREFIX = "TREEFOLD_"
MAX_BYTES = 1024 * 1024
"""Bytes of the file, which is read whole."""

# of bytes: lines of other programs may have any encoding
_LINE = re.compile(rb"(?:export[ \t]+)?(TREEFOLD_[^\s=]*)[ \t]*(=?)[ \t]*(.*)", re.DOTALL)
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)')[ \t]*(?:\#.*)?""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_COMMENT = re.compile(r"(?:^|[ \t]+)#.*")


def read_dotenv(app_dir: Path) -> dict[str, str]:
    """Return the variables `TREEFOLD_*` of `.env`; empty without such a file.

    A line is `NAME=value`, also after `export`. In double quotes, a backslash escapes the next
    character, and n, r and t after it are line breaks and tabs; in single quotes it does not. After
    any other value, ` #` begins a comment. Values do not refer to other variables. The last line of
    a name wins.

    Raises:
        SettingsError: the file is too large or cannot be read, or one of these lines is invalid.
    """
    path = app_dir / NAME
    if not path.is_file():  # a folder of that name holds a virtual environment
        return {}
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise SettingsError(f"Cannot read {NAME}: {error.strerror}; correct the file") from error
    if len(content) > MAX_BYTES:
        raise SettingsError(f"{NAME} must have at most {MAX_BYTES} bytes; remove what is not read")
    values: dict[str, str] = {}
    for number, line in enumerate(re.split(rb"\r\n|\r|\n", content), 1):
        # editors on Windows write a byte order mark, which would be a part of the first name
        line = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if (found := _LINE.fullmatch(line.strip(b" \t"))) is not None:
            name, value = _parse_line(*found.groups(), where=f"line {number} of {NAME}")
            values[name] = value
    return values


def _parse_line(raw_name: bytes, sign: bytes, raw_value: bytes, *, where: str) -> tuple[str, str]:
    name = raw_name.decode(errors="backslashreplace")
    if re.fullmatch(r"[A-Za-z0-9_]+", name) is None:
        raise SettingsError(
            f"A name in {where} must have letters, digits and '_' only, got {name!r}; correct it"
        )
    if not sign:
        raise SettingsError(f"{name} in {where} must have a value; write {name}=value")
    try:
        text = raw_value.decode()
    except UnicodeDecodeError:
        raise SettingsError(f"{name} in {where} must be UTF-8; save the file as UTF-8") from None
    if "\0" in text:
        raise SettingsError(f"{name} in {where} must not hold the character NUL; remove it")
    if text[:1] not in ("'", '"'):
        return name, _COMMENT.sub("", text)
    if (quoted := _QUOTED.fullmatch(text)) is None:
        raise SettingsError(
            f"{name} in {where} must end with the quote that it begins with, on the same line; add"
            " it"
        )
    if quoted[2] is not None:
        return name, quoted[2]
    return name, _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), quoted[1])
