"""`Deprecation`: since when a route or a version is deprecated, when it ends, and what replaces it.

    deprecated = True                                      without a date, for documents only
    deprecated = "2026-11-01"                              in a handler module
    deprecated = Deprecation("2026-11-01", "2027-06-30", successor="v2")
    deprecated = 2026-11-01                                in `Api/v1/version.toml`

What a module leaves out is that of its version. `deprecation_fields` writes the header.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, cast

from treefold_router import version_number

if TYPE_CHECKING:
    from treefold_router import VersionFile


@dataclass(frozen=True, slots=True, init=False)
class Deprecation:
    """The deprecation of a route: `deprecated = Deprecation("2026-11-01", successor="v2")`.

    Args:
        since: the day on which it begins, at midnight UTC; it may lie in the future. A text is
            `YYYY-MM-DD`. None for a deprecation without a date, which sends no `Deprecation`.
        sunset: the day on which the route ends; None if that is open.
        link: address of a page about the deprecation; empty for none.
        successor: a version that has the same route, or an address; empty for none.

    Raises:
        ValueError: for a text that is no date or address, or a sunset before the deprecation.
        TypeError: for a value of another type.
    """

    since: date | None
    sunset: date | None
    link: str
    successor: str

    def __init__(
        self,
        since: date | str | None = None,
        sunset: date | str | None = None,
        *,
        link: str = "",
        successor: str = "",
    ) -> None:
        begin, end = _read_date(since, "since"), _read_date(sunset, "sunset")
        if begin is not None and end is not None and end < begin:
            raise ValueError(
                f"The sunset of a Deprecation must not be earlier than since, got {end} before"
                f" {begin}"
            )
        if link or successor:
            _check_addresses(link, successor)
        object.__setattr__(self, "since", begin)
        object.__setattr__(self, "sunset", end)
        object.__setattr__(self, "link", link)
        object.__setattr__(self, "successor", successor)


def _check_addresses(link: str, successor: str) -> None:
    from treefold_router import is_web_address  # with the reader of `version.toml`

    wanted = "a URL such as 'https://example.org/v2'"
    if link and not is_web_address(link):
        raise ValueError(f"The link of a Deprecation must be {wanted}, got {link!r}")
    if not successor or is_web_address(successor):
        return
    if not isinstance(cast("object", successor), str) or version_number(successor) is None:
        raise ValueError(
            f"The successor of a Deprecation must be a version such as 'v2' or {wanted}, got"
            f" {successor!r}"
        )


def _read_date(value: object, name: str) -> date | None:
    if value is None:
        return None
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise ValueError(
                f"The {name} of a Deprecation must be a day such as '2026-11-01', got {value!r}"
            ) from None
    # a datetime is a date to `isinstance`, and its hour would be lost
    if not isinstance(value, date) or isinstance(value, datetime):
        raise TypeError(f"The {name} of a Deprecation must be a date or a text, got {value!r}")
    return value


def read_deprecated_option(value: object) -> Deprecation | None:
    """Return the deprecation that `deprecated` of a handler module says; None for False.

    Raises:
        ValueError: for a text that is no day.
        TypeError: for a value of another type.
    """
    if isinstance(value, Deprecation):
        return value
    if isinstance(value, bool):
        return Deprecation() if value else None
    if isinstance(value, (str, date)):
        return Deprecation(value)
    raise TypeError(f"A deprecation must be True, a day or a Deprecation, got {value!r}")


def read_version_deprecation(settings: VersionFile | None) -> Deprecation | None:
    """Return the deprecation of a version, of its `version.toml`; None without one."""
    if settings is None or not (settings.deprecated or settings.sunset):
        return None
    since = None if isinstance(settings.deprecated, bool) else settings.deprecated
    return Deprecation(since, settings.sunset, link=settings.link, successor=settings.successor)


def merge_deprecations(
    own: Deprecation | None, of_version: Deprecation | None
) -> Deprecation | None:
    """Return the deprecation of a route: its own, completed by that of its version.

    Raises:
        ValueError: for a sunset of the version that is earlier than the own deprecation.
    """
    if own is None or of_version is None:
        return own or of_version
    return Deprecation(
        own.since or of_version.since,
        own.sunset or of_version.sunset,
        link=own.link or of_version.link,
        successor=own.successor or of_version.successor,
    )
