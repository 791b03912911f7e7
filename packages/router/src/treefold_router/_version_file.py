"""The settings of one version: `Api/vN/version.toml`, as data or as one error.

    inherits = "v1"             the base: what v2 lacks is served from the files of v1
    serve = false               only a base for other versions, no route of its own
    status = "stable"           or "draft"
    deprecated = 2026-11-01     a date, or true
    sunset = 2027-06-30
    link = "https://example.org/v2"
    successor = "v3"

The file is read, never imported. A mistake in it is an error of the whole table: a version that
is half of what its author meant would be served without a word.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from treefold_router._naming import is_version_name
from treefold_router._scan import VERSION_FILE
from treefold_router._types import RouterError

_STATUSES = ("draft", "stable")


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFile:
    """The checked content of a `version.toml`.

    Attributes:
        inherits: name of the base version; empty for none.
        serve: False for a version that is only a base.
        status: `draft` or `stable`.
        deprecated: since when, or True without a date; None for a version that is not.
        sunset: when the version ends, None if that is open.
        link: URL of a page about the deprecation; empty for none.
        successor: name of the version to use instead; empty for none.
    """

    inherits: str = ""
    serve: bool = True
    status: str = "stable"
    deprecated: date | bool | None = None
    sunset: date | None = None
    link: str = ""
    successor: str = ""


def read_version_file(root: Path, version: str) -> VersionFile:
    """Read the `version.toml` of a version folder below `root`.

    Raises:
        RouterError: it cannot be read, is no TOML, or has an unknown key or a wrong value.
    """
    import tomllib  # most trees have no such file

    name = f"Api/{version}/{VERSION_FILE}"
    try:
        text = Path(root, version, VERSION_FILE).read_text("utf-8-sig")
    except OSError as error:
        raise RouterError(f"{name} cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise RouterError(f"{name} is not valid UTF-8; save it as UTF-8") from error
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise RouterError(f"{name} is not valid TOML: {error}") from error
    return check_version_table(name, table)


def check_version_table(name: str, table: Mapping[str, Any]) -> VersionFile:
    """Check the keys and values of a `version.toml`.

    Args:
        name: path of the file, for messages.
        table: its content.

    Raises:
        RouterError: a key is unknown or a value has a wrong form.
    """
    for key, value in table.items():
        if (rule := _RULES.get(key)) is None:
            import difflib  # takes 6 ms

            near = difflib.get_close_matches(key, _RULES, n=1, cutoff=0.5)
            way = f"write {near[0]!r}" if near else f"use {', '.join(_RULES)}"
            raise RouterError(f"Unknown key {key!r} in {name}; {way}")
        is_valid, wanted = rule
        if not is_valid(value):
            raise RouterError(f"{key!r} in {name} must be {wanted}, got {_show_value(value)}")
    deprecated, sunset = table.get("deprecated"), table.get("sunset")
    if isinstance(deprecated, date) and isinstance(sunset, date) and sunset < deprecated:
        raise RouterError(
            f"'sunset' in {name} must not be earlier than 'deprecated', got {sunset} before"
            f" {deprecated}"
        )
    return VersionFile(**table)


def is_web_address(value: object) -> bool:
    """Return True for an absolute URL, or a path, that is safe in a header field."""
    return (
        isinstance(value, str)
        and value.startswith(("https://", "http://", "/"))
        and value.isascii()
        and value.isprintable()
        and not set(value) & set(' "<>\\^`{|}')
    )


def _show_value(value: object) -> str:
    return str(value) if isinstance(value, date) else repr(value)


def _is_version(value: object) -> bool:
    return isinstance(value, str) and is_version_name(value)


def _is_date(value: object) -> bool:
    return isinstance(value, date) and not isinstance(value, datetime)


_VERSION = "the name of a version folder such as 'v1'"
_DATE = "a date such as 2027-06-30, without quotes"
_RULES: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "inherits": (_is_version, _VERSION),
    "serve": (lambda value: isinstance(value, bool), "true or false"),
    "status": (lambda value: value in _STATUSES, "'draft' or 'stable'"),
    "deprecated": (lambda value: value is True or _is_date(value), f"{_DATE}, or true"),
    "sunset": (_is_date, _DATE),
    "link": (is_web_address, "a URL such as 'https://example.org/v2'"),
    "successor": (_is_version, _VERSION),
}
